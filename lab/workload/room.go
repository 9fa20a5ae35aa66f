package workload

import (
	"context"

	"clustergym/traces"
)

// roomKey is the key of a context's value: who is asked before more jobs are read into memory.
type roomKey struct{}

// roomStep is how many jobs are read before ask is called again.
const roomStep = 4096

// WithRoom returns a context under which ask is called before jobs are read, with how many may soon be in memory. If it
// returns an error, reading ends with that.
func WithRoom(ctx context.Context, ask func(jobs int) error) context.Context {
	return context.WithValue(ctx, roomKey{}, ask)
}

// roomOf returns the function of WithRoom, nil if there is none.
func roomOf(ctx context.Context) func(jobs int) error {
	ask, _ := ctx.Value(roomKey{}).(func(jobs int) error)
	return ask
}

// measured is a stream that asks for room.
type measured struct {
	traces.Stream
	ask  func(jobs int) error
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
