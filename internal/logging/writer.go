package logging

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Lines that wait to be written. More are dropped.
const (
	mostLines = 4096
	mostBytes = 1 << 20
)

// Writer passes what is written to it to another writer, in order, from a goroutine of its own. Its Write never blocks:
// if the other writer is stuck and the queue is full, what comes is dropped, and the number of dropped lines is logged
// as soon as the other writer goes on. Its methods are safe for concurrent use.
type Writer struct {
	w io.Writer

	mu      sync.Mutex
	queue   [][]byte
	bytes   int
	dropped int
	closed  bool
	more    chan struct{} // holds a token when there is something to do
	done    chan struct{} // closed when everything has been written after Close
}

// NewWriter returns a Writer to w. Close ends its goroutine.
func NewWriter(w io.Writer) *Writer {
	q := &Writer{w: w, more: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Unwrap returns the other writer.
func (q *Writer) Unwrap() io.Writer { return q.w }

// Write implements io.Writer. One call is one line. Errors of the other writer are not reported, since a program goes
// on without its log.
func (q *Writer) Write(p []byte) (int, error) {
	q.mu.Lock()
	if q.closed || len(q.queue) >= mostLines || q.bytes+len(p) > mostBytes {
		q.dropped++
	} else {
		q.queue = append(q.queue, append([]byte(nil), p...))
		q.bytes += len(p)
	}
	q.mu.Unlock()
	q.wake()
	return len(p), nil
}

func (q *Writer) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// run writes until the Writer is closed and empty.
func (q *Writer) run() {
	defer close(q.done)
	notes := slog.NewTextHandler(q.w, nil)
	for range q.more {
		for {
			q.mu.Lock()
			lines, dropped, closed := q.queue, q.dropped, q.closed
			q.queue, q.dropped = nil, 0
			q.mu.Unlock()
			for _, b := range lines {
				_, _ = q.w.Write(b) // there is no other place to report it
				q.mu.Lock()
				q.bytes -= len(b)
				q.mu.Unlock()
			}
			if dropped > 0 {
				r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines were dropped, because nobody read them", 0)
				r.AddAttrs(slog.Int("lines", dropped))
				_ = notes.Handle(context.Background(), r) // as above
			}
			if len(lines) > 0 || dropped > 0 {
				continue
			}
			if closed {
				return
			}
			break
		}
	}
}

// Close waits until everything has been written, at most for limit, and reports whether it has. Nothing is written that
// comes later.
func (q *Writer) Close(limit time.Duration) bool {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-q.done:
		return true
	case <-timer.C:
		return false
	}
}
