package sim_test

import (
	"math"
	"math/rand/v2"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// pairs is an interference that depends only on the two jobs' names.
type pairs struct{}

func (pairs) Kept(victim, other *traces.Job) float64 {
	return []float64{1, 0.5, 0.9, 0.3}[rng.Hash(victim.ID+" beside "+other.ID)%4]
}

func (pairs) String() string { return "pairs" }

// models are made-up profiles.
var models = []*traces.Profile{
	{Name: "small", GradientBytes: 10e6, Compute: 20 * time.Millisecond},
	{Name: "large", GradientBytes: 500e6, Compute: 100 * time.Millisecond,
		Speeds: map[string]float64{"v100": 3, "p4": 0.1}},
	{Name: "flat", GradientBytes: 100e6, Compute: 50 * time.Millisecond,
		Scaling: []traces.ScalePoint{{GPUs: 1, Throughput: 2}, {GPUs: 4, Throughput: 5}}},
}

// rich draws jobs like mixed, but also with models, elastic gangs and jobs without GPUs.
func rich(r *rand.Rand, n, gpus int, unit time.Duration) []traces.Job {
	jobs := mixed(r, n, gpus, unit)
	for i := range jobs {
		j := &jobs[i]
		j.Profile = models[r.IntN(len(models))]
		switch r.IntN(5) {
		case 0, 1:
			j.MinGPUs, j.MaxGPUs = r.IntN(j.GPUs+1), j.GPUs+r.IntN(3)
		case 2:
			if r.IntN(3) == 0 {
				j.GPUs, j.GPUMilli, j.CPUMilli = 0, 0, int64(1+r.IntN(8000))
			}
		}
	}
	return jobs
}

// richSpec is mixedSpec with differing links.
func richSpec(r *rand.Rand) cluster.Spec {
	s := mixedSpec(r)
	gbps := []float64{0, 1, 10, 100}
	for i := range s.Racks {
		s.Racks[i].Uplink.Gbps = gbps[r.IntN(4)]
		for k := range s.Racks[i].Nodes {
			s.Racks[i].Nodes[k].NIC.Gbps = gbps[r.IntN(4)]
			s.Racks[i].Nodes[k].Link.Gbps = gbps[r.IntN(4)]
		}
	}
	return s
}

// richConfig switches every feature on or off at random.
func richConfig(r *rand.Rand, unit time.Duration) sim.Config {
	cfg := sim.DefaultConfig()
	cfg.Comm = sim.CommNames()[r.IntN(4)]
	cfg.Ring.Overlap = float64(r.IntN(3)) / 2
	cfg.Contention.A = time.Duration(r.IntN(2)) * time.Millisecond
	cfg.Restart = time.Duration(r.IntN(3)) * unit
	if r.IntN(2) == 0 {
		cfg.Overhead = sim.Overhead{
			Start: time.Duration(r.IntN(3)) * unit, StartPerGPU: time.Duration(r.IntN(2)) * unit,
			Stop: time.Duration(r.IntN(3)) * unit, StopPerGPU: time.Duration(r.IntN(2)) * unit,
		}
	}
	if r.IntN(2) == 0 {
		cfg.Checkpoint = time.Duration(1+r.IntN(40)) * unit
	}
	if r.IntN(2) == 0 {
		cfg.Failures = sim.Failures{MTBF: time.Duration(100+r.IntN(2000)) * unit, MTTR: time.Duration(1+r.IntN(100)) * unit}
	}
	cfg.Seed = r.Uint64()
	cfg.Serial = r.IntN(4) == 0
	if r.IntN(2) == 0 {
		cfg.Interference = pairs{}
		cfg.InterferenceScope = []string{"", "gpu", "node"}[r.IntN(3)]
	}
	return cfg
}

// move draws a migration or a resize that is legal as far as it can tell; ok is false if there is none.
func (c *chaos) move(v *sim.View, d *sim.Decision) (ok bool) {
	run := v.Running()
	if len(run) == 0 {
		return false
	}
	j := run[c.r.IntN(len(run))]
	d.Op, d.Job = sim.MigrateJob, j
	req := *v.Request(j)
	if n, ok := c.otherSize(v, j, req.GPUs); ok && c.r.IntN(2) == 0 {
		d.Op, d.N = sim.ResizeJob, n
		req = v.Cluster().Resized(req, n)
	} else if v.Cluster().Pool() {
		return false
	}
	// Place it as if its own GPUs were free.
	if c.copy == nil {
		c.copy, _ = cluster.New(v.Cluster().Spec())
	}
	c.copy.CopyFrom(v.Cluster())
	c.copy.Release(v.Request(j), v.GPUs(j))
	c.gpus, ok = c.rules[c.r.IntN(len(c.rules))].Place(c.copy, &req, c.gpus)
	d.GPUs = c.gpus
	return ok
}

// otherSize draws another size for an elastic job's gang.
func (c *chaos) otherSize(v *sim.View, j sim.Job, now int) (n int, ok bool) {
	t := v.Trace(j)
	if t.MaxGPUs == 0 || now == 0 {
		return 0, false
	}
	low := max(1, t.MinGPUs)
	n = low + c.r.IntN(t.MaxGPUs-low+1)
	return n, n != now
}

// ledger is a second set of books. It follows every job from the events and from the rates that hold between two
// points, in the simplest way: what a job has done, when its checkpoints were, what it lost and what it held.
type ledger struct {
	t    fatal
	cfg  sim.Config
	jobs map[sim.Job]*account
	last time.Duration // point
	done int           // jobs that finished

	fails, moves, sizes int
	lost                float64
}

type account struct {
	running       bool
	n, asked      int           // GPUs
	milli         int           // of each
	ready         time.Duration // when the stint's progress begins
	rate, most    float64
	done, saved   float64 // work: all progress, and the progress at the last checkpoint
	lost          float64
	held          float64 // GPUs × ns
	ran, owed     time.Duration
	starts, moves int
	fails, sizes  int
}

func newLedger(t fatal, cfg sim.Config) *ledger {
	return &ledger{t: t, cfg: cfg, jobs: map[sim.Job]*account{}}
}

// Observe processes the decisions of the last point, lets time pass, then processes what happened now.
func (l *ledger) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		a := l.jobs[e.Job]
		o := l.cfg.Overhead
		start := func(n int) time.Duration { return o.Start + time.Duration(n)*o.StartPerGPU }
		stop := func(n int) time.Duration { return o.Stop + time.Duration(n)*o.StopPerGPU }
		switch e.Kind {
		case sim.Start:
			a.running, a.n = true, int(e.N)
			a.ready = e.At + a.owed + start(a.n)
			a.owed, a.saved = 0, a.done
			a.starts++
		case sim.Preempt:
			a.owed = stop(a.n)
			l.halt(a)
		case sim.Migrate, sim.Resize:
			a.ready = e.At + stop(a.n) + start(int(e.N))
			a.n, a.saved = int(e.N), a.done
			if e.Kind == sim.Migrate {
				a.moves++
				l.moves++
			} else {
				a.sizes++
				l.sizes++
			}
		case sim.Drop:
			delete(l.jobs, e.Job)
		}
	}
	for _, a := range l.jobs {
		if !a.running {
			continue
		}
		a.ran += p.Now - l.last
		a.held += float64(a.n*a.milli) / 1000 * float64(p.Now-l.last)
		from := max(l.last, a.ready)
		if p.Now <= from {
			continue
		}
		if c := l.cfg.Checkpoint; c > 0 {
			if at := a.ready + (p.Now-a.ready)/c*c; at >= from {
				a.saved = a.done + float64(at-from)*a.rate
			}
		}
		a.done += float64(p.Now-from) * a.rate
	}
	l.last = p.Now
	for _, e := range p.Events {
		a := l.jobs[e.Job]
		switch e.Kind {
		case sim.Submit:
			t := v.Trace(e.Job)
			l.jobs[e.Job] = &account{asked: t.GPUs, milli: t.GPUMilli}
		case sim.Fail:
			a.fails++
			l.fails++
			l.halt(a)
		case sim.Finish:
			a.running = false
			l.finish(v, e.Job, a)
			delete(l.jobs, e.Job)
		}
	}
	return nil
}

// halt returns a job to its last checkpoint.
func (l *ledger) halt(a *account) {
	a.running = false
	if l.cfg.Checkpoint > 0 {
		l.lost += a.done - a.saved
		a.lost += a.done - a.saved
		a.done = a.saved
	}
}

// settled records the rates that hold until the next point.
func (l *ledger) settled(v *sim.View) {
	for j, a := range l.jobs {
		a.rate = v.Rate(j)
		a.most = max(a.most, a.rate)
	}
}

func (l *ledger) finish(v *sim.View, j sim.Job, a *account) {
	l.t.Helper()
	l.done++
	t := v.Trace(j)
	want := float64(t.Work) + float64(max(0, a.starts-1))*float64(l.cfg.Restart)
	slack := 1e-9*want + 1e-3
	if a.done < want-slack || a.done > want+a.most+slack {
		l.t.Fatalf("%s worked %v ns in %d stints, of %v; at rate %v at most", t.ID, a.done, a.starts, want, a.most)
	}
	l.compare(v, j, a)
}

// compare compares a with what the view reports for j.
func (l *ledger) compare(v *sim.View, j sim.Job, a *account) {
	l.t.Helper()
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*x+1 }
	if v.Ran(j) != a.ran || !near(v.GPUTime(j), a.held) || !near(float64(v.Lost(j)), a.lost) ||
		v.Failures(j) != a.fails || v.Migrations(j) != a.moves || v.Resizes(j) != a.sizes || v.Asked(j) != a.asked {
		l.t.Fatalf("%s: the view says ran %v, %v GPU-ns, lost %v, %d failures, %d moves, %d resizes; the ledger %+v",
			v.Trace(j).ID,
			v.Ran(j), v.GPUTime(j), v.Lost(j), v.Failures(j), v.Migrations(j), v.Resizes(j), *a)
	}
}
