package twin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Backtest says how forecasts are tried on a schedule of the past.
type Backtest struct {
	Config
	Trace workload.TraceConfig
	On    cluster.Spec
	// Simulated lets the scheduler of Config start the jobs; else they start as the trace has recorded it.
	Simulated bool
	From      float64 // share of the jobs after which the moments begin
	Until     float64 // and before which they end
	Moments   int
	Progress  func(done, of int)
}

// Backtested is what came of it.
type Backtested struct {
	Checked
	Scheduler string `json:"scheduler"`
	LeftOut   int    `json:"left_out"` // jobs of which nobody knows when they started, or that find no room then
}

// Run plays the schedule, forecasts at evenly spaced moments, with what was known then, and scores the forecasts.
func (b *Backtest) Run(ctx context.Context) (*Backtested, error) {
	jobs, _, err := workload.LoadTraceContext(ctx, b.Trace)
	if err != nil {
		return nil, err
	}
	jobs = slices.DeleteFunc(jobs, func(j traces.Job) bool { return j.GPUs < 1 || j.Work <= 0 })
	if len(jobs) < 100 {
		return nil, fault.Mistakef("%s has %d jobs with GPUs and run times; want 100 or more", b.Trace.File, len(jobs))
	}
	for i := range jobs {
		j := &jobs[i]
		j.GPUMilli, j.MinGPUs, j.MaxGPUs, j.CPUMilli, j.MemBytes, j.Profile, j.Graph = 1000, 0, 0, 0, 0, nil, nil
		if j.Assumed || j.Estimate <= 0 { // the run time itself, which nobody knew
			j.Estimate, j.Assumed = b.Limit, true
		}
		j.Estimate = max(j.Estimate, time.Second)
	}
	r := &Backtested{Scheduler: b.Scheduler.Name}
	var starts []started
	if b.Simulated {
		starts, err = b.simulated(ctx, jobs)
	} else {
		starts, err = b.recorded(jobs)
	}
	if err != nil {
		return nil, err
	}
	lines, truth, err := b.follow(ctx, jobs, starts, r)
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fault.Mistakef("no job waits at any of the %d moments; want more of them, or another part of the trace",
			b.Moments)
	}
	r.Checked = *check(lines, truth, b.Seed)
	return r, nil
}

// started is when and where a job starts; less than 0 = never.
type started struct {
	at   time.Duration
	gpus []cluster.GPU
}

// recorded returns the starts of the trace.
func (b *Backtest) recorded(jobs []traces.Job) ([]started, error) {
	if b.On.Pool == 0 {
		return nil, fault.Mistakef("%s: a recorded schedule does not say on which nodes jobs ran; want pool:N, or %s",
			fault.Key("on"), fault.Key("simulated"))
	}
	f, err := traces.OrdinaryFiles().Open(context.Background(), b.Trace.File)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer func() { _ = f.Close() }() // nothing is written
	list, err := recorded(bufio.NewReader(f), b.Trace.File)
	if err != nil {
		return nil, err
	}
	wait := map[string]time.Duration{}
	for _, x := range list {
		if _, twice := wait[x.ID]; !twice && !x.Start.IsZero() {
			wait[x.ID] = x.Start.Sub(x.Submit)
		}
	}
	starts, some := make([]started, len(jobs)), false
	for i := range jobs {
		starts[i].at = -1
		if w, ok := wait[jobs[i].ID]; ok && w >= 0 {
			starts[i].at, some = jobs[i].Submit+w, true
		}
	}
	if !some {
		return nil, fault.Mistakef("%s does not say when its jobs started; want one that does, or %s", b.Trace.File,
			fault.Key("simulated"))
	}
	return starts, nil
}

// simulated returns the starts under the scheduler.
func (b *Backtest) simulated(ctx context.Context, jobs []traces.Job) ([]started, error) {
	cfg := sim.DefaultConfig()
	cfg.Comm = "none"
	s, err := sim.New(cfg, b.On)
	if err != nil {
		return nil, err
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		return nil, err
	}
	if b.Scheduler.causal() {
		return nil, fault.Mistakef("%s %s: a simulated schedule knows time limits alone", fault.Key("scheduler"),
			b.Scheduler.Name)
	}
	sch, err := schedulers.New(b.Scheduler.cfg)
	if err != nil {
		return nil, err
	}
	starts := make([]started, len(jobs))
	for i := range starts {
		starts[i].at = -1
	}
	c := b.On
	shape, err := cluster.New(c)
	if err != nil {
		return nil, err
	}
	var fits []int // by position
	for i := range jobs {
		if _, ok := shape.Request(&jobs[i]); ok {
			fits = append(fits, i)
		}
	}
	err = sim.Run(ctx, s, sch, noter(func(v *sim.View, p *sim.Point) {
		for i := range p.Events {
			if e := &p.Events[i]; e.Kind == sim.Start {
				starts[fits[v.Pos(e.Job)]] = started{e.At, slices.Clone(e.GPUs)}
			}
		}
	}))
	return starts, err
}

// noter is a sim.Observer.
type noter func(v *sim.View, p *sim.Point)

// Observe implements sim.Observer.
func (n noter) Observe(v *sim.View, p *sim.Point) error {
	n(v, p)
	return nil
}

// happening is something that the schedule says.
type happening struct {
	at   time.Duration
	kind sim.EventKind
	job  int
}

// follow plays the schedule and forecasts.
func (b *Backtest) follow(ctx context.Context, jobs []traces.Job, starts []started,
	r *Backtested) ([]line, *Truth, error) {
	e := &Eye{Estimates: b.Predictor}
	if err := e.open(b.On); err != nil {
		return nil, nil, err
	}
	if err := e.sim.Follow(sim.Following{Estimates: b.Predictor}); err != nil {
		return nil, nil, err
	}
	var all []happening
	truth := NewTruth()
	truth.whole = true
	epoch := time.Unix(0, 0).UTC()
	for i := range jobs {
		if starts[i].at < 0 {
			r.LeftOut++
			continue
		}
		all = append(all, happening{jobs[i].Submit, sim.Submit, i}, happening{starts[i].at, sim.Start, i},
			happening{starts[i].at + jobs[i].Work, sim.Finish, i})
		truth.add(StartLine{jobs[i].ID, jobs[i].GPUs, epoch.Add(jobs[i].Submit), epoch.Add(starts[i].at)})
	}
	order := func(k sim.EventKind) int { // what frees GPUs comes first
		return map[sim.EventKind]int{sim.Finish: 0, sim.Submit: 1, sim.Start: 2}[k]
	}
	slices.SortStableFunc(all, func(x, y happening) int {
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(order(x.kind), order(y.kind)), cmp.Compare(x.job, y.job))
	})
	at := func(share float64) time.Duration { return jobs[min(len(jobs)-1, int(share*float64(len(jobs))))].Submit }
	from, until := at(b.From), at(b.Until)
	var lines []line
	index, ended := map[string]int{}, make([]bool, len(jobs))
	next := 0
	for m := range b.Moments {
		now := from + time.Duration(float64(until-from)*float64(m)/float64(b.Moments))
		for ; next < len(all) && all[next].at <= now; next++ {
			h := &all[next]
			if h.kind == sim.Finish {
				ended[h.job] = true
			}
			if err := b.tell(e, jobs, starts, h, index, r); err != nil {
				return nil, nil, err
			}
		}
		if _, err := e.sim.Look(now); err != nil {
			return nil, nil, err
		}
		st := b.state(e, epoch, now, jobs, starts, index)
		if b.Progress != nil {
			b.Progress(m, b.Moments)
		}
		if len(st.Jobs) == 0 || st.Jobs[len(st.Jobs)-1].Runs {
			continue // nothing waits
		}
		cfg := b.Config
		if cfg.Arrives { // of those that are known whole
			first := 0
			for first < len(jobs) && jobs[first].Submit < now-90*day {
				first++
			}
			cfg.History = nil
			for i := first; i < len(jobs) && jobs[i].Submit < now; i++ {
				if ended[i] {
					cfg.History = append(cfg.History, jobs[i])
				}
			}
		}
		f, err := Forecast(ctx, &cfg, st, nil)
		if err != nil {
			return nil, nil, err
		}
		lines = append(lines, line{Log: logName, Report: Report{At: f.At, Horizon: f.Horizon, Waiting: f.Waiting}})
	}
	return lines, truth, nil
}

// tell tells the simulator what the schedule says. A job that finds no room, because the record contradicts itself, is
// left out.
func (b *Backtest) tell(e *Eye, jobs []traces.Job, starts []started, h *happening, index map[string]int,
	r *Backtested) error {
	j := &jobs[h.job]
	f := sim.Fact{At: h.at, Kind: h.kind, ID: j.ID}
	switch h.kind {
	case sim.Submit:
		t := *j
		t.Work, f.Job = 0, &t
		index[j.ID] = h.job
	case sim.Start:
		f.GPUs = starts[h.job].gpus
	}
	if h.kind != sim.Submit && index[j.ID] != h.job {
		return nil
	}
	_, err := e.sim.Tell(&f)
	if h.kind == sim.Finish {
		delete(index, j.ID)
	}
	if h.kind == sim.Start && errors.Is(err, sim.ErrFact) {
		r.LeftOut++
		_, err = e.sim.Tell(&sim.Fact{At: h.at, Kind: sim.Drop, ID: j.ID})
	}
	if errors.Is(err, sim.ErrFact) {
		return nil //nolint:nilerr // a job that has been left out
	}
	return err
}

// state is what one sees at this moment.
func (b *Backtest) state(e *Eye, epoch time.Time, now time.Duration, jobs []traces.Job, starts []started,
	index map[string]int) *State {
	v := e.sim.View()
	st := &State{At: epoch.Add(now), Now: now, Cluster: b.Trace.File, Spec: b.On}
	add := func(list []sim.Job, runs bool) {
		from := len(st.Jobs)
		for _, k := range list {
			j := jobOf(v, k)
			if j.Runs = runs; runs {
				i := index[j.ID]
				j.Start, j.Held = starts[i].at, starts[i].gpus
			}
			st.Jobs = append(st.Jobs, j)
		}
		slices.SortStableFunc(st.Jobs[from:], func(x, y Job) int {
			return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Submit, y.Submit), cmp.Compare(x.ID, y.ID))
		})
	}
	add(v.Running(), true)
	add(v.Waiting(), false)
	return st
}
