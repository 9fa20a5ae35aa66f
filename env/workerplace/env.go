package workerplace

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/rng"
	"clustergym/traces"
)

// Env is WorkerPlace-v1, or version 2 of it. It implements env.Env, env.Tasker, env.Snapshotter, env.Renderer and
// env.Painter. Not safe for concurrent use.
type Env struct {
	cfg    Config
	spec   env.Spec
	tasks  []env.Field
	truth  *Truth
	speeds Speeds      // instead of the truth, nil = the truth
	work   *Workload   // nil = jobs are drawn
	part   traces.Part // of work, for episodes that name none
	rec    Recorder

	shell   sched.Shell
	seed    uint64 // of the episode
	task    task
	jobs    []job
	next    int     // the first job that has not come
	waiting []int32 // in order
	running []int32 // in order of start
	begun   int32   // job whose gang is being placed, -1 = none
	active  int     // servers in use
	time    int     // interval
	free    []freeResources

	reward  float64
	elapsed time.Duration

	mask  []bool
	obs   []float32
	info  []float64
	place Placement
	speed []float64
	order []int32
	src   *rand.Rand
	pcg   rand.PCG
	times *rand.Rand
	pcgT  rand.PCG
}

// freeResources is what a server has left.
type freeResources struct{ gpus, cpus, memory int }

// Recorder is shown what was seen of an interval: the placement and the measured speeds. Both are valid until the next
// step.
type Recorder func(p *Placement, measured []float64) error

var (
	_ env.Env         = (*Env)(nil)
	_ env.Tasker      = (*Env)(nil)
	_ env.Snapshotter = (*Env)(nil)
	_ env.Renderer    = (*Env)(nil)
)

// New returns an environment that runs at the true speeds.
func New(cfg Config) (*Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.ID(), err)
	}
	e := &Env{
		cfg: cfg, truth: NewTruth(cfg), jobs: make([]job, cfg.Jobs), begun: -1, active: cfg.Servers,
		free: make([]freeResources,
			cfg.Servers), mask: make([]bool, cfg.Slots*cfg.Servers+1), info: make([]float64, len(infoFields)),
	}
	on := make([]int32, cfg.Jobs*cfg.Servers)
	for i := range e.jobs {
		e.jobs[i].on = on[i*cfg.Servers : (i+1)*cfg.Servers : (i+1)*cfg.Servers]
	}
	e.spec = e.describe()
	e.shell = sched.NewShell(e.spec)
	e.tasks = e.TaskSpec()
	e.obs = make([]float32, e.spec.ObsLen())
	e.src, e.times = rand.New(&e.pcg), rand.New(&e.pcgT)
	return e, nil
}

// Config is that of New.
func (e *Env) Config() Config { return e.cfg }

// SetSpeeds has jobs run at other speeds than the true ones from the next interval on; nil = the true ones. What a
// learned model says is cut to [1/100, 1.5].
func (e *Env) SetSpeeds(s Speeds) { e.speeds = s }

// Record has r see every interval in which something runs; nil = nobody.
func (e *Env) Record(r Recorder) { e.rec = r }

// Truth are the true speeds of the present episode, for programs that judge: no agent may see them.
func (e *Env) Truth() *Truth { return e.truth }

// Spec implements env.Env.
func (e *Env) Spec() env.Spec { return e.spec }

// Close implements env.Env.
func (e *Env) Close() error { return e.shell.Close() }

// Reset implements env.Env. Jobs follow from ep.Seed and ep.Task and, of a workload, from ep.Window and ep.Split.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if err := e.shell.Leave(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.work == nil && ep.Split != "" {
		return fmt.Errorf("%w: %s: split %q, want none, for it has no workload", env.ErrEpisode, e.cfg.ID(), ep.Split)
	}
	t, err := readTask(ep.Task, e.tasks)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", env.ErrEpisode, e.cfg.ID(), err)
	}
	if ep, err = e.load(ep, &t); err != nil {
		return err
	}
	e.begin(ep.Seed, t)
	e.shell.Begin(ep)
	e.fill(ts, env.First)
	return nil
}

// load fills the jobs of episode ep and returns it with its part named, if it has one.
func (e *Env) load(ep env.Episode, t *task) (env.Episode, error) {
	if e.work == nil {
		rng.Seed(&e.pcg, ep.Seed, "workerplace/jobs")
		rng.Seed(&e.pcgT, ep.Seed, "workerplace/times")
		draw(e.jobs, &e.cfg, t, e.src, e.times)
		return ep, nil
	}
	part, split, err := sched.SplitPart(e.cfg.ID(), ep.Split, e.part)
	if err != nil {
		return ep, err
	}
	w, err := e.work.windows.At(part, ep.Seed, ep.Window)
	if err != nil {
		return ep, fmt.Errorf("%w: %s: %w", env.ErrEpisode, e.cfg.ID(), err)
	}
	e.work.fill(e.jobs, w.Counting(), &e.cfg, t, ep.Seed)
	ep.Split = split
	return ep, nil
}

// begin sets the first state of an episode whose jobs are loaded.
func (e *Env) begin(seed uint64, t task) {
	e.seed, e.task = seed, t
	if e.cfg.redraws() {
		e.truth.redraw(seed)
	}
	e.truth.raise(e.cfg.Interference * t.power)
	least := (largest + e.cfg.GPUs - 1) / e.cfg.GPUs // servers for the largest job
	if e.work != nil {
		least = (e.work.largest + perServer(&e.cfg) - 1) / perServer(&e.cfg)
	}
	e.active = max(int(math.Ceil(float64(e.cfg.Servers)*t.servers-1e-9)), least)
	for m := range e.free {
		e.free[m] = freeResources{}
		if m < e.active {
			e.free[m] = freeResources{e.cfg.GPUs, e.cfg.CPUs, e.cfg.Memory}
		}
	}
	e.next, e.waiting, e.running, e.begun = 0, e.waiting[:0], e.running[:0], -1
	e.reward, e.elapsed = 0, 0
	// Until the first job comes there is nothing to decide and nothing to pay.
	e.time = e.jobs[0].arrives
	e.arrive()
	e.look()
}

// arrive has the jobs of the present interval wait.
func (e *Env) arrive() {
	for e.next < len(e.jobs) && e.jobs[e.next].arrives <= e.time {
		e.waiting = append(e.waiting, int32(e.next))
		e.next++
	}
}

// Step implements env.Env.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := e.shell.Ready(ctx); err != nil {
		return err
	}
	if err := e.shell.Legal(a, e.mask); err != nil {
		return err
	}
	kind, err := e.apply(int(a.Disc[0]))
	if err != nil {
		e.shell.Break() // the interval is half closed
		return err
	}
	e.fill(ts, e.shell.Took(a, kind))
	return nil
}

// apply takes a legal action and returns the kind of the time step that it leads to.
func (e *Env) apply(k int) (env.Kind, error) {
	e.reward, e.elapsed = 0, 0
	if k < len(e.mask)-1 {
		e.put(k/e.cfg.Servers, k%e.cfg.Servers)
		e.look()
		if e.anything() {
			return env.Mid, nil
		}
	}
	// Close the interval, and every later one in which nothing can be placed.
	for {
		if err := e.close(); err != nil {
			return 0, err
		}
		if len(e.running) == 0 && len(e.waiting) == 0 && e.next == len(e.jobs) {
			clear(e.mask)
			return env.Terminated, nil
		}
		if e.time >= e.cfg.Limit {
			clear(e.mask)
			return env.Truncated, nil
		}
		e.look()
		if e.anything() {
			return env.Mid, nil
		}
	}
}

// anything says whether a worker can be placed.
func (e *Env) anything() bool {
	for _, legal := range e.mask[:len(e.mask)-1] {
		if legal {
			return true
		}
	}
	return false
}

// put places a worker of slot s on server m.
func (e *Env) put(s, m int) {
	id := e.waiting[s]
	j := &e.jobs[id]
	e.free[m].take(j.gpus, 1)
	j.on[m]++
	j.placed++
	e.begun = id
	if j.placed < j.workers {
		return
	}
	e.begun, j.start = -1, e.time
	copy(e.waiting[s:], e.waiting[s+1:])
	e.waiting = e.waiting[:len(e.waiting)-1]
	e.running = append(e.running, id)
}

// take uses room for n workers of so many GPUs each; n below 0 gives it back.
func (r *freeResources) take(gpus, n int) {
	r.gpus -= n * gpus
	r.cpus -= n * workerCPUs
	r.memory -= n * workerMemory
}

// holds returns how many workers of so many GPUs each fit.
func (r *freeResources) holds(gpus int) int {
	n := min(r.cpus/workerCPUs, r.memory/workerMemory)
	if gpus > 0 {
		n = min(n, r.gpus/gpus)
	}
	return n
}

// close moves the clock by one interval.
func (e *Env) close() error {
	e.placement()
	n := len(e.place.Jobs)
	for len(e.speed) < n {
		e.speed = append(e.speed, 0)
	}
	v := e.speed[:n]
	if n > 0 {
		if e.speeds != nil {
			if err := e.speeds.Speeds(v, &e.place); err != nil {
				return fmt.Errorf("%s: %w", e.cfg.ID(), err)
			}
			for i, x := range v {
				if x != x {
					return fmt.Errorf("%s: the speed of job %d is %v", e.cfg.ID(), e.place.Jobs[i].Job, x)
				}
				v[i] = min(max(x, 0.01), 1.5)
			}
		} else if err := e.truth.Speeds(v, &e.place); err != nil {
			return err
		}
	}
	gamma := 1.0 / float64(len(e.jobs))
	waiting := float64(len(e.waiting))
	cost, trained := waiting, 0.0
	left := e.running[:0]
	failures := e.cfg.Failures + e.task.failures
	for i, id := range e.running {
		j := &e.jobs[id]
		speed := v[i]
		if failures > 0 && e.fails(j, failures) {
			v[i] = 0
			cost++
			left = append(left, id)
			continue
		}
		took := 1.0
		if need := j.work - j.done; speed >= need {
			took = need / speed
		}
		j.done += speed * took
		trained += speed * took / j.work
		cost += took
		j.seen = speed
		if e.cfg.Noise > 0 {
			j.seen *= math.Exp(e.cfg.Noise * rng.Normal(rng.At(e.seed, noiseKey, uint64(id), uint64(e.time))))
		}
		v[i] = j.seen
		if took < 1 || j.done >= j.work-1e-12 {
			j.finish = float64(e.time) + took
			for m, w := range j.on {
				e.free[m].take(j.gpus, -int(w))
			}
			continue
		}
		left = append(left, id)
	}
	if e.rec != nil && n > 0 {
		if err := e.rec(&e.place, v); err != nil {
			return err
		}
	}
	e.running = left
	e.time++
	e.arrive()
	e.elapsed += time.Duration(e.cfg.Interval * float64(time.Second))
	if e.cfg.Reward == "jct" {
		e.reward -= cost * gamma
	} else {
		e.reward += trained
	}
	return nil
}

const (
	noiseKey   = 0x6e6f697365
	failureKey = 0x6661696c
)

// fails says whether a server of job j fails in this interval.
func (e *Env) fails(j *job, p float64) bool {
	for m, w := range j.on {
		if w > 0 && rng.Uniform(rng.At(e.seed, failureKey, uint64(m), uint64(e.time))) < p {
			return true
		}
	}
	return false
}

// placement fills place with what runs.
func (e *Env) placement() {
	e.place.Servers, e.place.Jobs = e.cfg.Servers, e.place.Jobs[:0]
	for _, id := range e.running {
		j := &e.jobs[id]
		e.place.Jobs = append(e.place.Jobs, Placed{Job: int(id), Type: j.kind, Workers: j.workers, On: j.on})
	}
}

// look fills the mask.
func (e *Env) look() {
	clear(e.mask)
	found := false
	for s, id := range e.visible() {
		j := &e.jobs[id]
		if e.begun >= 0 && e.begun != id {
			continue
		}
		if !e.fits(j) {
			continue
		}
		for m := range e.active {
			if e.free[m].holds(j.gpus) > 0 {
				e.mask[s*e.cfg.Servers+m] = true
				found = true
			}
		}
	}
	// Closing is for after a gang; where nothing runs and nothing will come it would only pass time.
	e.mask[len(e.mask)-1] = e.begun < 0 && (!found || len(e.running) > 0 || e.next < len(e.jobs))
}

// visible are the waiting jobs that have slots.
func (e *Env) visible() []int32 { return e.waiting[:min(len(e.waiting), e.cfg.Slots)] }

// fits says whether the rest of j's gang finds room. Workers are all of one size, so it does wherever the first goes.
func (e *Env) fits(j *job) bool {
	need := j.workers - j.placed
	for m := range e.active {
		if need -= e.free[m].holds(j.gpus); need <= 0 {
			return true
		}
	}
	return false
}

// JCTs are the completion times of the jobs that have finished, in intervals, and how many have not.
func (e *Env) JCTs(dst []float64) (jct []float64, unfinished int) {
	for i := range e.jobs {
		j := &e.jobs[i]
		if math.IsNaN(j.finish) {
			unfinished++
			continue
		}
		dst = append(dst, j.finish-float64(j.arrives))
	}
	return dst, unfinished
}

// Makespan is when the last job that has finished did, in intervals from the first arrival.
func (e *Env) Makespan() float64 {
	last := 0.0
	for i := range e.jobs {
		if f := e.jobs[i].finish; f > last {
			last = f
		}
	}
	return last - float64(e.jobs[0].arrives)
}
