package schedulers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// meddled plays x under h and returns all events and decisions as text. If r is not nil, other code makes decisions
// too, before those of h and between them, that depend on r and on the state alone.
func (x *world) meddled(t fatal, h sim.Scheduler, r *rand.Rand) string {
	t.Helper()
	s, err := sim.New(x.cfg, x.spec)
	if err != nil {
		t.Fatalf("%v\n%s", err, x)
	}
	if err := s.Reset(&traces.Slice{Jobs: x.jobs}); err != nil {
		t.Fatalf("%v\n%s", err, x)
	}
	var l log
	v := s.View()
	h.Reset(v)
	theirs := map[int]bool{} // positions of jobs that others have started
	for {
		p, err := s.Advance(context.Background())
		if errors.Is(err, sim.ErrDone) {
			return l.b.String()
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, x)
		}
		if err := l.Observe(v, p); err != nil {
			t.Fatal(err)
		}
		var d sim.Decision
		for d.Op = sim.StartJob; d.Op != sim.Wait && !v.Over(); {
			if r != nil && r.IntN(4) == 0 {
				fmt.Fprintln(&l.b, "others:", meddle(s, r, theirs))
			}
			if err := h.Decide(v, p, &d); err != nil {
				t.Fatalf("%v\n%s", err, x)
			}
			err := s.Apply(&d)
			if d.Op == sim.Wait {
				d.GPUs = d.GPUs[:0] // means nothing
			}
			fmt.Fprintln(&l.b, v.Now(), d.Op, d.Job, d.GPUs, d.Until, err)
			if err != nil { // a job that others have stopped at this point, for example
				return l.b.String()
			}
		}
	}
}

// meddle starts, stops or drops a job drawn from r, if the simulator allows it. It does not stop jobs in theirs, those
// that it has started: a scheduler may believe that they have waited since, and a stopped job cannot start at once.
func meddle(s *sim.Simulator, r *rand.Rand, theirs map[int]bool) string {
	v := s.View()
	d := sim.Decision{Op: []sim.Op{sim.StartJob, sim.PreemptJob, sim.DropJob}[r.IntN(3)]}
	from := v.Waiting()
	if d.Op == sim.PreemptJob {
		from = v.Running()
	}
	if len(from) == 0 {
		return "nothing"
	}
	d.Job = from[r.IntN(len(from))]
	switch pos := v.Pos(d.Job); d.Op {
	case sim.StartJob:
		d.GPUs, _ = firstFit.Place(v.Cluster(), v.Request(d.Job), nil)
		theirs[pos] = true
	case sim.PreemptJob:
		if theirs[pos] {
			return "nothing"
		}
	}
	return fmt.Sprint(d.Op, d.Job, s.Apply(&d))
}

// compare plays x with classes ranked anew and with every job ranked anew: both must decide the same, byte by byte.
func (x *world) compare(t fatal, seed uint64, meddled bool) (decisions string) {
	t.Helper()
	var logs [2]string
	for i := range logs {
		h, err := schedulers.New(x.policy)
		if err != nil {
			t.Fatalf("%v\n%s", err, x)
		}
		if i == 1 && schedulers.RankJobs(h) != slices.Contains(ranksClasses, x.policy.Order) {
			t.Fatalf("%s: does it rank classes?", h.Name())
		}
		for range 2 { // the second run uses the memory of the first
			var r *rand.Rand
			if meddled {
				r = rand.New(rand.NewPCG(seed, 1))
			}
			logs[i] = x.meddled(t, h, r)
		}
	}
	if logs[0] != logs[1] {
		t.Fatalf("%s\n%s", x, diff(logs[0], logs[1]))
	}
	return logs[0]
}

// ranksClasses are the orders that rank classes of jobs, and ranksClassesIn the ways in which they do.
var (
	ranksClasses   = []string{"drf", "packer"}
	ranksClassesIn = []how{{"strict", "none"}, {"skip", "none"}, {"strict", "easy"}, {"strict", "conservative"},
		{"commit", "none"}, {"commit", "easy"}}
)

// Ranking classes of jobs anew decides exactly as ranking every job anew, with virtual clusters, failures, restarts,
// shares, types, cores and memory, and whatever other code decides meanwhile. So does keeping the keys of tetris while
// they stand, and giving jobs new keys where they are, when the order matters, instead of queueing them anew.
func TestRankingClassesIsRankingJobs(t *testing.T) {
	for _, order := range append(slices.Clone(ranksClasses), "tetris", "wfp3", "unicep", "sjf") {
		for _, way := range ranksClassesIn {
			t.Run(order+"+"+way.String(), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					x := drawWorld(t, wants{order: order, way: &way, most: 40})
					x.compare(t, rapid.Uint64().Draw(t, "seed of the others"), yes(t, "others decide too"))
				})
			})
		}
	}
}

// What back-filling keeps from one point to the next changes no decision, whatever happens in between: nodes that fail
// while they are idle, for example.
func TestBackfillingKeepsOnlyWhatHolds(t *testing.T) {
	for _, order := range []string{"fifo", "sjf", "drf", "tetris", "wfp3"} {
		for _, way := range []how{{"strict", "easy"}, {"strict", "conservative"}} {
			t.Run(order+"+"+way.String(), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					x := drawWorld(t, wants{order: order, way: &way, most: 40})
					var logs [2]string
					for i := range logs {
						h, err := schedulers.New(x.policy)
						if err != nil {
							t.Fatalf("%v\n%s", err, x)
						}
						if i == 1 {
							schedulers.Restless(h)
						}
						logs[i] = x.meddled(t, h, nil)
					}
					if logs[0] != logs[1] {
						t.Fatalf("%s\n%s", x, diff(logs[0], logs[1]))
					}
				})
			})
		}
	}
}

// Two nodes of one GPU; c, which needs both, is the head of the line. When the node that is free fails, c has to wait
// for its repair, so d, which does not end in time for c otherwise, no longer delays it.
func TestAnIdleNodeThatFailsMakesReservationsAnew(t *testing.T) {
	for _, backfill := range []string{"easy", "conservative"} {
		x := &world{cfg: sim.DefaultConfig(), policy: schedulers.DefaultConfig()}
		x.policy.Order, x.policy.Admission, x.policy.Backfill, x.policy.Estimates = "fifo", "strict", backfill,
			sim.MustEstimates("trace")
		x.spec.Racks = []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 1}}}}
		x.cfg.Failures.MTBF, x.cfg.Failures.MTTR, x.cfg.Seed = 30*second, second, 1
		for i, want := range []struct {
			gpus, milli    int
			work, estimate time.Duration
		}{{2, 1000, 0, second}, {1, 500, second, second}, {2, 1000, 0, second}, {1, 500, 0, 2 * second}} {
			j := whole(string(rune('a'+i)), 0, want.work, want.gpus)
			j.GPUMilli, j.Estimate = want.milli, want.estimate
			x.jobs = append(x.jobs, j)
		}
		h, err := schedulers.New(x.policy)
		if err != nil {
			t.Fatal(err)
		}
		got := x.meddled(t, h, nil)
		fails, starts, ends := strings.Index(got, "node-fail"), strings.Index(got, "start d"), strings.Index(got, "finish b")
		if fails < 0 || starts < fails || ends < starts {
			t.Errorf("%s: want the failure, the start of d and the finish of b, in this order, got\n%s", backfill, got)
		}
	}
}

// A virtual cluster with nodes of its own learns that other code has stopped a job between two of its starts, and then
// tries again the jobs that had no place before.
func TestOthersStopAJobInAPartBetweenTwoStarts(t *testing.T) {
	for _, order := range ranksClasses {
		x := &world{cfg: sim.DefaultConfig(), policy: schedulers.DefaultConfig()}
		x.policy.Order, x.policy.Admission = order, "skip"
		x.spec.Racks = []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 3}}}}
		x.spec.VCs = []cluster.VCSpec{{Name: "own", Nodes: 1}}
		for i, n := range []int{1, 2, 2, 1, 1, 1, 1, 1} {
			j := whole(string(rune('a'+i)), time.Duration(i)*second, 100*second, n)
			if j.VC = "own"; i == 2 {
				j.GPUMilli = 500
			}
			x.jobs = append(x.jobs, j)
		}
		for seed := range uint64(1000) {
			x.compare(t, seed, true)
		}
	}
}

// The same as TestRankingClassesIsRankingJobs with hundreds of waiting jobs, most of which have a demand or a user of
// their own: classes and lines are forgotten on the way.
func TestManyClassesOfJobs(t *testing.T) {
	for _, order := range ranksClasses {
		for _, way := range ranksClassesIn {
			for _, of := range []int{1, 7, 1000} {
				t.Run(fmt.Sprint(order, "+", way, "/", of), func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(of), 3))
					x := &world{cfg: sim.DefaultConfig(), policy: schedulers.DefaultConfig()}
					x.policy.Order, x.policy.Admission, x.policy.Backfill = order, way.admission, way.backfill
					x.spec.Racks = []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4, CPUs: 48, MemGB: 64}}}}
					x.cfg.Restart = second
					n := 900
					if way.backfill == "conservative" {
						n = 300 // each pass plans all jobs in line
					}
					for i := range n {
						j := whole(fmt.Sprint("j", i), time.Duration(i/(n/3)*300)*10*second, time.Duration(1+r.IntN(60))*second,
							1+r.IntN(4))
						j.User = fmt.Sprint("u", r.IntN(of))
						j.CPUMilli, j.MemBytes = int64(r.IntN(of))*40, int64(1+r.IntN(8))<<30
						x.jobs = append(x.jobs, j)
					}
					x.compare(t, 1, false)
					x.compare(t, 2, true)
				})
			}
		}
	}
}

// Three GPUs: A holds two, C wants two and is the head, D may go before it. When other code stops A right after D has
// started, C starts at once: the policy does not wait for the next event.
func TestWhatOthersGiveBackIsUsedAtOnce(t *testing.T) {
	for _, spec := range []cluster.Spec{{Pool: 3}, {Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 3}}}}}} {
		for _, way := range []how{{"strict", "easy"}, {"strict", "conservative"}, {"commit", "easy"}} {
			for _, order := range []string{"fifo", "packer", "tetris"} {
				cfg := schedulers.DefaultConfig()
				cfg.Order, cfg.Admission, cfg.Backfill = order, way.admission, way.backfill
				h, err := schedulers.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				s, err := sim.New(sim.DefaultConfig(), spec)
				if err != nil {
					t.Fatal(err)
				}
				jobs := []traces.Job{whole("A", 0, 100*second, 2), whole("C", second, 50*second, 2), whole("D", second, second, 1)}
				if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
					t.Fatal(err)
				}
				v := s.View()
				h.Reset(v)
				started := map[string]time.Duration{}
				for p, err := s.Advance(context.Background()); !errors.Is(err, sim.ErrDone); p,
					err = s.Advance(context.Background()) {
					if err != nil {
						t.Fatal(err)
					}
					for d := (sim.Decision{Op: sim.StartJob}); d.Op != sim.Wait && !v.Over(); {
						if err := h.Decide(v, p, &d); err != nil {
							t.Fatal(err)
						}
						if err := s.Apply(&d); err != nil {
							t.Fatal(err)
						}
						if d.Op != sim.StartJob {
							continue
						}
						name := jobs[v.Pos(d.Job)].ID
						if _, again := started[name]; !again {
							started[name] = v.Now()
						}
						if name == "D" {
							if err := s.Apply(&sim.Decision{Op: sim.PreemptJob, Job: v.Running()[0]}); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				if started["C"] != second || started["D"] != second {
					t.Errorf("%s on %+v: C starts at %v, D at %v, want 1s", h.Name(), spec, started["C"], started["D"])
				}
			}
		}
	}
}
