package workload

import "context"

// readings is how many jobs are read from one call of the function of WithReading to the next.
const readings = 1 << 10

type readingKey struct{}

// WithReading returns a context with which traces tell again and again how many jobs have been read of them. tell is called
// by the goroutine that reads.
func WithReading(ctx context.Context, tell func(jobs int)) context.Context {
	return context.WithValue(ctx, readingKey{}, tell)
}

// readingOf returns the function of ctx, or nil.
func readingOf(ctx context.Context) func(jobs int) {
	tell, _ := ctx.Value(readingKey{}).(func(jobs int))
	return tell
}
