package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"clustergym/internal/rng"
	"clustergym/traces"
)

// The streams of seeds of draws. Training and its workload use others.
const (
	Test       = "test draws"
	Validation = "validation draws"
	Tuning     = "tuning draws" // on which gymctl tune searches
	Spare      = "spare draws"  // of players that have none left to play
	pilots     = "pilot draws"
)

// Generator generates the jobs of a draw, n before those are left out that the environment does not take, in order of
// submit. The same seed and n give the same jobs.
type Generator func(ctx context.Context, seed uint64, n int) ([]traces.Job, error)

// Streams are the streams of one evaluation, by number. Safe for concurrent use.
type Streams struct {
	cfg   Config // with its defaults
	draws *draws // nil = recorded
	log   traces.Window
	// stretch returns a stretch of a recorded workload; nil = draws, or the one stream log
	stretch func(i int) traces.Window
}

// Generated returns independent draws of a generator. kept is the share of its jobs that the environment takes, name
// that of the stream of their seeds, which begins with seed.
func Generated(cfg Config, generate Generator, kept float64, seed uint64, name string) *Streams {
	cfg = cfg.Filled()
	return &Streams{cfg: cfg, draws: &draws{generate: generate, kept: kept, seed: rng.At(seed, rng.Hash(name))}}
}

// ErrAtOnce says that a workload has no streams: over no time there is no load, and nothing keeps up with it.
var ErrAtOnce = errors.New("its jobs all arrive at once: there is no load, hence no stream; want eval.protocol windows")

// atOnce reports whether the counted jobs of w and the first one after them arrive at once.
func atOnce(w *traces.Window) bool {
	last := min(w.Warm+w.Counted, len(w.Jobs)-1)
	return w.Jobs[last].Submit <= w.Jobs[w.Warm].Submit
}

// lastPart is the part of a recorded stream, one in so many jobs, that arrives after those that count.
const lastPart = 20

// leastJobs is the smallest number of jobs of a recorded part of which anything can be said.
const leastJobs = 20

// Stretches returns stretches of the training part of a recorded workload, each as long as a draw of cfg, or half as
// long as the part if that is less. Each begins at a job that follows from seed and its number, so that stretches
// overlap.
func Stretches(cfg Config, w *traces.Windows, seed uint64) (*Streams, error) {
	cfg = cfg.Filled()
	_, hi := traces.Training.Bounds(len(w.All()))
	if length := cfg.Warm + cfg.Jobs; length > hi/2 {
		cfg.Warm = int(float64(hi/2) * float64(cfg.Warm) / float64(length))
		cfg.Jobs = hi/2 - cfg.Warm
	}
	if cfg.Jobs < 1 {
		return nil, fmt.Errorf("the training part has %d jobs: too few for streams", hi)
	}
	length := cfg.Warm + cfg.Jobs
	return &Streams{cfg: cfg, stretch: func(i int) traces.Window {
		from := int(rng.At(seed, rng.Hash(Tuning), uint64(i)) % uint64(hi-length))
		end := min(hi, from+2*length)
		return traces.Window{Jobs: w.All()[from:end:end], Warm: cfg.Warm, Counted: cfg.Jobs, First: from + cfg.Warm}
	}}, nil
}

// Recorded returns the one stream of a recorded workload: part, warmed up by as many jobs before it. The last jobs of
// the part do not count: the log ends while they wait.
func Recorded(w *traces.Windows, part traces.Part) (*Streams, error) {
	lo, hi := part.Bounds(len(w.All()))
	warm := max(0, lo-(hi-lo))
	last := max(1, (hi-lo)/lastPart)
	if least := map[traces.Part]int{traces.Validation: 2, traces.Test: leastJobs}[part]; least == 0 || hi-lo < least {
		return nil, fmt.Errorf("the %v part has %d jobs: too few for a stream, which needs %d; use a longer trace", part,
			hi-lo, leastJobs)
	}
	s := &Streams{log: traces.Window{Jobs: w.All()[warm:hi:hi], Warm: lo - warm, Counted: hi - lo - last, First: lo}}
	if atOnce(&s.log) {
		return nil, ErrAtOnce
	}
	return s, nil
}

// Log reports whether there is one recorded stream, which is cut into blocks; else the streams are independent draws.
func (s *Streams) Log() bool { return s.draws == nil && s.stretch == nil }

// Count returns how many streams there are.
func (s *Streams) Count() int {
	if s.Log() {
		return 1
	}
	return s.cfg.Draws
}

// Warm returns how many jobs come before those that count.
func (s *Streams) Warm() int {
	if s.Log() {
		return s.log.Warm
	}
	return s.cfg.Warm
}

// Counted returns how many jobs of a stream count.
func (s *Streams) Counted() int {
	if s.Log() {
		return s.log.Counted
	}
	return s.cfg.Jobs
}

// Most returns how many jobs a stream has at most, with those before and after the ones that count.
func (s *Streams) Most() int {
	if s.Log() {
		return len(s.log.Jobs)
	}
	return mostOf(s.cfg.Warm, s.cfg.Jobs)
}

// At returns stream i.
func (s *Streams) At(ctx context.Context, i int) (traces.Window, error) {
	if i < 0 || i >= s.Count() {
		return traces.Window{}, fmt.Errorf("stream %d, want 0 to %d", i, s.Count()-1)
	}
	if s.Log() {
		return s.log, nil
	}
	if s.stretch != nil {
		return s.stretch(i), nil
	}
	return s.draws.at(ctx, &s.cfg, i)
}

// draws generates draws when they are asked for, and keeps the last ones.
type draws struct {
	generate Generator
	kept     float64
	seed     uint64

	mu   sync.Mutex
	last []*draw // the last asked for first
}

type draw struct {
	number, warm int
	window       func() (traces.Window, error)
}

// mostKept is how many draws are kept. Games are played draw by draw, so that it is enough for all goroutines.
const mostKept = 8

func (d *draws) at(ctx context.Context, cfg *Config, i int) (traces.Window, error) {
	d.mu.Lock()
	var found *draw
	for k, x := range d.last {
		if x.number == i && x.warm == cfg.Warm {
			found = x
			copy(d.last[1:k+1], d.last[:k])
			d.last[0] = found
			break
		}
	}
	if found == nil {
		found = &draw{number: i, warm: cfg.Warm}
		found.window = sync.OnceValues(func() (traces.Window, error) {
			return d.make(context.WithoutCancel(ctx), cfg.Warm, cfg.Jobs, rng.At(d.seed, uint64(i)))
		})
		d.last = append([]*draw{found}, d.last...)
		d.last = d.last[:min(len(d.last), mostKept)]
	}
	d.mu.Unlock()
	return found.window()
}

// tail is how many times as many jobs a draw has as come before the end of those that count. Policies that let jobs
// starve need it: one counted job of a thousand may wait for longer than all the counted ones arrive, and where
// arrivals stop before it ends (Measure.After), it ends early and the mean wait is too low by a quarter. Playing stops
// when the counted jobs have ended, so that the others cost little.
const tail = 10

// make makes the draw of a seed. The jobs that arrive after twice as many as come before the end of the counted ones
// are those of further draws: a generator may give a workload of a certain length the mix of the whole, and the counted
// jobs of one that is ten times as long would vary more from draw to draw than they do in workloads of their own
// length.
func (d *draws) make(ctx context.Context, warm, counted int, seed uint64) (traces.Window, error) {
	most := mostOf(warm, counted)
	part := min(most, 2*(warm+counted))
	jobs, err := d.some(ctx, seed, part, warm+counted)
	if err != nil {
		return traces.Window{}, err
	}
	for k := uint64(1); len(jobs) < most; k++ {
		more, err := d.some(ctx, rng.At(seed, k), part, 1)
		if err != nil {
			return traces.Window{}, err
		}
		after := jobs[len(jobs)-1].Submit
		if n := len(jobs); n > 1 { // the mean time between two jobs
			after += (after - jobs[0].Submit) / time.Duration(n-1)
		}
		first := more[0].Submit
		for _, j := range more {
			j.ID = fmt.Sprintf("%d+%s", k, j.ID)
			j.Submit += after - first
			jobs = append(jobs, j)
		}
	}
	w := traces.Window{Jobs: jobs[:most], Warm: warm, Counted: counted, First: warm}
	if atOnce(&w) {
		return traces.Window{}, ErrAtOnce
	}
	return w, nil
}

// some generates about n jobs that the environment takes, more than least.
func (d *draws) some(ctx context.Context, seed uint64, n, least int) ([]traces.Job, error) {
	for ask := int(float64(n)/max(d.kept, 1e-3)*1.01) + 64; ; ask *= 2 {
		jobs, err := d.generate(ctx, seed, ask)
		if err != nil {
			return nil, err
		}
		if len(jobs) > least {
			return jobs[:min(len(jobs), n)], nil
		}
		if ask > 4*mostJobs {
			return nil, fmt.Errorf("the environment takes %d of %d jobs that were generated: too few for a draw", len(jobs), ask)
		}
	}
}

// mostOf returns how many jobs a draw has.
func mostOf(warm, counted int) int {
	if warm == 0 {
		return counted + counted/4 // a pilot
	}
	return tail * (warm + counted)
}

// pilotDraws is how many pilot draws there are.
const pilotDraws = 16

// Pilots returns the pilot draws of c, in which all jobs but the last ones count, and how many do in each: twice those
// of the warm-up and the counted ones.
func Pilots(c Config, generate Generator, kept float64, seed uint64) (*Streams, int) {
	c = c.Filled()
	n := 2 * (c.Warm + c.Jobs)
	c.Draws, c.Warm, c.Jobs = pilotDraws, 0, n
	return &Streams{cfg: c, draws: &draws{generate: generate, kept: kept, seed: rng.At(seed, rng.Hash(pilots))}}, n
}
