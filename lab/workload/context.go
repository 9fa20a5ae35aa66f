package workload

import (
	"context"

	"clustergym/traces"
)

// under is the key of a context's value of one type: each of the values below has a type of its own.
type under[V any] struct{}

func with[V any](ctx context.Context, v V) context.Context {
	return context.WithValue(ctx, under[V]{}, v)
}

// of returns the context's value of a type, the zero value if it has none.
func of[V any](ctx context.Context) V {
	v, _ := ctx.Value(under[V]{}).(V)
	return v
}

// The values that a context can have.
type (
	noteFunc    func(note string)
	readingFunc func(jobs int)
	roomFunc    func(jobs int) error
	playing     bool
)

// WithNotes returns a context whose traces call tell with each sentence about what their file has that its user should
// look at, although it can be read: once they are read to the end, or closed. The goroutine that reads calls it.
func WithNotes(ctx context.Context, tell func(note string)) context.Context {
	return with(ctx, noteFunc(tell))
}

// Playing returns a context whose traces are played by schedulers. Then a note (WithNotes) says where jobs differ in
// priority, which no order looks at.
func Playing(ctx context.Context) context.Context { return with(ctx, playing(true)) }

// readings is the number of jobs between two calls of WithReading's function.
const readings = 1 << 10

// WithReading returns a context whose traces call tell with the number of jobs read so far, once for every 1,024 jobs.
// The goroutine that reads calls it.
func WithReading(ctx context.Context, tell func(jobs int)) context.Context {
	return with(ctx, readingFunc(tell))
}

// roomStep is how many jobs are read before ask is called again.
const roomStep = 4096

// WithRoom returns a context under which ask is called before jobs are read, with how many may soon be in memory. If it
// returns an error, reading ends with that.
func WithRoom(ctx context.Context, ask func(jobs int) error) context.Context {
	return with(ctx, roomFunc(ask))
}

// measured is a stream that asks for room.
type measured struct {
	traces.Stream
	ask  roomFunc
	jobs int
}

// Next implements traces.Stream.
func (m *measured) Next(j *traces.Job) error {
	if m.ask != nil && m.jobs%roomStep == 0 {
		if err := m.ask(m.jobs + roomStep); err != nil {
			return err
		}
	}
	m.jobs++
	return m.Stream.Next(j)
}
