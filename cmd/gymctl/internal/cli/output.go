package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"clustergym/internal/fault"
	"clustergym/internal/logging"
	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/workload"
)

// Output is standard output. It keeps the first error, and writes nothing after it.
type Output struct {
	W   io.Writer
	err error
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.W.Write(p)
	o.err = err
	return n, err
}

// Locked is standard error, with a lock: a server's log and the progress of concurrent work take turns.
type Locked struct {
	mu sync.Mutex
	W  io.Writer
}

// Write implements io.Writer.
func (l *Locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.W.Write(p)
}

// Unblock puts a queue before standard error, for a verb that must not block when its log is not read. It is called
// before anything else uses standard error.
func (a *App) Unblock() {
	if a.queue == nil {
		a.queue = logging.NewWriter(a.Stderr)
		a.Stderr = a.queue
	}
}

// flushTime bounds how long the program, when it ends, waits for its last log lines to be read.
const flushTime = time.Second

func (a *App) flush() {
	if a.queue != nil {
		a.queue.Close(flushTime)
	}
}

// Announce lets write print to standard output. If the write still blocks when ctx ends, announce returns without
// having printed.
func (a *App) Announce(ctx context.Context, write func(*App) error) error {
	b := &App{Stdout: &Output{W: a.Stdout.W}} // its own, since a blocked goroutine may keep it
	done := make(chan error, 1)
	go func() { done <- write(b) }()
	select {
	case err := <-done:
		a.Stdout.err = b.Stdout.err
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Printf writes text for people to standard output, which keeps its first error until the end.
func (a *App) Printf(format string, args ...any) { _, _ = fmt.Fprintf(a.People(), format, args...) }

// Notef writes one line for people to standard error. It ignores errors, since there is no one left to tell.
func (a *App) Notef(format string, args ...any) { a.Say("gymctl: "+format, args...) }

// Notes writes notes, each a line.
func (a *App) Notes(notes []string) {
	for _, n := range notes {
		a.Notef("%s", n)
	}
}

// mostNotes is the greatest number of different notes on files in one run: clients of a server choose theirs.
const mostNotes = 100

// noting returns a function for workload.WithNotes, which prints each note once. It is safe for concurrent use.
func (a *App) noting() func(note string) {
	var m sync.Mutex
	printed := map[string]bool{}
	return func(note string) {
		note = plain.Line(note)
		m.Lock()
		first := !printed[note] && len(printed) < mostNotes
		if first {
			printed[note] = true
		}
		m.Unlock()
		if first {
			a.Notef("note: %s", note)
		}
	}
}

// Say is notef without the program's name. On a terminal the line is broken between words. Names and messages of others
// are cleaned (package plain).
func (a *App) Say(format string, args ...any) {
	_, _ = io.WriteString(a.Stderr, texttable.Wrapped(plain.Text(fmt.Sprintf(format, args...)), widthOf(a.Stderr))+"\n")
}

// JSON writes v as the only JSON document of the run.
func (a *App) JSON(v any) error {
	e := json.NewEncoder(a.Stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// JSONFlag adds --json.
func JSONFlag(c *cobra.Command) { c.Flags().Bool("json", false, "print one JSON document") }

// AsJSON reports whether c has --json and it is given.
func AsJSON(c *cobra.Command) bool {
	given, err := c.Flags().GetBool("json")
	return given && err == nil
}

// Keyed is a JSON document of one key.
type Keyed map[string]any

// Show prints the result of c: v as the JSON document of the run, or a table for people.
func (a *App) Show(c *cobra.Command, v any, table func(w io.Writer) error) error {
	if AsJSON(c) {
		return a.JSON(v)
	}
	return table(a.People())
}

// ShowTable is Show for a result that people read as one table.
func (a *App) ShowTable(c *cobra.Command, v any, left int, header []string, rows [][]string, least ...string) error {
	return a.Show(c, v, func(io.Writer) error { return a.Table(left, header, rows, least...) })
}

// Table writes a table to standard output; the first left columns are aligned to the left. On a terminal that is too
// narrow the columns least are left out first.
func (a *App) Table(left int, header []string, rows [][]string, least ...string) error {
	return texttable.Write(a.People(), header, rows, left, least...)
}

// WriteFile lets write fill the file at path, or standard output if path is "" or "-". The file appears as a whole or
// not at all, and never replaces one of inputs, the files that this run reads.
func (a *App) WriteFile(path string, inputs []string, write func(w io.Writer) error) error {
	if path == "" || path == "-" {
		return write(a.Stdout)
	}
	for _, in := range inputs {
		if sameFile(path, in) {
			return fault.Mistakef("output file %s: it is the input %s, which would be overwritten; want another name", path, in)
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

// WriteBytes is WriteFile for what a verb has as a whole.
func (a *App) WriteBytes(path string, data []byte) error {
	return a.WriteFile(path, nil, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
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
