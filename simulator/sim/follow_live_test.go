package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// tell tells one fact.
func tell(t fatal, s *sim.Simulator, f sim.Fact) {
	t.Helper()
	if _, err := s.Tell(&f); err != nil {
		t.Fatal(err)
	}
}

func look(t fatal, s *sim.Simulator, now time.Duration) *sim.Point {
	t.Helper()
	p, err := s.Look(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	return p
}

func following(t fatal, cfg sim.Config, spec cluster.Spec, est string) *sim.Simulator {
	t.Helper()
	e, err := sim.ParseEstimates(est)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, cfg, spec, nil)
	if err := s.Follow(sim.Following{Estimates: e}); err != nil {
		t.Fatal(err)
	}
	return s
}

// byName describes the jobs in the system by name, whatever their numbers are.
func byName(v *sim.View) string {
	var lines []string
	for _, list := range [][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			line := fmt.Sprint(v.Trace(j).ID, v.Pos(j), v.State(j), v.Ran(j), v.Preemptions(j), v.Failures(j), v.FirstStart(j),
				*v.Request(j))
			if v.State(j) == sim.Running {
				line += fmt.Sprint(v.GPUs(j), v.Rate(j), v.Started(j))
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Without run times, and however seldom somebody looks, the cluster is the one of the run, and what a running job has
// left is what the estimates say of a job of its age.
func TestWithoutRunTimesTheEstimatesSayWhatIsLeft(t *testing.T) {
	for k := range uint64(40) {
		seed := testseed.Or(43) + k
		r := rand.New(rand.NewPCG(seed, 43))
		spec := mixedSpec(r)
		spec.Speeds = nil
		cfg := sim.DefaultConfig()
		cfg.Predictor = history.NewArchive(owned(r, mixed(r, 40, 4, second)))
		cfg.Failures = sim.Failures{MTBF: 900 * second, MTTR: 50 * second}
		name := []string{"history", "trace", "none"}[k%3]
		jobs := owned(r, mixed(r, 50, 4, second))
		for i := range jobs {
			jobs[i].Estimate = jobs[i].Work/2 + time.Duration(1+r.IntN(200))*second
		}
		s := start(t, cfg, spec, jobs)
		c := newChaos(t, r)
		est, _ := sim.ParseEstimates(name)
		f := following(t, cfg, spec, name)
		rec, more := new(recorder), true
		for more {
			p, err := s.Advance(ctx)
			if ended(t, err) {
				break
			}
			for _, fact := range rec.facts(s.View(), p.Events) {
				if fact.Job != nil {
					bare := *fact.Job
					bare.Work = 0
					fact.Job = &bare
				}
				tell(t, f, fact)
			}
			if r.IntN(3) == 0 {
				look(t, f, p.Now)
				if a, b := byName(s.View()), byName(f.View()); a != b {
					t.Fatalf("seed %d: the run:\n%s\nthe facts:\n%s", seed, a, b)
				}
				v := f.View()
				for _, j := range v.Running() {
					want := est.Left(v, j)
					if name == "none" {
						want = sim.Outlived(time.Hour, v.Ran(j)) - v.Ran(j)
					}
					if got := v.Left(j); math.Abs(got-float64(want)) > 2 || got < 1 {
						t.Fatalf("seed %d: %v of %s is left, want %v", seed, got, v.Trace(j).ID, want)
					}
				}
			}
			if more = !s.View().Over(); !more {
				break
			}
			for {
				var d sim.Decision
				c.one(s.View(), &d)
				if err := s.Apply(&d); err != nil && !errors.Is(err, sim.ErrDecision) {
					t.Fatal(err)
				} else if err == nil && d.Op == sim.Wait {
					break
				}
			}
		}
	}
}

func TestEstimatesThatNeedRunTimesAreRefused(t *testing.T) {
	for name, word := range map[string]string{"exact": "exact", "noisy:0.5": "noisy:0.5", "history": "predictor"} {
		s := start(t, sim.DefaultConfig(), short(t, "pool:4"), nil)
		e, _ := sim.ParseEstimates(name)
		if err := s.Follow(sim.Following{Estimates: e}); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := following(t, sim.DefaultConfig(), short(t, "pool:4"), "trace")
	j := job("a", 0, 0, 1)
	if _, err := s.Tell(&sim.Fact{Kind: sim.Submit, Job: &j}); err == nil ||
		!strings.Contains(err.Error(), "requested time") {
		t.Error(err)
	}
}

var twoNodes = cluster.Spec{Racks: []cluster.RackSpec{{Count: 1, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}

// A node on which jobs run can be closed: they go on, none starts there, and once they have ended it is down.
func TestANodeDrains(t *testing.T) {
	s := following(t, sim.DefaultConfig(), twoNodes, "none")
	a, b := job("a", 0, 0, 2), job("b", 0, 0, 1)
	b.GPUMilli = 300
	tell(t, s, sim.Fact{Kind: sim.Submit, Job: &a})
	tell(t, s, sim.Fact{Kind: sim.Submit, Job: &b})
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "a", GPUs: []cluster.GPU{0, 1}})
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "b", GPUs: []cluster.GPU{3}})
	tell(t, s, sim.Fact{At: second, Kind: sim.NodeFail, Node: 0})
	look(t, s, second)
	c := s.View().Cluster()
	if c.FreeMilli() != 4000 || c.Down(0) || c.Free() != 4 {
		t.Fatal(c.FreeMilli(), c.Down(0), c.Free())
	}
	if _, err := s.Tell(&sim.Fact{At: second, Kind: sim.NodeFail, Node: 0}); !errors.Is(err, sim.ErrFact) {
		t.Fatal(err)
	}
	tell(t, s, sim.Fact{At: 2 * second, Kind: sim.Finish, ID: "a"})
	look(t, s, 2*second)
	if c.FreeMilli() != 4000 || c.Down(0) {
		t.Fatal(c.FreeMilli(), c.Down(0))
	}
	tell(t, s, sim.Fact{At: 3 * second, Kind: sim.Preempt, ID: "b"})
	look(t, s, 3*second)
	if c.FreeMilli() != 4000 || !c.Down(0) {
		t.Fatal(c.FreeMilli(), c.Down(0))
	}
	tell(t, s, sim.Fact{At: 4 * second, Kind: sim.NodeRecover, Node: 0})
	tell(t, s, sim.Fact{At: 4 * second, Kind: sim.Start, ID: "b", GPUs: []cluster.GPU{0}})
	tell(t, s, sim.Fact{At: 4 * second, Kind: sim.NodeFail, Node: 0})
	tell(t, s, sim.Fact{At: 5 * second, Kind: sim.NodeRecover, Node: 0})
	look(t, s, 5*second)
	if c.FreeMilli() != 7700 || c.DownGPUs() != 0 {
		t.Fatal(c.FreeMilli(), c.DownGPUs())
	}
}

// In a fork the node goes on to drain: what its jobs leave does not come free, and with the last one it is down.
func TestANodeDrainsInATwin(t *testing.T) {
	s := following(t, sim.DefaultConfig(), twoNodes, "none")
	a, b, c := job("a", 0, 0, 2), job("b", 0, 0, 1), job("c", 0, 0, 4)
	for _, j := range []*traces.Job{&a, &b, &c} {
		tell(t, s, sim.Fact{Kind: sim.Submit, Job: j})
	}
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "a", GPUs: []cluster.GPU{0, 1}})
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "b", GPUs: []cluster.GPU{3}})
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "c", GPUs: []cluster.GPU{4, 5, 6, 7}})
	tell(t, s, sim.Fact{At: second, Kind: sim.NodeFail, Node: 0})
	look(t, s, second)
	fork, err := s.View().Fork()
	if err != nil {
		t.Fatal(err)
	}
	var f sim.Future
	for i, x := range []time.Duration{2 * second, 4 * second, 3 * second} {
		n, _ := s.View().Find([]string{"a", "b", "c"}[i])
		for int(n) >= len(f.Left) {
			f.Left = append(f.Left, 0)
		}
		f.Left[n] = float64(x)
	}
	for range 2 { // a fork is used again
		fork.CopyFrom(s.View(), &f)
		cl := fork.View().Cluster()
		for i, want := range []struct {
			free int
			down bool
		}{{0, false}, {4, false}, {4, true}} {
			if _, err := fork.Advance(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := fork.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
			if cl.Free() != want.free || cl.Down(0) != want.down {
				t.Errorf("after %d ends: %d free, down %v, want %+v", i+1, cl.Free(), cl.Down(0), want)
			}
		}
	}
	if c := s.View().Cluster(); c.Down(0) || c.Free() != 0 {
		t.Error("the fork has changed its original")
	}
}

// A job that can never fit is counted; that it leaves is no news, that it starts cannot be.
func TestAJobThatNeverFits(t *testing.T) {
	s := following(t, sim.DefaultConfig(), twoNodes, "none")
	j := job("huge", 0, 0, 9)
	tell(t, s, sim.Fact{Kind: sim.Submit, Job: &j})
	if r := s.Refused(); r.Count != 1 || r.IDs[0] != "huge" {
		t.Fatal(r)
	}
	if _, err := s.Tell(&sim.Fact{Kind: sim.Start, ID: "huge"}); err == nil ||
		!strings.Contains(err.Error(), "never fit") {
		t.Fatal(err)
	}
	tell(t, s, sim.Fact{Kind: sim.Finish, ID: "huge"})
	if _, err := s.Tell(&sim.Fact{Kind: sim.Finish, ID: "huge"}); !errors.Is(err, sim.ErrFact) {
		t.Fatal(err)
	}
}

// Who comes to a cluster in the middle of its life sees what there is.
func TestAClusterInTheMiddleOfItsLife(t *testing.T) {
	for k := range uint64(30) {
		seed := testseed.Or(44) + k
		r := rand.New(rand.NewPCG(seed, 44))
		spec, cfg := mixedSpec(r), sim.DefaultConfig()
		cfg.Failures = sim.Failures{MTBF: 900 * second, MTTR: 500 * second}
		s := start(t, cfg, spec, mixed(r, 60, 4, second))
		c := newChaos(t, r)
		c.stops = 0
		if !c.until(t, s, 60) {
			continue
		}
		v := s.View()
		x := sim.Present{Now: v.Now()}
		for _, list := range [][]sim.Job{v.Running(), v.Waiting()} {
			for _, j := range list {
				x.Jobs = append(x.Jobs,
					sim.PresentJob{Job: v.Trace(j), Runs: v.State(j) == sim.Running, Start: v.Started(j), GPUs: v.GPUs(j)})
			}
		}
		for n := range v.Cluster().Nodes() {
			if v.Cluster().Down(n) {
				x.Down = append(x.Down, n)
			}
		}
		f := following(t, cfg, spec, "none")
		for _, fact := range x.Facts(nil) {
			tell(t, f, fact)
		}
		look(t, f, v.Now())
		w := f.View()
		if len(w.Waiting()) != len(v.Waiting()) || len(w.Running()) != len(v.Running()) ||
			w.Cluster().FreeMilli() != v.Cluster().FreeMilli() || w.Cluster().DownGPUs() != v.Cluster().DownGPUs() {
			t.Fatalf("seed %d: %v %v, want %v %v", seed, w.Waiting(), w.Running(), v.Waiting(), v.Running())
		}
		for _, j := range v.Running() {
			i, ok := w.Find(v.Trace(j).ID)
			if !ok || !slices.Equal(w.GPUs(i), v.GPUs(j)) || w.Started(i) != v.Started(j) || w.Rate(i) != v.Rate(j) {
				t.Fatalf("seed %d: job %s runs on %v since %v", seed, v.Trace(j).ID, w.GPUs(i), w.Started(i))
			}
		}
	}
}

// A fork of a simulator that follows goes on from its state with another future, also from what is imagined.
func TestATwinOfAFollower(t *testing.T) {
	cfg := sim.DefaultConfig()
	s := following(t, cfg, twoNodes, "none")
	a, b := job("a", 0, 0, 4), job("b", 0, 0, 4)
	tell(t, s, sim.Fact{Kind: sim.Submit, Job: &a})
	tell(t, s, sim.Fact{Kind: sim.Submit, Job: &b})
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "a", GPUs: []cluster.GPU{0, 1, 2, 3}})
	look(t, s, 5*second)
	if err := s.Imagine(); err != nil {
		t.Fatal(err)
	}
	i, _ := s.View().Find("b")
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: i, GPUs: []cluster.GPU{4, 5, 6, 7}})
	fork := forkOf(t, s)
	fork.CopyFrom(s.View(), &sim.Future{Left: []float64{10e9, 20e9}, Jobs: []traces.Job{job("c", 8*second, second, 1)}})
	apply(t, fork, sim.Decision{})
	var got []string
	for {
		p, err := fork.Advance(context.Background())
		if ended(t, err) {
			break
		}
		got = append(got, text(fork.View(), p))
		if j := fork.View().Waiting(); len(j) > 0 && fork.View().Fits(j[0]) {
			apply(t, fork, sim.Decision{Op: sim.StartJob, Job: j[0], GPUs: []cluster.GPU{0}})
		}
	}
	want := []string{"8s: start b[4 5 6 7]@5s, submit c", "15s: finish a[0 1 2 3]", "16s: start c[0]@15s, finish c[0]",
		"25s: finish b[4 5 6 7]"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.Forget()
	if v := s.View(); len(v.Waiting()) != 1 || v.State(i) != sim.Waiting {
		t.Error(v.Waiting(), v.State(i))
	}
}
