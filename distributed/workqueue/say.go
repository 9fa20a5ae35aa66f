package workqueue

import (
	"fmt"
	"sync"

	"clustergym/internal/plain"
)

// cleaned returns say without what a terminal would obey: names and messages come from other machines.
func cleaned(say func(format string, args ...any)) func(format string, args ...any) {
	return func(format string, args ...any) { say("%s", plain.Text(fmt.Sprintf(format, args...))) }
}

// speaker calls say from a goroutine of its own, in order, so that nothing waits for a terminal and say may call the
// coordinator.
type speaker struct {
	mu    sync.Mutex
	lines chan string // nil once closed
	ended chan struct{}
}

// mostLines is how many lines may wait; more are dropped.
const mostLines = 4096

func newSpeaker(say func(format string, args ...any)) *speaker {
	s := &speaker{lines: make(chan string, mostLines), ended: make(chan struct{})}
	lines := s.lines
	go func() {
		defer close(s.ended)
		for l := range lines {
			say("%s", l)
		}
	}()
	return s
}

func (s *speaker) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.lines <- fmt.Sprintf(format, args...): // a nil channel takes nothing
	default:
	}
}

// close waits until all is said.
func (s *speaker) close() {
	s.mu.Lock()
	lines := s.lines
	s.lines = nil
	s.mu.Unlock()
	if lines != nil {
		close(lines)
	}
	<-s.ended
}
