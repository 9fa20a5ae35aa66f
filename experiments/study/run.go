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

	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/internal/shortage"
)

// Options says where and how Run runs a study.
type Options struct {
	Dir  string // folder of the experiment; made if it does not exist
	Plan Plan
	// compute only cells whose keys have this prefix, and the cells that they read; "" = all
	Only   string
	Commit string                           // of the program, recorded in the report; may be ""
	Now    func() time.Time                 // nil = time.Now
	Say    func(format string, args ...any) // called with one line for people, from any goroutine; nil = silent
	// Queue, if set, lets other machines compute cells, except those that measure time. This one helps with the slots that
	// the queue has here, so Plan.Workers counts for cells that run alone only.
	Queue workqueue.Opener
}

// studyFile is the file in the folder that holds the study's name.
const studyFile = "study.txt"

// Run computes the cells of a study that are not kept yet, and reports. If ctx is cancelled, it returns
// fault.ErrInterrupted; the same call then continues.
func Run(ctx context.Context, s Study, opt Options) (*Report, error) {
	if opt.Say == nil {
		opt.Say = func(string, ...any) {}
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	opt.Plan.Workers = max(1, opt.Plan.Workers)
	opt.Plan.heard = new(heard)
	cells, err := s.Cells(opt.Plan)
	if err != nil && !fault.IsMistake(err) && opt.Plan.Changes.some() {
		return nil, fault.Mistakef("with these settings: %w", err) // which the study itself has not checked
	}
	if err != nil {
		return nil, err
	}
	if opt.Plan.Changes.some() && !opt.Plan.heard.asked {
		return nil, fault.Mistakef("experiment %s has no settings that can be changed", s.Name)
	}
	if err := s.check(cells, opt.Plan); err != nil {
		return nil, err
	}
	if opt.Only != "" && !slices.ContainsFunc(cells, func(c Cell) bool { return strings.HasPrefix(c.Key, opt.Only) }) {
		var some []string
		for _, c := range cells[:min(4, len(cells))] {
			some = append(some, c.Key)
		}
		return nil, fault.Mistakef("no cell's name begins with %q; there are %d, such as %s", opt.Only, len(cells),
			strings.Join(some, ", "))
	}
	unlock, err := enter(s.Name, opt.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := writePlan(&s, &opt); err != nil {
		return nil, err
	}
	at, err := places(s.Name, opt.Dir, cells)
	if err != nil {
		return nil, err
	}
	wait := shortage.Patient(ctx, opt.Say)
	for i := range at {
		at[i].wait = wait
	}
	r := &run{study: &s, opt: opt, cells: cells, at: at, rows: make([][]Row, len(cells)), state: make([]state, len(cells)),
		index: map[string]int{}}
	for i, c := range cells {
		r.index[c.Key] = i
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	if opt.Queue != nil && r.all > 0 {
		q, err := opt.Queue(ctx)
		if err != nil {
			return nil, err
		}
		r.remote = &remote{queue: q, put: map[string]string{}}
		err = r.compute(ctx)
		if err := errors.Join(err, q.Close()); err != nil {
			return nil, err
		}
	} else if err := r.compute(ctx); err != nil {
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
		return nil, fault.Mistakef("folder %s: there is a file of that name", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	free, err := safefile.Lock(dir)
	if errors.Is(err, safefile.ErrLocked) {
		return nil, fault.Mistakef("another process runs an experiment in %s; wait for it, or name another folder", dir)
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	mark := filepath.Join(dir, studyFile)
	if b, err := ordinary.Read(mark, ordinary.Document); err == nil {
		if had := strings.TrimSpace(string(b)); had != name {
			return nil, fault.Mistakef("%s holds the experiment %s, not %s; name another folder", dir, had, name)
		}
		return free, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if len(entries) > 0 {
		return nil, fault.Mistakef("folder %s is not empty and holds no experiment; name another one", dir)
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
	inWork
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

	remote *remote // nil = all cells are computed here
	alone  bool    // with remote: whether a cell that runs alone has begun and not ended

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
	kept       bool   // its file has been written
	worker     string // on another machine, "" = here
}

// compute runs the waiting cells in parallel, at most one for each worker, and on a queue as many as can run.
func (r *run) compute(ctx context.Context) error {
	r.begun = r.opt.Now()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ends := make(chan finished)
	free, busy := r.opt.Plan.Workers, 0
	failed, failure := -1, error(nil)
	for {
		for failure == nil && ctx.Err() == nil {
			i, work := r.begin(running, busy, &free)
			if i < 0 {
				break
			}
			busy++
			r.state[i] = inWork
			go func() { ends <- work() }()
		}
		if busy == 0 {
			break
		}
		f := <-ends
		busy--
		free += f.workers
		r.state[f.i] = waiting
		r.alone = r.alone && !r.cells[f.i].Alone
		if f.err == nil && !f.kept {
			f.err = r.at[f.i].end(f.rows, f.wall)
		}
		if f.err != nil {
			if failure == nil || f.i < failed && !errors.Is(f.err, context.Canceled) {
				failed, failure = f.i, f.err
			}
			if r.remote != nil {
				stop() // what is in the queue has not begun here, and what other machines compute is not lost
			}
			continue
		}
		r.rows[f.i], r.state[f.i] = f.rows, done
		r.told(f)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; %d of %d cells are kept in %s, and the same command goes on", fault.ErrInterrupted,
			r.count(done), len(r.cells), r.opt.Dir)
	}
	if failure != nil {
		return fmt.Errorf("cell %s: %w", r.cells[failed].Key, failure)
	}
	return nil
}

// begin chooses the next cell to run while busy others are running, and returns its index and a function that computes
// it. The index is -1 if no cell can run now. begin subtracts the cell's workers from free.
func (r *run) begin(ctx context.Context, busy int, free *int) (i int, work func() finished) {
	if r.remote != nil {
		if i = r.nextRemote(); i < 0 {
			return i, nil
		}
		if !r.cells[i].Alone {
			return i, func() finished { return r.elsewhere(ctx, i) }
		}
		r.alone = true
		return i, func() (f finished) {
			// Other machines go on meanwhile.
			resume, err := r.remote.queue.Pause(ctx)
			if err != nil {
				return finished{i: i, err: err}
			}
			defer resume()
			f = r.here(ctx, i, max(1, r.opt.Plan.Workers))
			f.workers = 0 // they are not of free
			return f
		}
	}
	if *free == 0 {
		return -1, nil
	}
	i, ready := r.next(busy)
	if i < 0 {
		return i, nil
	}
	// If there are more workers than cells that can run, a cell gets several.
	n := max(1, *free/ready)
	if r.cells[i].Alone {
		n = *free
	}
	*free -= n
	return i, func() finished { return r.here(ctx, i, n) }
}

// here computes cell i on this machine.
func (r *run) here(ctx context.Context, i, workers int) finished {
	begun := r.opt.Now()
	rows, err := r.cell(ctx, i, workers)
	return finished{i: i, workers: workers, rows: rows, err: err, wall: r.opt.Now().Sub(begun)}
}

// nextRemote returns the first cell that is ready for the queue or, if it measures time, for this machine. It returns
// -1 if no cell is.
func (r *run) nextRemote() int {
	for i, st := range r.state {
		if st == waiting && r.ready(i) && !(r.cells[i].Alone && r.alone) {
			return i
		}
	}
	return -1
}

// ready reports whether the cells that cell i reads are done.
func (r *run) ready(i int) bool {
	return !slices.ContainsFunc(r.cells[i].After, func(a string) bool { return r.state[r.index[a]] != done })
}

// next returns the first cell that can run beside busy others, and how many cells can. It returns -1 if none can.
func (r *run) next(busy int) (first, ready int) {
	first = -1
	for i, st := range r.state {
		switch st {
		case inWork:
			if r.cells[i].Alone {
				return -1, 0
			}
		case waiting:
			if !r.ready(i) {
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
	c := &r.cells[i]
	b := &Bench{
		Dir: r.opt.Dir, Workers: workers, study: r.study.Name, key: c.Key, work: r.at[i].work, now: r.opt.Now,
		told:   r.opt.Now(),
		before: map[string]earlier{}, log: r.opt.Say,
	}
	for _, a := range c.After {
		b.before[a] = earlier{r.rows[r.index[a]], r.at[r.index[a]].work}
	}
	return b.run(ctx, c)
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
	where := ""
	if f.worker != "" {
		where = "  on " + f.worker
	}
	r.opt.Say("[%d/%d] %s  %s%s%s", r.ended, r.all, r.cells[f.i].Key, f.wall.Round(time.Millisecond), where, eta)
}
