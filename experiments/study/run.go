package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/experiments/safefile"
)

// ErrInterrupted is returned by a Run whose context was cancelled. All finished cells are kept.
var ErrInterrupted = errors.New("interrupted")

// Options says where and how Run runs a study.
type Options struct {
	Dir    string // folder of the experiment; made if it does not exist
	Plan   Plan
	Only   string                           // compute only cells whose keys have this prefix, and the cells that they read; "" = all
	Commit string                           // of the program, recorded in the report; may be ""
	Now    func() time.Time                 // nil = time.Now
	Say    func(format string, args ...any) // called with one line for people, from any goroutine; nil = silent
}

// studyFile is the file in the folder that holds the study's name.
const studyFile = "study.txt"

// Run computes the cells of a study that are not kept yet, and reports. If ctx is cancelled, it returns ErrInterrupted; the
// same call then continues.
func Run(ctx context.Context, s Study, opt Options) (*Report, error) {
	if opt.Say == nil {
		opt.Say = func(string, ...any) {}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Plan.Workers = max(1, opt.Plan.Workers)
	cells, err := s.Cells(opt.Plan)
	if err != nil {
		return nil, err
	}
	s.check(cells)
	if opt.Only != "" && !slices.ContainsFunc(cells, func(c Cell) bool { return strings.HasPrefix(c.Key, opt.Only) }) {
		var some []string
		for _, c := range cells[:min(4, len(cells))] {
			some = append(some, c.Key)
		}
		return nil, mistake("no cell's name begins with %q; there are %d, such as %s", opt.Only, len(cells), strings.Join(some, ", "))
	}
	unlock, err := enter(s.Name, opt.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	at, err := places(s.Name, opt.Dir, cells)
	if err != nil {
		return nil, err
	}
	r := &run{study: &s, opt: opt, cells: cells, at: at, rows: make([][]Row, len(cells)), state: make([]state, len(cells)), index: map[string]int{}}
	for i, c := range cells {
		r.index[c.Key] = i
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	if err := r.compute(ctx); err != nil {
		return nil, err
	}
	var rows []Row
	for _, own := range r.rows {
		rows = append(rows, own...)
	}
	missing := 0
	for _, st := range r.state {
		if st != done {
			missing++
		}
	}
	return report(&s, &opt, rows, len(cells), missing)
}

// enter makes and locks the folder. A folder with other contents is the user's mistake.
func enter(name, dir string) (unlock func(), err error) {
	if i, err := os.Stat(dir); err == nil && !i.IsDir() {
		return nil, mistake("folder %s: there is a file of that name", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &InputError{err}
	}
	free, err := safefile.Lock(dir)
	if errors.Is(err, safefile.ErrLocked) {
		return nil, mistake("another process runs an experiment in %s; wait for it, or name another folder", dir)
	}
	if err != nil {
		return nil, &InputError{err}
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	mark := filepath.Join(dir, studyFile)
	if b, err := os.ReadFile(mark); err == nil {
		if had := strings.TrimSpace(string(b)); had != name {
			return nil, mistake("%s holds the experiment %s, not %s; name another folder", dir, had, name)
		}
		return free, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &InputError{err}
	}
	if len(entries) > 0 {
		return nil, mistake("folder %s is not empty and holds no experiment; name another one", dir)
	}
	if err := safefile.Write(mark, []byte(name+"\n")); err != nil {
		return nil, err
	}
	return free, nil
}

// state is the progress of a cell.
type state uint8

const (
	waiting state = iota
	running
	done
	left // not wanted
)

// run is the state of Run.
type run struct {
	study *Study
	opt   Options
	cells []Cell
	at    []place
	rows  [][]Row
	state []state
	index map[string]int

	mu    sync.Mutex // guards the fields below
	begun time.Time
	ended int
	all   int
}

// load reads the kept cells and decides which cells are to be computed.
func (r *run) load() error {
	files := make([]bool, len(r.cells))
	for i := range r.cells {
		rows, left, ok, err := r.at[i].read()
		switch {
		case err != nil:
			r.opt.Say("%s is damaged (%v); it is computed again", r.at[i].file, err)
		case ok:
			r.rows[i], r.state[i], files[i] = rows, done, left
		}
	}
	// A wanted cell needs the cells that it reads, with their files.
	wanted := make([]bool, len(r.cells))
	for i := len(r.cells) - 1; i >= 0; i-- {
		if strings.HasPrefix(r.cells[i].Key, r.opt.Only) && r.state[i] != done {
			wanted[i] = true
		}
		if !wanted[i] {
			continue
		}
		for _, a := range r.cells[i].After {
			k := r.index[a]
			if r.state[k] == done && files[k] {
				if there, err := r.at[k].left(); err != nil {
					return err
				} else if !there {
					r.opt.Say("the files of %s are gone; it is computed again", a)
					r.state[k] = waiting
				}
			}
			if r.state[k] != done {
				wanted[k] = true
			}
		}
	}
	for i := range r.cells {
		switch {
		case wanted[i]:
			r.all++
		case r.state[i] != done:
			r.state[i] = left
		}
	}
	if had := len(r.cells) - r.all; had > 0 && r.opt.Only == "" {
		r.opt.Say("%d of %d cells are kept from before", had, len(r.cells))
	}
	return nil
}

// finished is the outcome of a cell.
type finished struct {
	i, workers int
	rows       []Row
	err        error
	wall       time.Duration
}

// compute runs the waiting cells in parallel, at most one for each worker.
func (r *run) compute(ctx context.Context) error {
	r.begun = r.opt.Now()
	ends := make(chan finished)
	free, busy := r.opt.Plan.Workers, 0
	failed, failure := -1, error(nil)
	for {
		for failure == nil && ctx.Err() == nil && free > 0 {
			i, ready := r.next(busy)
			if i < 0 {
				break
			}
			// If there are more workers than cells that can run, a cell gets several.
			n := max(1, free/ready)
			if r.cells[i].Alone {
				n = free
			}
			free -= n
			busy++
			r.state[i] = running
			go func() {
				begun := r.opt.Now()
				rows, err := r.cell(ctx, i, n)
				ends <- finished{i, n, rows, err, r.opt.Now().Sub(begun)}
			}()
		}
		if busy == 0 {
			break
		}
		f := <-ends
		busy--
		free += f.workers
		r.state[f.i] = waiting
		if f.err == nil {
			f.err = r.at[f.i].end(f.rows, f.wall)
		}
		if f.err != nil {
			if failure == nil || f.i < failed {
				failed, failure = f.i, f.err
			}
			continue
		}
		r.rows[f.i], r.state[f.i] = f.rows, done
		r.told(f)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; %d of %d cells are kept in %s, and the same command goes on", ErrInterrupted, r.count(done), len(r.cells), r.opt.Dir)
	}
	if failure != nil {
		return fmt.Errorf("cell %s: %w", r.cells[failed].Key, failure)
	}
	return nil
}

// next returns the first cell that can run beside busy others, and how many cells can. It returns -1 if none can.
func (r *run) next(busy int) (first, ready int) {
	first = -1
	for i, st := range r.state {
		switch st {
		case running:
			if r.cells[i].Alone {
				return -1, 0
			}
		case waiting:
			if slices.ContainsFunc(r.cells[i].After, func(a string) bool { return r.state[r.index[a]] != done }) {
				continue
			}
			if r.cells[i].Alone && (busy > 0 || first >= 0) {
				continue
			}
			if first < 0 {
				first = i
			}
			ready++
			if r.cells[i].Alone {
				return first, ready
			}
		}
	}
	return first, ready
}

// count returns the number of cells in a state.
func (r *run) count(st state) (n int) {
	for _, s := range r.state {
		if s == st {
			n++
		}
	}
	return n
}

// cell runs one cell.
func (r *run) cell(ctx context.Context, i, workers int) ([]Row, error) {
	if err := r.at[i].begin(); err != nil {
		return nil, err
	}
	b := &Bench{Dir: r.opt.Dir, Workers: workers, run: r, cell: i, told: r.opt.Now()}
	rows, err := r.cells[i].Run(ctx, b)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err() // the cell may have stopped early without an error
	}
	return rows, err
}

// told reports that a cell is finished, and estimates when all will be.
func (r *run) told(f finished) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	eta := ""
	if left := r.all - r.ended; left > 0 {
		rest := time.Duration(float64(r.opt.Now().Sub(r.begun)) / float64(r.ended) * float64(left))
		eta = "  eta " + rest.Round(time.Second).String()
	}
	r.opt.Say("[%d/%d] %s  %s%s", r.ended, r.all, r.cells[f.i].Key, f.wall.Round(time.Millisecond), eta)
}

// Bench gives a running cell its folder, its workers, and the results of the cells that it reads. It belongs to the cell's
// goroutine, except Progress and Log. A Bench that no Run made, as in tests, has only its fields, and Progress and Log do
// nothing.
type Bench struct {
	Dir     string // folder of the experiment
	Workers int    // goroutines that the cell may use at once; they must not influence its rows

	run  *run
	cell int
	mu   sync.Mutex
	told time.Time
}

// Work returns the cell's own folder, for files that later cells read or from which an interrupted cell continues. The folder
// exists, and its files were written by a run with the same input.
func (b *Bench) Work() string { return b.run.at[b.cell].work }

// WorkOf returns the folder of a cell that After names.
func (b *Bench) WorkOf(key string) string { return b.run.at[b.before(key)].work }

// Rows returns the rows of a cell that After names.
func (b *Bench) Rows(key string) []Row { return b.run.rows[b.before(key)] }

// before returns the index of a cell that After names. For any other key it panics.
func (b *Bench) before(key string) int {
	if !slices.Contains(b.run.cells[b.cell].After, key) {
		panic(fmt.Sprintf("study %s: cell %s reads %q without coming after it", b.run.study.Name, b.run.cells[b.cell].Key, key))
	}
	return b.run.index[key]
}

// Log reports one line to people. It may be called from any goroutine.
func (b *Bench) Log(format string, args ...any) {
	if b.run == nil {
		return
	}
	b.run.opt.Say("%s: "+format, append([]any{b.run.cells[b.cell].Key}, args...)...)
}

// Progress reports the progress of the cell to people, at most every ten seconds. It may be called often and from any
// goroutine.
func (b *Bench) Progress(done, all int64) {
	if b.run == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.run.opt.Now()
	if now.Sub(b.told) < 10*time.Second || all <= 0 {
		return
	}
	b.told = now
	b.Log("%d %% (%d of %d)", 100*done/all, done, all)
}
