package schedulers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var gpuLists = regexp.MustCompile(` \[[^]]*\]`)

// If counting GPUs is enough, the exact plan stops and starts the same jobs.
func TestExactPlanChoosesWhatTheCountDoes(t *testing.T) {
	for _, order := range []string{"srtf", "srsf", "smallest-preempt", "las"} {
		for _, admission := range []string{"strict", "skip"} {
			t.Run(order+"+"+admission, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
					n := rapid.IntRange(1, 60).Draw(t, "jobs")
					spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 4}}}}}
					var jobs []traces.Job
					at := time.Duration(0)
					for i := range n {
						at += time.Duration(r.IntN(3)) * 7 * second
						jobs = append(jobs, whole(fmt.Sprint("j", i), at, time.Duration(1+r.IntN(12))*10*second, 1+r.IntN(1+r.IntN(24))))
					}
					cfg := schedulers.DefaultConfig()
					cfg.Order, cfg.Admission, cfg.Limits = order, admission, []time.Duration{40 * second}
					cfg.Placement = []string{"first-fit", "best-fit", "worst-fit", "pack", "closest-b", "rack"}[r.IntN(6)]
					play := func(exact bool) string {
						h, err := schedulers.New(cfg)
						if err != nil {
							t.Fatal(err)
						}
						if exact {
							schedulers.PlanExactly(h)
						}
						return gpuLists.ReplaceAllString(simulate(t, sim.DefaultConfig(), spec, jobs, h), "")
					}
					if got, want := play(true), play(false); got != want {
						t.Fatal(diff(got, want))
					}
				})
			})
		}
	}
}

// stops checks at every point for jobs that were stopped although no higher-ranked job took their place.
type stops struct {
	t     fatal
	count int
}

func (o *stops) Observe(v *sim.View, p *sim.Point) error {
	c := v.Cluster()
	share := func(a, b *sim.Event) bool {
		if c.Pool() {
			return true
		}
		for _, g := range a.GPUs {
			for _, h := range b.GPUs {
				if g == h || c.NodeOf(g) == c.NodeOf(h) && (v.Request(a.Job).CPUMilli > 0 || v.Request(a.Job).MemBytes > 0) {
					return true
				}
			}
		}
		vc := v.Request(a.Job).VC
		return vc > 0 && vc == v.Request(b.Job).VC && c.Spec().VCs[vc-1].Quota > 0
	}
	for i := range p.Events {
		e := &p.Events[i]
		if e.Kind != sim.Preempt {
			continue
		}
		o.count++
		rank := func(j sim.Job) int { return v.Request(j).GPUs * v.Request(j).Milli }
		if !slices.ContainsFunc(p.Events, func(s sim.Event) bool {
			return s.Kind == sim.Start && s.At == e.At && share(&s, e) &&
				(rank(s.Job) < rank(e.Job) || rank(s.Job) == rank(e.Job) && v.Pos(s.Job) < v.Pos(e.Job))
		}) {
			o.t.Fatalf("at %v job %s was stopped on %v for nobody:\n%+v", e.At, v.Trace(e.Job).ID, e.GPUs, p.Events)
		}
	}
	return nil
}

// On any cluster, with any placement, a job is stopped only for one of higher rank that starts in its place.
func TestNobodyIsStoppedForNothing(t *testing.T) {
	stopped := 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		spec, jobs := estimated(r, rapid.IntRange(1, 60).Draw(t, "jobs"))
		if spec.Pool > 0 {
			spec = cluster.Spec{Racks: []cluster.RackSpec{{Count: 3, Nodes: []cluster.NodeSpec{{Count: 1, GPUs: 4}}}},
				VCs: spec.VCs}
		}
		cfg := schedulers.DefaultConfig()
		cfg.Order, cfg.Placement = "smallest-preempt", fixedPlacements[r.IntN(len(fixedPlacements))]
		h, err := schedulers.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		schedulers.PlanExactly(h)
		s, err := sim.New(sim.DefaultConfig(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		o := &stops{t: t}
		if err := sim.Run(context.Background(), s, h, o); err != nil {
			t.Fatal(err)
		}
		stopped += o.count
	})
	if stopped == 0 {
		t.Error("nobody was ever stopped: the test looked at nothing")
	}
}

// Two nodes of two GPUs with a placement that keeps gangs on one node: the count would stop and start nothing.
func TestExactPlanByHand(t *testing.T) {
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Placement = "smallest-preempt", "consolidate-first" })
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}}}
	// A and B want three GPUs each and run on one node each. C wants two: no node has them, although two GPUs are
	// free, so B, the last in rank, is stopped for it, and continues once A has ended.
	got := simulate(t, sim.DefaultConfig(), spec, []traces.Job{
		whole("A", 0, 20*second, 3), whole("B", 0, 20*second, 3), whole("C", 5*second, 50*second, 2)}, h)
	want := "0s submit A []\n0s submit B []\n0s start A [0 1 2]\n0s start B [4 5 6]\n5s submit C []\n5s preempt B [4 5 6]\n5s start C [4 5]\n" +
		"20s finish A [0 1 2]\n20s start B [0 1 2]\n35s finish B [0 1 2]\n55s finish C [4 5]\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

// Nodes fail and recover: under every policy every job ends.
func TestFailuresLoseNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	failed := 0
	defer func() {
		if failed < 20 {
			t.Errorf("only %d jobs failed: the test looked at too little", failed)
		}
	}()
	for _, order := range schedulers.Orders() {
		if !schedulers.IsOrder(order) {
			continue
		}
		for _, with := range []struct{ admission, backfill string }{{"strict", ""}, {"skip", ""}, {"commit", ""},
			{"strict", "easy"}, {"commit", "easy"}, {"strict", "conservative"}} {
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Admission, cfg.Backfill = order, with.admission, with.backfill
			if cfg.Order == "gittins-2d" {
				cfg.Service = []time.Duration{second, 100 * second}
			}
			if cfg.Validate() != nil {
				continue
			}
			t.Run(cfg.Name(), func(t *testing.T) {
				spec, jobs := drawn(r, 80)
				if spec.Pool > 0 {
					spec = cluster.Spec{Racks: []cluster.RackSpec{{Count: 3, Nodes: []cluster.NodeSpec{{Count: 1, GPUs: 4}}}}}
				}
				sc := sim.DefaultConfig()
				sc.Failures.MTBF, sc.Failures.MTTR, sc.Checkpoint = 10*time.Minute, 2*time.Minute, 20*second
				cfg.Simulator(&sc)
				h, err := schedulers.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				s, err := sim.New(sc, spec)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
					t.Fatal(err)
				}
				var l log
				if err := sim.Run(context.Background(), s, h, &l); err != nil {
					t.Fatal(err)
				}
				failed += strings.Count(l.b.String(), " fail ")
				if v := s.View(); v.Ended() != v.Arrived() || len(v.Waiting()) > 0 {
					t.Errorf("%d of %d jobs ended", v.Ended(), v.Arrived())
				}
			})
		}
	}
}
