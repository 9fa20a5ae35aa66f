package sim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/simulator/sim"
	"clustergym/traces"
)

// stints follows every job of a run: the work it has done by its rates, and how often these changed.
type stints struct {
	work    map[string]float64
	rate    map[string]float64
	since   map[string]time.Duration
	changes map[string]int
	ran     map[string]time.Duration
	finish  map[string]time.Duration
	maxRate map[string]float64
	jct, n  int64 // ns: sum of JCT; integral of the number of jobs in the system
	in      int64
	cursor  time.Duration
}

func newStints() *stints {
	return &stints{work: map[string]float64{}, rate: map[string]float64{}, since: map[string]time.Duration{},
		changes: map[string]int{},
		ran:     map[string]time.Duration{}, finish: map[string]time.Duration{}, maxRate: map[string]float64{}}
}

func (f *stints) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		f.n += f.in * int64(e.At-f.cursor)
		f.cursor = e.At
		if e.Job < 0 {
			continue
		}
		id := v.Trace(e.Job).ID
		switch e.Kind {
		case sim.Submit:
			f.in++
		case sim.Start:
			f.since[id], f.rate[id] = e.At, v.Factor(e.Job, e.GPUs)
			f.maxRate[id] = max(f.maxRate[id], f.rate[id])
			f.changes[id]++
		case sim.Preempt, sim.Finish:
			f.ran[id] += e.At - f.since[id]
			f.work[id] += float64(e.At-f.since[id]) * f.rate[id]
			if got := v.Ran(e.Job); got != f.ran[id] && e.At == p.Now {
				return fmt.Errorf("%s has run %v, the view says %v", id, f.ran[id], got)
			}
			if e.Kind == sim.Finish {
				f.finish[id] = e.At
				f.jct += int64(e.At - v.Trace(e.Job).Submit)
				f.in--
			}
		case sim.Drop:
			f.jct += int64(e.At - v.Trace(e.Job).Submit)
			f.in--
			delete(f.work, id)
		}
	}
	return nil
}

// runChaos plays a run with a random policy to its end.
func runChaos(t fatal, s *sim.Simulator, c *chaos, observers ...sim.Observer) {
	t.Helper()
	v := s.View()
	for {
		p, err := s.Advance(context.Background())
		if ended(t, err) {
			return
		}
		if err := s.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
		for _, o := range observers {
			if err := o.Observe(v, p); err != nil {
				t.Fatal(err)
			}
		}
		if !v.Over() {
			c.play(t, s)
		}
	}
}

// However often a job is stopped, it does as much work as its trace says: exactly at rate 1, else within a nanosecond
// (and the rounding of floats) for each change of rate. Little's law holds exactly in integers.
func TestWorkIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		spec := mixedSpec(r)
		cfg := sim.Config{Comm: []string{"none", "tree"}[r.IntN(2)]}
		unitRate := rapid.Bool().Draw(t, "rate 1")
		if unitRate {
			cfg.Comm, spec.Speeds = "none", nil
		}
		jobs := mixed(r, rapid.IntRange(1, 40).Draw(t, "jobs"), 4, second/7)
		s := start(t, cfg, spec, jobs)
		c, f := newChaos(t, r), newStints()
		c.legal, c.stops = true, rapid.IntRange(0, 40).Draw(t, "stops")
		runChaos(t, s, c, f)
		byID := map[string]traces.Job{}
		for _, j := range jobs {
			byID[j.ID] = j
		}
		for id, done := range f.work {
			j := byID[id]
			if unitRate {
				if f.ran[id] != j.Work {
					t.Fatalf("%s ran %v in %d stints, its work is %v", id, f.ran[id], f.changes[id], j.Work)
				}
				continue
			}
			slack := float64(f.changes[id]) * (1 + 1e-3) * max(1, f.maxRate[id])
			if over := done - float64(j.Work); over < -1e-3*float64(f.changes[id]) || over > slack {
				t.Fatalf("%s worked %v ns in %d stints, its work is %v", id, done, f.changes[id], j.Work)
			}
		}
		if f.n != f.jct || f.in != 0 {
			t.Fatalf("the integral of N is %d ns, the sum of JCT %d; %d jobs left", f.n, f.jct, f.in)
		}
	})
}

func TestRestartCostsTime(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Restart = 40 * second
	s := start(t, cfg, short(t, "pool:1"), []traces.Job{job("A", 0, 100*second, 1), job("B", 10*second, second, 1)})
	v := s.View()
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0}) // the first start adds no restart work
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 0})
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 1})
	advance(t, s)
	if v.Left(0) != 90e9 {
		t.Errorf("%v ns left, want 90 s", v.Left(0))
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0})
	if v.Left(0) != 130e9 {
		t.Errorf("%v ns left after the restart, want 130 s", v.Left(0))
	}
	if p := advance(t, s); p.Now != 141*second {
		t.Errorf("finished at %v, want 2m21s", p.Now)
	}
}

// Half speed takes twice the time, rounded up to the nanosecond.
func TestRates(t *testing.T) {
	spec := short(t, "1x1")
	spec.Racks[0].Nodes[0].GPUType = "slow"
	for _, x := range []struct {
		speed      float64
		work, want time.Duration
	}{{0.5, 10, 20}, {2, 11, 6}, {1, 12345678901234567, 12345678901234568}, {3, 10, 4}, {0.1, 1, 10}, {1e-5, 1, 100000}} {
		spec.Speeds = map[string]float64{"slow": x.speed}
		s := start(t, sim.DefaultConfig(), spec, []traces.Job{job("A", 0, x.work, 1)})
		if err := sim.Run(context.Background(), s, newGreedy(t, "first-fit")); err != nil {
			t.Fatal(err)
		}
		if got := s.View().Now(); got != x.want {
			t.Errorf("work %d at speed %v: %d ns, want %d", x.work, x.speed, got, x.want)
		}
	}
}

// A finish beyond the range of times saturates; the run then ends with an error instead of wrapping around.
func TestFinishNeverWraps(t *testing.T) {
	spec := short(t, "1x1")
	spec.Racks[0].Nodes[0].GPUType, spec.Speeds = "slow", map[string]float64{"slow": 1e-9}
	s := start(t, sim.DefaultConfig(), spec,
		[]traces.Job{job("A", time.Hour, math.MaxInt64/2, 1), job("B", 2*time.Hour, second, 1)})
	var l lines
	if err := sim.Run(context.Background(), s, newGreedy(t, "first-fit"), &l); err == nil ||
		!strings.Contains(err.Error(), "146 years, where the clock ends") {
		t.Fatal(err)
	}
	if v := s.View(); v.Over() || len(v.Running()) != 1 || v.Now() != 2*time.Hour {
		t.Errorf("now %v, %d run:\n%s", v.Now(), len(v.Running()), l.b.String())
	}
}

// If all times are scaled by a power of two, a run at rate 1 is the same run, scaled, under any policy.
func TestScalingByAPowerOfTwo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		shift := rapid.IntRange(1, 12).Draw(t, "shift")
		restart := time.Duration(rapid.IntRange(0, 3).Draw(t, "restart"))
		upTo := func(most time.Duration, what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, what))
		}
		checkpoint, overhead, horizon := upTo(20*second, "checkpoint"), upTo(20*ms, "overhead"), upTo(1000*second, "horizon")
		var log [2]string
		for k := range log {
			f := time.Duration(1)
			if k == 1 {
				f <<= shift
			}
			r := rand.New(rand.NewPCG(seed, 2))
			spec := mixedSpec(r)
			spec.Speeds = nil
			jobs := mixed(r, 25, 4, f*(second/3))
			cfg := sim.Config{Comm: "none", Restart: restart * f, Checkpoint: checkpoint * f, Horizon: horizon * f,
				Overhead: sim.Overhead{
					Start: overhead * f, StartPerGPU: overhead / 2 * f, Stop: overhead / 3 * f, StopPerGPU: overhead / 5 * f}}
			s := start(t, cfg, spec, jobs)
			c := newChaos(t, r)
			c.scale, c.legal = f*(second/5), true
			var out eventLog
			out.unit = f
			runChaos(t, s, c, &out)
			log[k] = out.text
		}
		if log[0] != log[1] {
			t.Fatalf("scaled by 2^%d:\n%s\nplain:\n%s", shift, log[1], log[0])
		}
	})
}

// eventLog writes events with times in units.
type eventLog struct {
	unit time.Duration
	text string
}

func (l *eventLog) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		l.text += fmt.Sprintln(e.Kind, e.Job, e.GPUs, e.At/l.unit, e.At%l.unit)
	}
	return nil
}
