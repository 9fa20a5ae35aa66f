package queuerank

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/encode"
	peer "clustergym/env/peer/rltune"
	"clustergym/env/sched"
	"clustergym/env/sim"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// The columns of Info. Means are over all jobs of the window; at the end.
const (
	InfoDiscount = iota
	InfoScore
	InfoBase
	InfoBSLD
	InfoWait
	InfoJCT
	InfoMakespan
	infoLen
)

// Env is the environment. Not safe for concurrent use.
type Env struct {
	cfg     Config
	spec    env.Spec
	est     sim.Estimates
	sim     *sim.Simulator
	view    *sim.View
	place   cluster.Placement
	shell   sched.Shell
	session *sched.Session
	base    *baseline
	tuned   *tuned // of Config.RLTune, nil = off
	most    maxima
	seen    *encode.Forecasts // nil = they are not shown
	slot    int               // numbers of a slot in the observation

	queue   queue
	known   []known // by job
	started int
	sum     sums
	score   float64 // S of the base order, if it was played
	dec     sim.Decision
	ends    []ending // scratch of back-filling
	ahead   *ahead   // what Stream plays, nil = an episode
	steer   steering
}

// known is what is computed when a job arrives.
type known struct {
	e, milli int64
	memory   float32
	user     float32
}

var (
	_ sched.Arena     = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
)

// New returns an environment over the windows w. Episodes without a Split are of part. training holds the jobs of the training part;
// features are scaled by their maxima.
func New(cfg Config, spec cluster.Spec, w sched.Windows, training []traces.Job, part traces.Part) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	est := cfg.Estimates
	maker, err := sched.Predictor(w, est, cfg.Forecast)
	if err != nil {
		return nil, err
	}
	s, err := sched.NewSimulator(sim.Config{Comm: "none", Serial: true, Predictor: maker}, spec)
	if err != nil {
		return nil, err
	}
	c := s.View().Cluster()
	if cfg.RLTune != "" && c.Pool() {
		return nil, fmt.Errorf("%s: rltune %s places jobs on nodes, and cluster %s is a counter", ID, cfg.RLTune, spec.Name)
	}
	if cfg.Backfill != "none" && !c.Pool() && cfg.RLTune == "" {
		return nil, fmt.Errorf("%s: backfill %s is for counters (pool:N, swf-N), and %s has nodes", ID, cfg.Backfill, spec.Name)
	}
	e := &Env{cfg: cfg, est: est, sim: s, view: s.View(), session: sched.NewSession(ID, s, w, part, cfg.Load)}
	if e.place, err = cluster.NewPlacement(cfg.Placement); err != nil {
		return nil, err
	}
	switch {
	case cfg.RLTune != "":
		if e.tuned, err = newTuned(e); err != nil {
			return nil, err
		}
		e.queue.tuned = &e.tuned.queue
		if cfg.Reward == "relative" {
			own := cfg
			own.Reward, own.RLTune = "minus", "first" // base policies take the first placement
			if e.tuned.base, err = New(own, spec, w, training, part); err != nil {
				return nil, err
			}
		}
	case cfg.Reward == "relative" || cfg.Filter:
		if !est.Causal() {
			maker = nil // it is for observations
		}
		if e.base, err = newBaseline(&e.cfg, spec, maker); err != nil {
			return nil, err
		}
	}
	e.most = maximaOf(training, e.est)
	if cfg.Peer {
		e.queue.peer = new(peerQueue)
	}
	e.slot = features
	if e.tuned != nil {
		e.slot = peer.Features
	} else if cfg.Forecast.Shown(est) {
		e.seen = encode.NewForecasts(est, c.GPUs())
		e.slot += encode.ForecastLen
	}
	e.spec = e.describe()
	e.shell, e.steer.Facts = sched.NewShell(e.spec), sched.NewFacts(ID, s, e.session.Show)
	return e, nil
}

func (e *Env) describe() env.Spec {
	inf := float32(math.Inf(1))
	doc := "by slot: wait/12 h; e/max; n/G; memory, user, group and executable by their maxima (absent: 1); can start 1 − 1e-5, else 1e-5; all cut at 1 − 1e-5; an empty slot is 0, 1, 1, 1, 1, 1, 1, 0"
	if e.seen != nil {
		doc += "; " + encode.ForecastDoc + "; zeros for an empty slot"
	}
	jobs := env.Field{Name: "jobs", Shape: []int{e.cfg.Visible, e.slot}, High: 1, Unit: "fraction", Doc: doc, Filled: 8}
	if e.tuned != nil {
		jobs.Doc, jobs.High, jobs.Filled = tunedDoc, 1.5, peer.Features
	}
	return env.Spec{
		ID:     ID,
		Obs:    []env.Field{jobs},
		Action: env.ActionSpec{Sizes: []int{e.cfg.Visible}},
		Info: []env.Field{
			{Name: "discount", High: 1, Unit: "fraction", Doc: "gamma: what the value after this step counts for"},
			{Name: "score", Low: -1, High: inf, Unit: "metric", Doc: "S of the window; at the end", Metric: true},
			{Name: "base_score", Low: -1, High: inf, Unit: "metric", Doc: "S of the base order on the same window; at the end, where it was played", Metric: true},
			{Name: "bsld", High: inf, Unit: "ratio", Doc: "mean of max(1, JCT / max(run time, 10 s)); at the end", Metric: true},
			{Name: "wait_s", High: inf, Unit: "seconds", Doc: "mean wait; at the end", Metric: true},
			{Name: "jct_s", High: inf, Unit: "seconds", Doc: "mean job completion time; at the end", Metric: true},
			{Name: "makespan_s", High: inf, Unit: "seconds", Doc: "last finish − first submit; at the end", Metric: true},
		},
		Solved: math.NaN(), NoOp: -1,
	}
}

// Spec implements env.Env.
func (e *Env) Spec() env.Spec { return e.spec }

// Slots returns the jobs that the agent sees, by slot. They belong to the environment.
func (e *Env) Slots() []sim.Job { return e.queue.slots }

// Waiting returns how many jobs wait, visible or not.
func (e *Env) Waiting() int { return e.queue.len() }

// View implements sched.Arena.
func (e *Env) View() *sim.View { return e.view }

// Estimate returns what is known of a job's run time.
func (e *Env) Estimate(j sim.Job) time.Duration { return time.Duration(e.known[j].e) }

// Watch implements sched.Arena. The episode ends once the last job has started. If there is a watcher, the simulator then
// runs on to the last finish, and View shows that state.
func (e *Env) Watch(o sim.Observer) { e.session.Watch(o) }

// Simulate implements sched.Arena. A scheduler with admission commit has the agent's choices, with one exception: of jobs
// submitted at the same time, which the simulator hands out one by one, it may hold the first before it sees the others.
func (e *Env) Simulate(ctx context.Context, ep env.Episode, sch sim.Scheduler, o sim.Observer) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	if _, err := e.draw(ctx, ep); err != nil {
		return err
	}
	return e.session.Play(ctx, sch, o)
}

// First implements sched.Arena. It returns 0, because episodes begin on an empty cluster and all jobs count.
func (e *Env) First() int { return 0 }

// Close implements env.Env.
func (e *Env) Close() error { return e.shell.Close() }

// Reset implements env.Env.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	named, err := e.draw(ctx, ep)
	if err != nil {
		return err
	}
	e.score = math.NaN()
	switch {
	case e.cfg.Reward == "relative" && e.tuned != nil:
		if e.score, err = e.tuned.base.playBase(ctx, ep); err != nil {
			return err
		}
	case e.cfg.Reward == "relative":
		s, err := e.base.play(ctx, e.cfg.Base, e.session.Episode(), ep.Seed)
		if err != nil {
			return err
		}
		e.score = s.score(&e.cfg, e.session.GPUs())
	}
	if err := e.begin(ctx, ep.Seed); err != nil {
		return err
	}
	e.shell.Begin(named)
	e.fill(ts, 0, 0, env.First)
	return nil
}

// begin starts the episode that was drawn and runs to the first choice.
func (e *Env) begin(ctx context.Context, seed uint64) error {
	e.est.Seed, e.steer.on = seed, false
	if err := e.session.Start(); err != nil {
		return err
	}
	e.clear()
	p, err := e.session.Advance(ctx)
	if err != nil {
		return err
	}
	e.follow(p)
	return e.run(ctx)
}

// clear forgets the jobs of the last episode.
func (e *Env) clear() {
	e.queue.reset()
	if e.seen != nil {
		e.seen.Reset()
	}
	e.started, e.sum = 0, sums{}
}

// draw chooses the episode's window. It returns ep with its Split filled in.
func (e *Env) draw(ctx context.Context, ep env.Episode) (env.Episode, error) {
	asked := ep
	for try := uint64(0); ; try++ {
		if try > 0 {
			asked.Seed = rng.At(ep.Seed, rng.Hash("queuerank/filter"), try)
		}
		named, err := e.session.Draw(asked)
		if err != nil {
			return ep, err
		}
		if e.tuned != nil {
			if err := e.tuned.check(e.session.Jobs()); err != nil {
				return ep, err
			}
		}
		named.Seed = ep.Seed
		filtered := e.cfg.Filter && ep.Window < 0 && named.Split == env.SplitTrain
		if filtered && try < 99 { // the hundredth is taken as it is
			s, err := e.base.play(ctx, "sjf", e.session.Episode(), ep.Seed)
			if err != nil {
				return ep, err
			}
			if s.score(&e.cfg, e.session.GPUs()) <= 10 || s.score(&e.cfg, e.session.GPUs()) >= 150 {
				continue
			}
		}
		return named, nil
	}
}

// follow adds the jobs that arrive at p to the queue.
func (e *Env) follow(p *sim.Point) {
	for i := range p.Events {
		if ev := &p.Events[i]; ev.Kind == sim.Submit {
			e.arrive(ev.Job)
		}
	}
}

// wait advances the clock to the next event.
func (e *Env) wait(ctx context.Context) error {
	p, err := e.session.Wait(ctx)
	if err != nil {
		return err
	}
	e.follow(p)
	return nil
}

func (e *Env) arrive(j sim.Job) {
	for int(j) >= len(e.known) {
		e.known = append(e.known, known{})
	}
	t, r := e.view.Trace(j), e.view.Request(j)
	k := known{e: int64(e.est.Of(e.view, j)), milli: int64(r.GPUs * r.Milli), memory: 1, user: 1}
	if t.MemBytes > 0 && e.most.memory > 0 {
		k.memory = min(cut, float32(float64(t.MemBytes)/e.most.memory))
	}
	if e.most.user > 0 { // some users are numbers; Atoi allocates when it fails
		if u, err := strconv.Atoi(t.User); err == nil && u > 0 {
			k.user = min(cut, float32(float64(u)/e.most.user))
		}
	}
	e.known[j] = k
	if e.seen != nil {
		e.seen.Learn(e.view, j, time.Duration(k.e))
	}
	if e.steer.on {
		e.enqueue(j)
		return
	}
	e.queue.add(j, e.view.Pos(j), int64(t.Submit), k.e, k.milli)
}

// leave removes j, which has been back-filled, from the queue.
func (e *Env) leave(j sim.Job) {
	if e.steer.on {
		e.hide(j)
		return
	}
	e.take(j)
}

// take removes j from the queue.
func (e *Env) take(j sim.Job) {
	k := &e.known[j]
	e.queue.drop(j, e.view.Pos(j), int64(e.view.Trace(j).Submit), k.e, k.milli)
}

// run advances until there is a job to choose, all have started, or the clock has run out. The simulator hands out the jobs of one instant one by
// one; the agent is asked after the last of them, with Config.Peer or RLTune after the first.
func (e *Env) run(ctx context.Context) error {
	for e.left() && !e.view.Over() && (e.queue.len() == 0 || !e.cfg.Peer && e.tuned == nil && e.arriving()) {
		if err := e.wait(ctx); err != nil {
			return err
		}
	}
	e.queue.fill(e.cfg.Visible)
	return nil
}

// tryStart starts j if it fits.
func (e *Env) tryStart(j sim.Job) (bool, error) {
	var ok bool
	if e.tuned != nil {
		e.dec.GPUs, ok = e.tuned.place(j, e.dec.GPUs)
	} else {
		e.dec.GPUs, ok = e.place.Place(e.view.Cluster(), e.view.Request(j), e.dec.GPUs)
	}
	if !ok {
		return false, nil
	}
	e.dec.Op, e.dec.Job, e.dec.Until = sim.StartJob, j, 0
	if e.steer.on { // in imagination
		return true, e.steer.Apply(&e.dec)
	}
	if err := e.sim.Apply(&e.dec); err != nil {
		return false, err
	}
	e.started++
	// Nothing can stop it or slow it down, so its end is known.
	t := e.view.Trace(j)
	runs := time.Duration(math.Ceil(float64(t.Work) / e.view.Rate(j)))
	e.sum.add(t, e.view.Now()-t.Submit, runs, e.view.Now())
	return true, nil
}

// Step implements env.Env.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := e.shell.Ready(ctx); err != nil {
		return err
	}
	i, err := e.shell.Index(a)
	if err != nil {
		return err
	}
	if int(i) >= len(e.queue.slots) {
		return e.shell.Masked(i)
	}
	from, before := e.view.Now(), e.sum
	if err := e.step(context.Background(), e.queue.slots[i]); err != nil { // a step is atomic, so it is not cancelled
		e.shell.Break()
		return err
	}
	kind := env.Mid
	switch {
	case e.started == e.session.Len():
		kind = env.Terminated
	case e.view.Over():
		kind = env.Truncated // the clock has run out
	}
	kind = e.shell.Took(a, kind)
	e.fill(ts, e.reward(&before, kind), e.view.Now()-from, kind)
	if kind == env.Terminated {
		return e.session.Finish(context.Background())
	}
	return nil
}

// step holds j until it has started, or the clock has run out, and runs to the next choice.
func (e *Env) step(ctx context.Context, j sim.Job) error {
	e.take(j)
	if e.tuned != nil {
		e.tuned.held = j
	}
	shadow := int64(-1)
	for {
		ok, err := e.tryStart(j)
		if err != nil {
			return err
		}
		if ok || e.view.Over() {
			break
		}
		if e.cfg.Backfill == "easy" {
			if shadow < 0 {
				shadow = e.enough(j)
			}
			if err := e.backfill(shadow); err != nil {
				return err
			}
		}
		if err := e.wait(ctx); err != nil {
			return err
		}
	}
	return e.run(ctx)
}

// reward returns the reward of a step that began with the sums before and led to a time step of kind kind.
func (e *Env) reward(before *sums, kind env.Kind) float64 {
	switch {
	case e.cfg.Reward == "dense":
		return -(e.sum.of(e.cfg.Metric) - before.of(e.cfg.Metric)) / float64(e.session.Len())
	case kind != env.Terminated:
		return 0
	}
	s := e.sum.score(&e.cfg, e.session.GPUs())
	if e.cfg.Reward == "minus" {
		return -s
	}
	return (e.score - s) / max(e.score, s, 1)
}

// show fills what the agent sees.
func (e *Env) show(ts *env.TimeStep) {
	e.encode(ts.Obs)
	clear(ts.Mask)
	for i := range e.queue.slots {
		ts.Mask[i] = true
	}
}

// fill fills the time step.
func (e *Env) fill(ts *env.TimeStep, reward float64, elapsed time.Duration, kind env.Kind) {
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, elapsed
	e.show(ts)
	nan := math.NaN()
	for i := range ts.Info {
		ts.Info[i] = nan
	}
	ts.Info[InfoDiscount] = e.cfg.Gamma
	if kind == env.Terminated {
		n := float64(e.session.Len())
		ts.Info[InfoScore], ts.Info[InfoBase] = e.sum.score(&e.cfg, e.session.GPUs()), e.score
		ts.Info[InfoBSLD], ts.Info[InfoWait], ts.Info[InfoJCT] = e.sum.bsld/n, e.sum.wait/n, e.sum.jct/n
		ts.Info[InfoMakespan] = e.sum.end.Seconds()
	}
}

// features is F of the observation.
const features = 8

// cut is the largest value of a feature.
const cut = 1 - 1e-5

func (e *Env) encode(dst []float32) {
	if e.tuned != nil {
		e.tuned.encode(dst)
		return
	}
	now := e.view.Now()
	if e.seen != nil {
		e.seen.Count(e.view)
	}
	for i := range e.cfg.Visible {
		d := dst[i*e.slot : (i+1)*e.slot]
		if i >= len(e.queue.slots) {
			clear(d)
			d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7] = 0, 1, 1, 1, 1, 1, 1, 0
			continue
		}
		j := e.queue.slots[i]
		k, r := &e.known[j], e.view.Request(j)
		if wait := now - e.view.Trace(j).Submit; e.cfg.Peer {
			d[0] = float32(min(cut, wait.Seconds()/43200)) // the program's arithmetic, to the last bit
		} else {
			d[0] = min(cut, float32(wait.Hours()/12))
		}
		d[1] = min(cut, float32(float64(k.e)/e.most.estimate))
		d[2] = min(cut, float32(float64(k.milli)/1000/float64(e.session.GPUs())))
		d[3], d[4] = k.memory, k.user
		d[5], d[6] = 1, 1 // the workload has no groups or executables
		d[7] = 1e-5
		if e.view.Cluster().Fits(r) {
			d[7] = cut
		}
		if e.seen != nil {
			e.seen.Encode(d[features:], e.view, j)
		}
	}
}

// AppendSnapshot implements env.Snapshotter.
func (e *Env) AppendSnapshot(dst []byte) ([]byte, error) { return e.shell.AppendSnapshot(dst) }

// RestoreSnapshot implements env.Snapshotter.
func (e *Env) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return e.shell.RestoreSnapshot(e, src, ts)
}
