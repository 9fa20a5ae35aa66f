package workload

import "context"

// readings is the number of jobs between two calls of WithReading's function.
const readings = 1 << 10

type readingKey struct{}

// WithReading returns a context whose traces call tell with the number of jobs read so far, once for every 1,024 jobs. The
// goroutine that reads calls it.
func WithReading(ctx context.Context, tell func(jobs int)) context.Context {
	return context.WithValue(ctx, readingKey{}, tell)
}

// readingOf returns the function of ctx, or nil.
func readingOf(ctx context.Context) func(jobs int) {
	tell, _ := ctx.Value(readingKey{}).(func(jobs int))
	return tell
}
