package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// What cannot be is refused in one sentence that says why, and the facts that come after it show what they would have
// shown.
func TestFactsThatCannotBe(t *testing.T) {
	a, b, c, huge := job("a", 0, 0, 2), job("b", 0, 0, 4), job("c", 0, 0, 1), job("huge", 0, 0, 9)
	c.MinGPUs, c.MaxGPUs = 1, 2
	// On nodes of four GPUs a runs on 0 and 1, c on 2; node 1 is down; b and huge wait.
	begin := func() *sim.Simulator {
		s := following(t, sim.DefaultConfig(), twoNodes, "none")
		for _, j := range []*traces.Job{&a, &b, &c, &huge} {
			tell(t, s, sim.Fact{Kind: sim.Submit, Job: j})
		}
		tell(t, s, sim.Fact{At: second, Kind: sim.Start, ID: "a", GPUs: []cluster.GPU{0, 1}})
		tell(t, s, sim.Fact{At: second, Kind: sim.Start, ID: "c", GPUs: []cluster.GPU{2}})
		tell(t, s, sim.Fact{At: second, Kind: sim.NodeFail, Node: 1})
		look(t, s, 2*second)
		return s
	}
	later := func(s *sim.Simulator) string {
		for _, f := range []sim.Fact{
			{At: 3 * second, Kind: sim.Finish, ID: "a", GPUs: []cluster.GPU{1, 0}},
			{At: 3 * second, Kind: sim.NodeRecover, Node: 1},
			{At: 4 * second, Kind: sim.Start, ID: "b", GPUs: []cluster.GPU{4, 5, 6, 7}},
			{At: 5 * second, Kind: sim.NodeFail, Node: 1}, // it drains
		} {
			tell(t, s, f)
		}
		p := look(t, s, 6*second)
		return everything(s.View(), p)
	}
	gpus := func(g ...cluster.GPU) []cluster.GPU { return g }
	young, twice, early := job("young", 8*second, 0, 1), a, job("early", -second, 0, 1)
	now := 2 * second
	want := later(begin())
	for _, x := range []struct {
		fact sim.Fact
		says string
	}{
		{sim.Fact{At: second, Kind: sim.Finish, ID: "a"}, "want facts in order of time"},
		{sim.Fact{At: -second, Kind: sim.Timer}, "want facts in order of time"},
		{sim.Fact{At: now, Kind: sim.Finish, ID: "nobody"}, "no job of this name"},
		{sim.Fact{At: now, Kind: sim.Finish, ID: ""}, "no job of this name"},
		{sim.Fact{At: now, Kind: sim.Finish, ID: "b"}, "is waiting, not running"},
		{sim.Fact{At: now, Kind: sim.Finish, ID: "a", GPUs: gpus(0, 3)}, "holds GPUs [0 1], not [0 3]"},
		{sim.Fact{At: now, Kind: sim.Finish, ID: "a", GPUs: gpus(0)}, "holds GPUs [0 1], not [0]"},
		{sim.Fact{At: now, Kind: sim.Finish, ID: "a", GPUs: gpus(0, 0)}, "holds GPUs [0 1], not [0 0]"},
		{sim.Fact{At: now, Kind: sim.Finish, ID: "a", GPUs: gpus(0, 1, 1)}, "holds GPUs [0 1], not [0 1 1]"},
		{sim.Fact{At: now, Kind: sim.Preempt, ID: "a", GPUs: gpus(4, 5)}, "holds GPUs [0 1], not [4 5]"},
		{sim.Fact{At: now, Kind: sim.Fail, ID: "c", GPUs: gpus(3)}, "holds GPUs [2], not [3]"},
		{sim.Fact{At: now, Kind: sim.Preempt, ID: "b"}, "is waiting, not running"},
		{sim.Fact{At: now, Kind: sim.Drop, ID: "a"}, "is running, not waiting"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "a", GPUs: gpus(0, 1)}, "is running, not waiting"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b", GPUs: gpus(4, 5, 6, 7)}, "GPU 4 belongs to node 1, which is down"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b", GPUs: gpus(3, 3, 3, 3)}, "GPU 3 is named twice"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b", GPUs: gpus(-1, 1, 2, 3)}, "there is no GPU -1, want 0 to 7"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b", GPUs: gpus(3, 8, 9, 10)}, "there is no GPU 8, want 0 to 7"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b", GPUs: gpus(0, 1, 2, 3)}, "GPU 0 has 0 thousandths free"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b", GPUs: gpus(3)}, "on 1 GPUs, which is not elastic and wants 4"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b"}, "on 0 GPUs, which is not elastic and wants 4"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "b", N: 1, GPUs: gpus(3)}, "elastic"},
		{sim.Fact{At: now, Kind: sim.Start, ID: "huge", GPUs: gpus(3)}, "never fit"},
		{sim.Fact{At: now, Kind: sim.Migrate, ID: "c", GPUs: gpus(0)}, "GPU 0 has 0 thousandths free"},
		{sim.Fact{At: now, Kind: sim.Migrate, ID: "c", GPUs: gpus(4)}, "node 1, which is down"},
		{sim.Fact{At: now, Kind: sim.Resize, ID: "c", N: 2, GPUs: gpus(2, 2)}, "GPU 2 is named twice"},
		{sim.Fact{At: now, Kind: sim.Resize, ID: "c", N: 3, GPUs: gpus(2, 3, 0)}, "3 GPUs"},
		{sim.Fact{At: now, Kind: sim.Resize, ID: "c", N: -1, GPUs: gpus(2)}, "the 1 GPUs that it has"},
		{sim.Fact{At: now, Kind: sim.Resize, ID: "a", N: 1, GPUs: gpus(0)}, "elastic"},
		{sim.Fact{At: now, Kind: sim.NodeFail, Node: 1}, "down already"},
		{sim.Fact{At: now, Kind: sim.NodeRecover, Node: 0}, "up already"},
		{sim.Fact{At: now, Kind: sim.NodeFail, Node: 2}, "no such node, want 0 to 1"},
		{sim.Fact{At: now, Kind: sim.NodeFail, Node: -1}, "no such node, want 0 to 1"},
		{sim.Fact{At: now, Kind: sim.Submit}, "it has no job"},
		{sim.Fact{At: now, Kind: sim.Submit, Job: &twice}, "a job of this name is in the system"},
		{sim.Fact{At: now, Kind: sim.Submit, Job: &huge}, "a job of this name is in the system"},
		{sim.Fact{At: now, Kind: sim.Submit, Job: &young}, "submitted at 8s, which is later"},
		{sim.Fact{At: now, Kind: sim.Submit, Job: &early}, "submit"},
		{sim.Fact{At: now, Kind: 77, ID: "a"}, "kind 77 is unknown"},
		{sim.Fact{At: traces.MaxTime + 1, Kind: sim.Timer}, "where the clock ends"},
	} {
		s := begin()
		before := s.AppendSnapshot(nil)
		_, err := s.Tell(&x.fact)
		if err == nil || !errors.Is(err, sim.ErrFact) || !strings.Contains(err.Error(), x.says) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", x.fact, err, x.says)
		} else if !bytes.Equal(before, s.AppendSnapshot(nil)) {
			t.Errorf("%+v was refused and has changed the run", x.fact)
		} else if got := later(s); got != want {
			t.Errorf("after %+v the facts show\n%s\nwithout it\n%s", x.fact, got, want)
		}
	}
	s := begin()
	if _, err := s.Look(second); !errors.Is(err, sim.ErrFact) || !strings.Contains(err.Error(), "not earlier") {
		t.Error(err)
	}
	if got := later(s); got != want {
		t.Errorf("after a look at the past the facts show\n%s\nwithout it\n%s", got, want)
	}
}

// A start on a node that drains is refused with the node.
func TestNothingStartsWhereANodeDrains(t *testing.T) {
	s := following(t, sim.DefaultConfig(), twoNodes, "none")
	a, b := job("a", 0, 0, 1), job("b", 0, 0, 1)
	tell(t, s, sim.Fact{Kind: sim.Submit, Job: &a})
	tell(t, s, sim.Fact{Kind: sim.Submit, Job: &b})
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "a", GPUs: []cluster.GPU{0}})
	tell(t, s, sim.Fact{Kind: sim.NodeFail, Node: 0})
	if _, err := s.Tell(&sim.Fact{Kind: sim.Start, ID: "b", GPUs: []cluster.GPU{1}}); !errors.Is(err, sim.ErrFact) ||
		!strings.Contains(err.Error(), "GPU 1 belongs to node 0, on which nothing can start") {
		t.Error(err)
	}
	tell(t, s, sim.Fact{Kind: sim.Start, ID: "b", GPUs: []cluster.GPU{4}})
	look(t, s, second)
}

// nonsense draws a fact from a small world, so that some are true and most are not.
func nonsense(r *rand.Rand, now time.Duration) sim.Fact {
	kinds := []sim.EventKind{sim.Submit, sim.Start, sim.Start, sim.Finish, sim.Preempt, sim.Fail, sim.Migrate, sim.Migrate,
		sim.Resize, sim.Resize}
	f := sim.Fact{At: now + time.Duration(r.IntN(4)-1)*second*time.Duration(r.IntN(2)), Kind: sim.EventKind(r.IntN(12)),
		ID: fmt.Sprint("j", r.IntN(8)), Node: r.IntN(5) - 1}
	if r.IntN(3) > 0 {
		f.Kind = kinds[r.IntN(len(kinds))]
	}
	if f.Kind == sim.Submit && r.IntN(20) > 0 {
		j := job(f.ID, now+time.Duration(r.IntN(3)-1)*time.Duration(r.IntN(2))*second, time.Duration(r.IntN(3)-1)*second,
			[]int{1, 2, r.IntN(8) - 1}[r.IntN(3)])
		j.GPUMilli = []int{1000, 1000, 500, 0, 1500, -3}[r.IntN(6)]
		j.MinGPUs, j.MaxGPUs = r.IntN(3)*r.IntN(2), r.IntN(2)*max(0, j.GPUs+r.IntN(4)-1)
		j.Estimate = time.Duration(r.IntN(3)-1) * second
		f.Job, f.ID = &j, ""
	}
	from := r.IntN(10) - 1
	for i := range []int{1, 2, r.IntN(5)}[r.IntN(3)] {
		g := from + i
		if r.IntN(10) == 0 {
			g = r.IntN(12) - 1
		}
		f.GPUs = append(f.GPUs, cluster.GPU(g))
	}
	f.N = []int{0, 0, 0, len(f.GPUs), r.IntN(9) - 2}[r.IntN(5)]
	if f.Kind == sim.Finish || f.Kind == sim.Preempt || f.Kind == sim.Fail {
		f.GPUs = f.GPUs[:len(f.GPUs)*r.IntN(2)]
	}
	if f.Kind == sim.Resize && r.IntN(4) > 0 {
		f.N = len(f.GPUs)
	}
	return f
}

// Whatever the outside says, nothing panics and the books stay in order: a fact is taken in, or it is refused and
// changes nothing.
func TestNonsenseBreaksNothing(t *testing.T) {
	raced.Alone(t)
	taken, refused := map[sim.EventKind]int{}, 0
	for k := range uint64(36) {
		seed := testseed.Or(45) + k
		r := rand.New(rand.NewPCG(seed, 45))
		spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}, {Count: 1, GPUs: 2}}}}}
		if k%6 == 5 {
			spec = short(t, "pool:6")
		}
		cfg := sim.DefaultConfig()
		cfg.Checkpoint, cfg.Restart = time.Duration(r.IntN(2))*second, time.Duration(r.IntN(2))*second
		s := following(t, cfg, spec, []string{"none", "trace"}[k%2])
		var now time.Duration
		for range 400 {
			f := nonsense(r, now)
			if spec.Pool > 0 && r.IntN(4) > 0 {
				f.GPUs = nil
			}
			before := s.AppendSnapshot(nil)
			_, err := s.Tell(&f)
			if e := s.CheckInvariants(); e != nil {
				t.Fatalf("seed %d: after %+v (%v): %v", seed, f, err, e)
			}
			switch {
			case err == nil:
				taken[f.Kind]++
				now = f.At
			case !errors.Is(err, sim.ErrFact) || strings.Contains(err.Error(), "\n"):
				t.Fatalf("seed %d: %+v: %v", seed, f, err)
			case !bytes.Equal(before, s.AppendSnapshot(nil)):
				t.Fatalf("seed %d: %+v was refused (%v) and has changed the run", seed, f, err)
			default:
				refused++
			}
			if r.IntN(5) == 0 {
				now += time.Duration(r.IntN(3)) * second
				look(t, s, now)
				if r.IntN(2) == 0 {
					imagined(t, s, newChaos(t, r), look(t, s, now))
				}
			}
		}
	}
	for k := sim.Submit; k <= sim.NodeRecover; k++ {
		if taken[k] == 0 {
			t.Errorf("no fact of kind %v was taken in", k)
		}
	}
	if refused < 1000 {
		t.Errorf("only %d facts were refused", refused)
	}
}
