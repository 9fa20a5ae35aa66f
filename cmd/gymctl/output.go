package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"clustergym/experiments/texttable"
	"clustergym/experiments/workload"
	"clustergym/internal/logging"
)

// output is standard output. It keeps the first error, and writes nothing after it.
type output struct {
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	o.err = err
	return n, err
}

// locked is standard error, with a lock: a server's log and the progress of concurrent work take turns.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// isTerminal reports whether w is a terminal, which can show progress bars.
func isTerminal(w io.Writer) bool {
	switch o := w.(type) {
	case *output:
		w = o.w
	case *logging.Writer:
		return isTerminal(o.Unwrap())
	case *locked:
		w = o.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// unblock puts a queue before standard error, for a verb that must not block when its log is not read. It is called
// before anything else uses standard error.
func (a *app) unblock() {
	if a.queue == nil {
		a.queue = logging.NewWriter(a.stderr)
		a.stderr = a.queue
	}
}

// flushTime bounds how long the program, when it ends, waits for its last log lines to be read.
const flushTime = time.Second

func (a *app) flush() {
	if a.queue != nil {
		a.queue.Close(flushTime)
	}
}

// announce lets write print to standard output. If the write still blocks when ctx ends, announce returns without having
// printed.
func (a *app) announce(ctx context.Context, write func(*app) error) error {
	b := &app{stdout: &output{w: a.stdout.w}} // its own, since a blocked goroutine may keep it
	done := make(chan error, 1)
	go func() { done <- write(b) }()
	select {
	case err := <-done:
		a.stdout.err = b.stdout.err
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// printf writes to standard output, which keeps its first error until the end.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.stdout, format, args...) }

// notef writes one line for people to standard error. It ignores errors, since there is no one left to tell.
func (a *app) notef(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, "gymctl: "+format+"\n", args...)
}

// json writes v as the only JSON document of the run.
func (a *app) json(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table writes a table to standard output; the first left columns are aligned to the left.
func (a *app) table(left int, header []string, rows [][]string) error {
	return texttable.Write(a.stdout, header, rows, left)
}

// writeTo lets write fill the file at path, or standard output if path is "" or "-". The file appears as a whole or
// not at all, and never replaces one of inputs, the files that this run reads.
func (a *app) writeTo(path string, inputs []string, write func(w io.Writer) error) error {
	if path == "" || path == "-" {
		return write(a.stdout)
	}
	for _, in := range inputs {
		if sameFile(path, in) {
			return mistake("output file %s: it is the input %s, which would be overwritten; want another name", path, in)
		}
	}
	o, err := workload.CreateFile(path)
	if err != nil {
		return err
	}
	defer o.Discard()
	if err := write(o); err != nil {
		return err
	}
	if err := o.Commit(); err != nil {
		return fmt.Errorf("output file %s: %w", path, err)
	}
	return nil
}

// sameFile reports whether both paths lead to one regular file, through any names and links. A terminal or a pipe can
// be read and written at the same time.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil || !x.Mode().IsRegular() {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
