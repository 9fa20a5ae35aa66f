package study

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Bench gives a running cell its folder, its workers, and the results of the cells that it reads. It belongs to the
// cell's goroutine, except Progress, Log and Saved. A Bench that no Run made, as in tests, has only its fields, and
// Progress, Log and Saved do nothing.
type Bench struct {
	Dir     string // folder of the experiment; on another machine, of the cell
	Workers int    // goroutines that the cell may use at once; they must not influence its rows

	study, key string
	work       string
	before     map[string]earlier // by the keys that After names
	now        func() time.Time
	log        func(format string, args ...any) // nil = silent
	at         func(done, all int64)            // told of all progress; may be nil
	saved      func() error                     // may be nil

	mu   sync.Mutex
	told time.Time
}

// earlier is what a cell can read of one before it.
type earlier struct {
	rows []Row
	work string
}

// run runs c.
func (b *Bench) run(ctx context.Context, c *Cell) ([]Row, error) {
	rows, err := c.Run(ctx, b)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err() // the cell may have stopped early without an error
	}
	return rows, err
}

// Work returns the cell's own folder, for files that later cells read or from which an interrupted cell continues. The
// folder exists, and its files were written by a run with the same input.
func (b *Bench) Work() string { return b.work }

// WorkOf returns the folder of a cell that After names.
func (b *Bench) WorkOf(key string) string { return b.earlier(key).work }

// Rows returns the rows of a cell that After names.
func (b *Bench) Rows(key string) []Row { return b.earlier(key).rows }

// earlier returns what a cell that After names left. For any other key it panics.
func (b *Bench) earlier(key string) earlier {
	e, ok := b.before[key]
	if !ok {
		panic(fmt.Sprintf("study %s: cell %s reads %q without coming after it", b.study, b.key, key))
	}
	return e
}

// Saved says that Work holds all that is needed to continue from here, as after a checkpoint of a training. A cell that
// is computed on another machine is then continued from here if that machine is lost. Nothing in Work may change until
// Saved returns.
func (b *Bench) Saved() error {
	if b.saved == nil {
		return nil
	}
	return b.saved()
}

// Log reports one line to people. It may be called from any goroutine.
func (b *Bench) Log(format string, args ...any) {
	if b.log != nil {
		b.log("%s: "+format, append([]any{b.key}, args...)...)
	}
}

// Progress reports the progress of the cell to people, at most every ten seconds. It may be called often and from any
// goroutine.
func (b *Bench) Progress(done, all int64) {
	if b.at != nil {
		b.at(done, all)
		return
	}
	if b.log == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Sub(b.told) < 10*time.Second || all <= 0 {
		return
	}
	b.told = now
	b.Log("%d %% (%d of %d)", 100*done/all, done, all)
}
