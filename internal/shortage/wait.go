package shortage

import (
	"context"
	"io"
	"sync"
	"time"
)

// look is how often a writer looks whether a full disk has space again.
const look = time.Second

// Wait has what it takes to outlast a full disk: a context that ends the waiting, and a way to tell the user. A nil
// *Wait waits for descriptors alone. Its methods are safe for concurrent use.
type Wait struct {
	ctx  context.Context
	say  func(format string, args ...any)
	look time.Duration

	mu      sync.Mutex
	lacking bool // files, and the user knows it
}

// Patient returns a Wait that ends with ctx. say takes a sentence for the user: one when a shortage begins, one when a
// full disk has space again.
func Patient(ctx context.Context, say func(format string, args ...any)) *Wait {
	return &Wait{ctx: ctx, say: say, look: look}
}

// Do calls f, and again while the disk is full or descriptors are short. what names the file or folder that f writes. f
// must leave nothing behind when it fails. When the context has ended, a full disk is an error as any other.
func (w *Wait) Do(what string, f func() error) error {
	told := false
	for {
		err := w.files(what, f)
		if w == nil || !OfSpace(err) || w.ctx.Err() != nil {
			if told && err == nil {
				w.say("%s is written: there is space again", what)
			}
			return err
		}
		if !told {
			told = true
			w.say("%s cannot be written, the disk is full (%v): this process waits until there is space; Ctrl-C ends it", what,
				err)
		}
		select {
		case <-w.ctx.Done():
			return err
		case <-time.After(w.look):
		}
	}
}

// files is Files, and tells the user of the first shortage.
func (w *Wait) files(what string, f func() error) error {
	if w == nil {
		return Files(f)
	}
	return files(f, func(err error) {
		w.mu.Lock()
		first := !w.lacking
		w.lacking = true
		w.mu.Unlock()
		if first {
			w.say("%s is tried again: %v", what, err)
		}
	})
}

// Writer returns a writer to file that outlasts a full disk: it keeps the bytes that have not fit and writes them when
// there is space. what names the file.
func (w *Wait) Writer(what string, file io.Writer) io.Writer { return &writer{w, what, file} }

type writer struct {
	wait *Wait
	what string
	file io.Writer
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (n int, err error) {
	err = w.wait.Do(w.what, func() error {
		k, err := w.file.Write(b[n:])
		n += k
		return err
	})
	return n, err
}
