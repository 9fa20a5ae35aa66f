package sched_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// crowded returns the five environments, which follow a cluster of 512 GPUs, all held, with waiting jobs.
func crowded(t testing.TB, waiting int) (map[string]sched.Steered, []string) {
	t.Helper()
	var nodes cluster.Spec
	nodes.Racks = []cluster.RackSpec{{Count: 8, Nodes: []cluster.NodeSpec{{Count: 8, GPUs: 8}}}}
	r := rand.New(rand.NewPCG(9, 9))
	history := owned(r, 300)
	all := opened5(t, "history", func(x sched.Taken) sched.Windows {
		w, err := sched.Take(x, nodes, history)
		if err != nil {
			t.Fatal(err)
		}
		return archived{w.Windows}
	}, nodes, history)
	var names []string
	for name, e := range all {
		names = append(names, name)
		if err := e.Follow(sched.Following{}); err != nil {
			t.Fatal(err)
		}
		for g := range 512 {
			id := fmt.Sprint("runs ", g)
			tell1(t, e,
				sim.Fact{Kind: sim.Submit, Job: &traces.Job{ID: id, User: "u", Estimate: 100 * time.Hour, GPUs: 1, GPUMilli: 1000}})
			if g < 510 {
				tell1(t, e, sim.Fact{Kind: sim.Start, ID: id, GPUs: []cluster.GPU{cluster.GPU(g)}})
			}
		}
		for i := range waiting {
			j := traces.Job{ID: fmt.Sprint("waits ", i), User: fmt.Sprint("u", i%50),
				Estimate: time.Duration(1+r.IntN(5000)) * time.Second, GPUs: 1 + r.IntN(8), GPUMilli: 1000}
			tell1(t, e, sim.Fact{Kind: sim.Submit, Job: &j})
		}
		if err := e.Look(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return all, names
}

func tell1(t testing.TB, e sched.Steered, f sim.Fact) {
	if err := e.Tell(&f); err != nil {
		t.Fatal(err)
	}
}

// news tells e that a job has arrived, or that the last one has left, and observes.
type news struct {
	e    sched.Steered
	ts   *env.TimeStep
	now  time.Duration
	job  traces.Job
	fact sim.Fact
	here bool
}

func newNews(e sched.Steered) *news {
	return &news{e: e, ts: env.NewTimeStep(e.Spec()), now: time.Second,
		job: traces.Job{ID: "new", User: "u", Estimate: time.Hour, GPUs: 2, GPUMilli: 1000}}
}

func (n *news) next() error {
	n.now += time.Second
	n.fact = sim.Fact{At: n.now, Kind: sim.Submit, Job: &n.job}
	if n.here {
		n.fact = sim.Fact{At: n.now, Kind: sim.Drop, ID: "new"}
	}
	n.here = !n.here
	if err := n.e.Tell(&n.fact); err != nil {
		return err
	}
	if err := n.e.Look(n.now); err != nil {
		return err
	}
	_, err := n.e.Observe(n.ts)
	return err
}

// An observation after a fact allocates nothing in steady state.
func TestObservationsOfFactsDoNotAllocate(t *testing.T) {
	if checked {
		t.Skip("the books are checked after every change, which allocates; builds without the tag invariants run this")
	}
	all, names := crowded(t, 300)
	for _, name := range names {
		n := newNews(all[name])
		for range 50 {
			if err := n.next(); err != nil {
				t.Fatal(err)
			}
		}
		if got := testing.AllocsPerRun(100, func() {
			if err := n.next(); err != nil {
				t.Fatal(err)
			}
		}); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

// BenchmarkFollow takes the time of a fact and the observation after it, with 10,000 waiting jobs.
func BenchmarkFollow(b *testing.B) {
	all, names := crowded(b, 10_000)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			n := newNews(all[name])
			n.now = all[name].View().Now()
			_, n.here = all[name].View().Find("new")
			b.ReportAllocs()
			for b.Loop() {
				if err := n.next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkImagine takes the time of an action in imagination, with 10,000 waiting jobs.
func BenchmarkImagine(b *testing.B) {
	all, names := crowded(b, 10_000)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			e := all[name]
			ts := env.NewTimeStep(e.Spec())
			b.ReportAllocs()
			for b.Loop() {
				asks, err := e.Observe(ts)
				if err != nil {
					b.Fatal(err)
				}
				if asks {
					if _, _, err := e.Imagine(env.Action{Disc: []int32{int32(slices.Index(ts.Mask, true))}}); err != nil {
						b.Fatal(err)
					}
				}
				e.Forget()
			}
		})
	}
}
