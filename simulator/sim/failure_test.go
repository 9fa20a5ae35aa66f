package sim_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/sim"
	"clustergym/traces"
)

func failing(mtbf, mttr time.Duration) sim.Config {
	cfg := sim.DefaultConfig()
	cfg.Failures, cfg.Seed = sim.Failures{MTBF: mtbf, MTTR: mttr}, 7
	return cfg
}

// outages plays s to its end with the greedy policy, or with none if sch is nil, and lists the failures and recoveries
// of nodes.
func outages(t fatal, s *sim.Simulator, sch sim.Scheduler) (list []sim.Event) {
	t.Helper()
	err := sim.Run(ctx, s, sch, watch(func(_ *sim.View, p *sim.Point) error {
		for _, e := range p.Events {
			if e.Kind == sim.NodeFail || e.Kind == sim.NodeRecover {
				list = append(list, sim.Event{At: e.At, Kind: e.Kind, Node: e.Node})
			}
		}
		return s.CheckInvariants()
	}))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

type watch func(v *sim.View, p *sim.Point) error

func (f watch) Observe(v *sim.View, p *sim.Point) error { return f(v, p) }

// A job on a node that fails returns to its last checkpoint and waits; the node is gone until it recovers; the jobs on
// other nodes continue.
func TestFailureByHand(t *testing.T) {
	cfg := failing(100*second, 10*second)
	cfg.Checkpoint, cfg.Restart, cfg.Overhead.Stop = 4*second, second, 50*second
	work := 1000 * second
	s := start(t, cfg, short(t, "2x2"), []traces.Job{job("A", 0, work, 2), job("B", 0, work, 2)})
	v, c := s.View(), s.View().Cluster()
	advance(t, s)
	apply(t, s, on(0, 0, 1))
	apply(t, s, on(1, 2, 3))
	// The seed determines which node fails first, and when.
	p := advanceTo(t, s, sim.NodeFail)
	hit, other := sim.Job(p.Events[len(p.Events)-1].Node), sim.Job(1-p.Events[len(p.Events)-1].Node)
	at := p.Now
	if got, want := text(v, p), fmt.Sprintf("%v: start A[0 1]@0s, start B[2 3]@0s, fail %s%v, node-fail %d", at,
		v.Trace(hit).ID, v.GPUs(hit), hit); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	lost := at % (4 * second)
	if v.State(hit) != sim.Waiting || v.Lost(hit) != lost || v.Left(hit) != float64(work-at+lost) ||
		v.Failures(hit) != 1 || v.Preemptions(hit) != 0 {
		t.Errorf("%s is %v, lost %v of %v, %v left, %d failures", v.Trace(hit).ID, v.State(hit), v.Lost(hit), at, v.Left(hit),
			v.Failures(hit))
	}
	if v.State(other) != sim.Running || v.Left(other) != float64(work-at) {
		t.Errorf("%s is %v", v.Trace(other).ID, v.State(other))
	}
	if !c.Down(int(hit)) || c.DownGPUs() != 2 || c.Free() != 0 || v.Fits(hit) || !v.CanWait() {
		t.Errorf("node %d is down: %v, %d GPUs are free", hit, c.Down(int(hit)), c.Free())
	}
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: other}) // now nothing runs, but the node will recover
	if !v.CanWait() {
		t.Error("nobody may wait for a recovery")
	}
	p = advanceTo(t, s, sim.NodeRecover)
	if c.Down(int(hit)) || !v.Fits(hit) || p.Events[len(p.Events)-1].Node != int32(hit) {
		t.Errorf("%s: node %d is down: %v", text(v, p), hit, c.Down(int(hit)))
	}
	if v.CanWait() {
		t.Error("a failure to come is no reason to wait")
	}
	// + 1 s of restart; it was not stopped by a decision, so it does not pay for a stop
	apply(t, s, on(hit, v.GPUs(hit)...))
	if want := p.Now + time.Duration(v.Left(hit)); v.Left(hit) != float64(work-at+lost+second) || v.Finished(hit) != want {
		t.Errorf("%v left, finishes at %v, want %v", v.Left(hit), v.Finished(hit), want)
	}
}

// advanceTo waits until something of the kind has happened.
func advanceTo(t fatal, s *sim.Simulator, kind sim.EventKind) *sim.Point {
	t.Helper()
	for {
		p := advance(t, s)
		for _, e := range p.Events {
			if e.Kind == kind {
				return p
			}
		}
	}
}

// Nodes fail at the same times under any policy, and at other times with other seeds. Failures end with the last job.
func TestFailuresDoNotDependOnThePolicy(t *testing.T) {
	var jobs []traces.Job
	for i := range 30 {
		jobs = append(jobs, job(fmt.Sprint(i), time.Duration(i)*20*second, 50*second, 1+i%4))
	}
	var lists [][]sim.Event
	for _, place := range []string{"first-fit", "worst-fit"} {
		cfg := failing(200*second, 20*second)
		if place == "worst-fit" {
			cfg.Checkpoint, cfg.Overhead.Start = second, 7*second
		}
		s := start(t, cfg, short(t, "3x4"), jobs)
		lists = append(lists, outages(t, s, newGreedy(t, place)))
	}
	n := min(len(lists[0]), len(lists[1]))
	if n < 10 || fmt.Sprint(lists[0][:n]) != fmt.Sprint(lists[1][:n]) || len(lists[0]) == len(lists[1]) {
		t.Errorf("%d and %d outages:\n%v\n%v", len(lists[0]), len(lists[1]), lists[0], lists[1])
	}
	cfg := failing(200*second, 20*second)
	cfg.Seed++
	if again := outages(t, start(t, cfg, short(t, "3x4"), jobs), newGreedy(t, "first-fit")); fmt.Sprint(again[:5]) ==
		fmt.Sprint(lists[0][:5]) {
		t.Error("another seed gives the same failures")
	}
}

// The times are exponential with the configured means: the mean and the deviation of n draws are both near that mean,
// with standard errors mean/√n and √2 mean/√n.
func TestFailuresAreExponential(t *testing.T) {
	cfg := failing(1000*second, 100*second)
	cfg.Horizon = 300_000 * second
	s := start(t, cfg, short(t, "16x1"), []traces.Job{job("A", 0, 1000_000*second, 1)})
	since := map[int32]time.Duration{}
	var sum, squares, count [2]float64
	for _, e := range outages(t, s, newGreedy(t, "first-fit")) {
		k := 0
		if e.Kind == sim.NodeRecover {
			k = 1
		}
		d := (e.At - since[e.Node]).Seconds()
		since[e.Node] = e.At
		sum[k], squares[k], count[k] = sum[k]+d, squares[k]+d*d, count[k]+1
	}
	for k, mean := range []float64{1000, 100} {
		n := count[k]
		m := sum[k] / n
		dev := math.Sqrt(squares[k]/n - m*m)
		if n < 3000 || math.Abs(m/mean-1) > 4/math.Sqrt(n) || math.Abs(dev/mean-1) > 6/math.Sqrt(n) {
			t.Errorf("%v times have mean %v and deviation %v, want %v", n, m, dev, mean)
		}
	}
}

// At one instant finishes come first, then failures, then recoveries, then arrivals.
func TestFailuresComeBetweenFinishesAndArrivals(t *testing.T) {
	cfg := failing(100*second, 10*second)
	first := advanceTo(t, start(t, cfg, short(t, "1x2"), []traces.Job{job("A", time.Hour, second, 1)}), sim.NodeFail).Now
	s := start(t, cfg, short(t, "1x2"),
		[]traces.Job{job("A", 0, first, 1), job("B", 0, first+1, 1), job("C", first, second, 1)})
	v := s.View()
	advance(t, s)
	apply(t, s, on(0, 0))
	apply(t, s, on(1, 1))
	if got, want := text(v, advance(t, s)),
		fmt.Sprintf("%v: start A[0]@0s, start B[1]@0s, finish A[0], fail B[1], node-fail 0, submit C", first); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if v.Left(1) != 1 || v.Lost(1) != 0 {
		t.Errorf("without checkpoints nothing is lost: %v left, %v lost", v.Left(1), v.Lost(1))
	}
}

func TestCountersHaveNoNodesToFail(t *testing.T) {
	_, err := sim.New(failing(time.Hour, time.Hour), short(t, "pool:4"))
	if err == nil || !strings.Contains(err.Error(), "failures.mtbf: got 1h0m0s, want 0s on a counter") {
		t.Errorf("got %v", err)
	}
}

// If a job waits that can never start, nothing runs and nothing will happen, the run ends, and the job stays visible.
func TestARunThatCannotGoOnEnds(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "2x1"), []traces.Job{job("A", 0, second, 2)})
	v := s.View()
	advance(t, s)
	if err := s.Apply(&sim.Decision{}); !errors.Is(err, sim.ErrWait) {
		t.Errorf("A could start: %v, want ErrWait", err)
	}
	// Only a caller that takes a node down behind the simulator's back can reach this state.
	if err := v.Cluster().SetDown(1, true); err != nil {
		t.Fatal(err)
	}
	apply(t, s, sim.Decision{})
	p := advance(t, s)
	if !v.Over() || len(p.Events) != 0 || len(v.Waiting()) != 1 || v.Trace(v.Waiting()[0]).ID != "A" {
		t.Errorf("%s; over: %v, waiting: %v", text(v, p), v.Over(), v.Waiting())
	}
	if _, err := s.Advance(ctx); !errors.Is(err, sim.ErrDone) {
		t.Errorf("then: %v", err)
	}
}
