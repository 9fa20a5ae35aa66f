package sim_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Four GPUs and three jobs, worked out on paper: A holds two GPUs from 0 to 10; B wants all four and waits for A from
// 2 on; C uses the free GPUs from 3 to 7; B runs from 10 to 15.
func TestThreeJobsByHand(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "1x4"), []traces.Job{
		job("A", 0, 10*second, 2), job("B", 2*second, 5*second, 4), job("C", 3*second, 4*second, 2)})
	var l lines
	if err := sim.Run(context.Background(), s, newGreedy(t, "first-fit"), &l); err != nil {
		t.Fatal(err)
	}
	want := `0s: submit A
2s: start A[0 1]@0s, submit B
3s: submit C
7s: start C[2 3]@3s, finish C[2 3]
10s: finish A[0 1]
15s: start B[0 1 2 3]@10s, finish B[0 1 2 3]
`
	if got := l.b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, err := s.Advance(context.Background()); !errors.Is(err, sim.ErrDone) {
		t.Errorf("after the end: %v, want ErrDone", err)
	}
	if v := s.View(); v.Arrived() != 3 || v.Ended() != 3 || !v.Over() || v.Arriving() {
		t.Errorf("%d arrived, %d ended, over %v", v.Arrived(), v.Ended(), v.Over())
	}
}

// At one instant: finishes in order of start, arrivals in order of the trace, then the timer; one point.
func TestOrderAtOneInstant(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "pool:4"), []traces.Job{
		job("A", 0, 10*second, 1), job("B", 0, 10*second, 1), job("C", 10*second, second, 1), job("D", 10*second, second, 1)})
	v := s.View()
	if got := text(v, advance(t, s)); got != "0s: submit A, submit B" {
		t.Error(got)
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 1})
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0})
	apply(t, s, sim.Decision{Op: sim.Wait, Until: 10 * second})
	p := advance(t, s)
	if got := text(v, p); got != "10s: start B@0s, start A@0s, finish B, finish A, submit C, submit D, timer" {
		t.Error(got)
	}
	// A and B end at this point, so their numbers are not reused before the next one.
	for _, j := range v.Waiting() {
		if j < 2 {
			t.Errorf("number %d is used again at the point of its job's end", j)
		}
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: v.Waiting()[0]})
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: v.Waiting()[0]})
	if got := text(v, advance(t, s)); got != "11s: start C@10s, start D@10s, finish C, finish D" {
		t.Error(got)
	}
	if !v.Over() {
		t.Error("the workload has drained")
	}
}

// A job without work ends in the instant of its start, at a second point at that time.
func TestJobWithoutWork(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "pool:1"),
		[]traces.Job{job("A", 5*second, 0, 1), job("B", 5*second, second, 1)})
	var l lines
	if err := sim.Run(context.Background(), s, newGreedy(t, "first-fit"), &l); err != nil {
		t.Fatal(err)
	}
	if got, want := l.b.String(),
		"5s: submit A, submit B\n5s: start A, finish A\n6s: start B@5s, finish B\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestNothingToRun(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "pool:1"), nil)
	if _, err := s.Advance(context.Background()); !errors.Is(err, sim.ErrDone) {
		t.Errorf("got %v, want ErrDone", err)
	}
}

// A timer wakes the policy once, and only if nothing else happened before.
func TestTimers(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "pool:1"),
		[]traces.Job{job("A", 0, 10*second, 1), job("B", 4*second, second, 1)})
	v := s.View()
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.Wait, Until: 3 * second}) // allowed although no job was started
	if got := text(v, advance(t, s)); got != "3s: timer" {
		t.Error(got)
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0})
	apply(t, s, sim.Decision{Op: sim.Wait, Until: 5 * second})
	if got := text(v, advance(t, s)); got != "4s: start A@3s, submit B" {
		t.Error(got)
	}
	if got := text(v, advance(t, s)); got != "13s: finish A" { // the timer of 5 s is gone
		t.Error(got)
	}
	for _, until := range []time.Duration{13 * second, 12 * second, -1} {
		if err := s.Apply(&sim.Decision{Until: until}); !errors.Is(err, sim.ErrDecision) {
			t.Errorf("waiting until %v at 13s: %v, want ErrDecision", until, err)
		}
	}
	// Nothing runs and nothing will arrive, but a timer is set.
	apply(t, s, sim.Decision{Until: 20 * second})
	if got := text(v, advance(t, s)); got != "20s: timer" {
		t.Error(got)
	}
}

func TestWaitingForEverIsRefused(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "pool:1"), []traces.Job{job("A", 0, second, 1)})
	advance(t, s)
	if s.View().CanWait() {
		t.Error("CanWait, and nothing would ever happen")
	}
	for range 2 {
		if err := s.Apply(&sim.Decision{}); !errors.Is(err, sim.ErrWait) {
			t.Errorf("Wait: %v, want ErrWait", err)
		}
		if _, err := s.Advance(context.Background()); !errors.Is(err, sim.ErrWait) {
			t.Errorf("Advance: %v, want ErrWait", err)
		}
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0})
	if !s.View().CanWait() {
		t.Error("a job runs: waiting is fine")
	}
	advance(t, s)
}

// The horizon's point shows what was decided before it; events at the horizon itself still happen.
func TestHorizon(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Horizon = 10 * second
	s := start(t, cfg, short(t, "pool:2"), []traces.Job{
		job("A", 0, 10*second, 1), job("B", 0, 11*second, 1), job("C", 9*second, second, 1), job("D", 11*second, second, 1)})
	var l lines
	if err := sim.Run(context.Background(), s, newGreedy(t, "first-fit"), &l); err != nil {
		t.Fatal(err)
	}
	want := "0s: submit A, submit B\n9s: start A@0s, start B@0s, submit C\n10s: finish A\n10s: start C\n"
	if got := l.b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	v := s.View()
	if len(v.Running()) != 2 || v.Now() != 10*second || v.Ended() != 1 || v.Arrived() != 3 || !v.Over() {
		t.Errorf("%d run at %v, %d ended of %d", len(v.Running()), v.Now(), v.Ended(), v.Arrived())
	}
	if err := s.Apply(&sim.Decision{Op: sim.PreemptJob, Job: v.Running()[0]}); !errors.Is(err, sim.ErrDecision) {
		t.Errorf("a decision after the end: %v", err)
	}
}

func TestNumbersAreUsedAgain(t *testing.T) {
	var jobs []traces.Job
	for i := range 50 {
		jobs = append(jobs, job("j", time.Duration(i)*10*second, second, 1))
	}
	s := start(t, sim.DefaultConfig(), short(t, "pool:1"), jobs)
	highest := sim.Job(0)
	g, v := newGreedy(t, "first-fit"), s.View()
	for {
		p, err := s.Advance(context.Background())
		if ended(t, err) {
			break
		}
		for _, e := range p.Events {
			highest = max(highest, e.Job)
		}
		if v.Over() {
			continue
		}
		var d sim.Decision
		for {
			d = sim.Decision{}
			if err := g.Decide(v, p, &d); err != nil {
				t.Fatal(err)
			}
			apply(t, s, d)
			if d.Op == sim.Wait {
				break
			}
		}
	}
	if highest > 1 {
		t.Errorf("50 jobs that never overlap used numbers up to %d", highest)
	}
}

// The event of a stop keeps its GPUs for the whole point, even if the job is started again there.
func TestEventsKeepTheirGPUs(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "1x4"),
		[]traces.Job{job("A", 0, 100*second, 2), job("B", second, second, 1), job("C", 2*second, second, 1)})
	v := s.View()
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{0, 1}})
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 0})
	p := advance(t, s)
	const want = "2s: preempt A[0 1]@1s, submit C"
	if got := text(v, p); got != want {
		t.Error(got)
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{2, 3}})
	if got := text(v, p); got != want {
		t.Errorf("a start changed the point's events: %s", got)
	}
}

func TestRefusedJobsAreCountedAndNamed(t *testing.T) {
	var jobs []traces.Job
	for i := range 30 {
		jobs = append(jobs, job(strings.Repeat("x", i+1), 0, second, 3+i%2))
	}
	jobs = append(jobs, job("fits", 0, second, 2), job("none", second, second, -1))
	s := start(t, sim.DefaultConfig(), short(t, "1x2"), jobs)
	if err := sim.Run(context.Background(), s, newGreedy(t, "first-fit")); err != nil {
		t.Fatal(err)
	}
	r := s.Refused()
	if r.Count != 31 || r.GPUs != 4 || len(r.IDs) != 20 || r.IDs[0] != "x" || s.View().Arrived() != 1 {
		t.Errorf("refused %+v, arrived %d", r, s.View().Arrived())
	}
}

func TestFaultyStreamsAreErrors(t *testing.T) {
	for name, jobs := range map[string][]traces.Job{
		"unsorted":            {job("a", 5*second, second, 1), job("b", 4*second, second, 1)},
		"unsorted, not fit":   {job("a", 0, second, 1), job("huge", 5*second, second, 99), job("b", 4*second, second, 1)},
		"negative submit":     {job("a", 0, second, 1), job("b", -second, second, 1)},
		"negative work":       {job("a", 0, second, 1), job("b", second, -second, 1)},
		"negative work first": {job("b", 0, -second, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sim.New(sim.DefaultConfig(), short(t, "pool:2"))
			if err != nil {
				t.Fatal(err)
			}
			err = s.Reset(&traces.Slice{Jobs: jobs})
			for err == nil {
				_, err = s.Advance(context.Background())
			}
			if errors.Is(err, sim.ErrDone) || !strings.Contains(err.Error(), "(b)") && !strings.Contains(err.Error(), "job b ") {
				t.Fatalf("got %v, want an error that names job b", err)
			}
			if _, again := s.Advance(context.Background()); again == nil || again.Error() != err.Error() {
				t.Errorf("then %v", again)
			}
			if again := s.Apply(&sim.Decision{}); again == nil {
				t.Error("a broken run takes decisions")
			}
			if err := s.Reset(&traces.Slice{}); err != nil {
				t.Errorf("a new run: %v", err)
			}
		})
	}
}

func TestConfigFaultsAllAtOnce(t *testing.T) {
	cfg := sim.Config{
		Comm: "telepathy", Restart: -1, Horizon: -1, Ring: sim.Ring{Overlap: 1.5},
		Contention: sim.Contention{A: -1, B: -1, Eta: -1}, Checkpoint: -1,
		Overhead:          sim.Overhead{Start: -1, StartPerGPU: 2 * time.Minute, Stop: -1, StopPerGPU: -1},
		Failures:          sim.Failures{MTBF: -1, MTTR: -1},
		InterferenceScope: "street",
	}
	err := cfg.Validate()
	for _, fault := range []string{
		`comm: got "telepathy", want one of none, tree, ring, contention`, "restart: got", "horizon: got",
		"ring.overlap: got 1.5, want a share of the compute time, 0 to 1",
		"contention.a: got", "contention.b: got", "contention.eta: got", "checkpoint: got", "overhead.start: got",
		"overhead.start_per_gpu: got 2m0s, want a time, 0s to 1m0s",
		"overhead.stop: got", "overhead.stop_per_gpu: got", "failures.mtbf: got", "failures.mttr: got",
		`interference_scope: got "street", want gpu or node`,
	} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%v does not say %s", err, fault)
		}
	}
	for _, bad := range []sim.Config{{Comm: "contention"}, {Comm: "none", Failures: sim.Failures{MTBF: 1}},
		{Comm: "ring", Ring: sim.Ring{Overlap: math.NaN()}}} {
		if err := bad.Validate(); err == nil {
			t.Errorf("%+v is fine", bad)
		}
	}
	for _, comm := range sim.CommNames() {
		good := sim.DefaultConfig()
		if good.Comm = comm; good.Validate() != nil {
			t.Errorf("%s: %v", comm, good.Validate())
		}
	}
	if _, err := sim.New(cfg, cluster.Spec{Pool: 1}); err == nil {
		t.Error("New takes it")
	}
	if _, err := sim.New(sim.DefaultConfig(), cluster.Spec{}); err == nil {
		t.Error("New takes no cluster")
	}
}

func TestCancelledContext(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "pool:1"), []traces.Job{job("A", 0, second, 1)})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Advance(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := sim.Run(ctx, s, newGreedy(t, "first-fit")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	advance(t, s) // nothing was lost
}
