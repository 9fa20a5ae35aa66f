package logging

import (
	"log/slog"
	"sync"
	"time"
)

// A Throttle passes at most throttled lines a second.
const throttled = 5

// Throttle limits how often one kind of warning is logged. The zero value is ready. Its methods are safe for concurrent
// use.
type Throttle struct {
	mu     sync.Mutex
	begun  time.Time // of the present second
	passed int       // in this second
	held   uint64    // not logged since the last line that was
}

// Warn logs a warning, or only counts it if there were too many in this second. The next line that is logged has the
// count as "suppressed".
func (t *Throttle) Warn(log *slog.Logger, msg string, args ...any) {
	t.mu.Lock()
	if now := time.Now(); now.Sub(t.begun) >= time.Second {
		t.begun, t.passed = now, 0
	}
	if t.passed >= throttled {
		t.held++
		t.mu.Unlock()
		return
	}
	t.passed++
	held := t.held
	t.held = 0
	t.mu.Unlock()
	if held > 0 {
		args = append(args[:len(args):len(args)], "suppressed", held)
	}
	log.Warn(msg, args...)
}

// Rest logs how many warnings were counted since the last line, if there were any. It is called at the end.
func (t *Throttle) Rest(log *slog.Logger, msg string) {
	t.mu.Lock()
	held := t.held
	t.held = 0
	t.mu.Unlock()
	if held > 0 {
		log.Warn(msg, "suppressed", held)
	}
}
