package schedulers_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// firstStarts returns the positions of jobs in the order in which they start on spec under order and admission.
func firstStarts(t *testing.T, spec cluster.Spec, order, admission string, jobs []traces.Job) []int {
	t.Helper()
	m, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	var got starts
	h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Admission = order, admission })
	if err := sim.Run(context.Background(), m, h, &got); err != nil {
		t.Fatal(err)
	}
	return got
}

// A share of a GPU, or a job without GPUs, waits behind a job of two GPUs while more such jobs keep coming. unicep
// serves it as a job of one GPU, so first of all; with log₂ of less than one it would wait for the last of them.
func TestUnicepDoesNotStarveShares(t *testing.T) {
	for _, milli := range []int{1, 500, 999, 1000, 0} {
		jobs := []traces.Job{{Work: 10 * time.Second, GPUs: 2, GPUMilli: 1000},
			{Submit: time.Second, Work: 10 * time.Second, GPUs: 1, GPUMilli: milli, CPUMilli: 1000}}
		spec := cluster.Spec{Pool: 2}
		if milli == 0 { // only a node has cores to wait for
			jobs[1].GPUs = 0
			jobs[0].CPUMilli = 1000
			spec = cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, CPUs: 1}}}}}
		}
		for i := range 20 {
			jobs = append(jobs,
				traces.Job{Submit: time.Duration(2+9*i) * time.Second, Work: 10 * time.Second, GPUs: 2, GPUMilli: 1000,
					CPUMilli: jobs[0].CPUMilli})
		}
		if got := firstStarts(t, spec, "unicep", "strict", jobs); slices.Index(got, 1) != 1 {
			t.Errorf("a job of %d‰ of a GPU starts as number %d of %d, want 1", milli, slices.Index(got, 1), len(got))
		}
	}
}

// Both forms of unicep rank a share of a GPU as they rank the same job on a whole one.
func TestUnicepRanksSharesAsOneGPU(t *testing.T) {
	for _, order := range []string{"unicep", "unicep-rlscheduler"} {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			whole := make([]traces.Job, 12)
			for i := range whole {
				whole[i] = traces.Job{Submit: time.Duration(1+i/3) * time.Second, Work: time.Duration(10+r.IntN(30)) * time.Second,
					GPUs: 1, GPUMilli: 1000}
			}
			shares := slices.Clone(whole)
			for i := range shares {
				shares[i].GPUMilli = 501 + r.IntN(500) // no two beside each other
			}
			spec := cluster.Spec{Pool: 1}
			if got, want := firstStarts(t, spec, order, "skip", shares),
				firstStarts(t, spec, order, "skip", whole); !slices.Equal(got, want) {
				t.Errorf("%s, seed %d: shares start as %v, whole GPUs as %v", order, seed, got, want)
			}
		}
	}
}

// Every policy ends every workload of jobs that have no work, come at the same time, and ask for shares of a GPU, no
// GPU or all of them; and no rank is NaN, with which an order would be none.
func TestJobsWithoutWorkEndUnderEveryPolicy(t *testing.T) {
	for _, order := range schedulers.Orders() {
		for _, way := range ways(order) {
			t.Run(order+"/"+way.String(), func(t *testing.T) {
				for seed := range uint64(8) {
					r := rand.New(rand.NewPCG(seed, 2))
					spec := []cluster.Spec{{Pool: 4},
						{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}}}[seed%2]
					c := schedulers.DefaultConfig()
					c.Order, c.Admission, c.Backfill, c.Seed = order, way.admission, way.backfill, seed
					c.Estimates = sim.MustEstimates([]string{"exact", "trace", "noisy:1"}[seed%3])
					jobs := make([]traces.Job, 8)
					for i := range jobs {
						j := &jobs[i]
						*j = traces.Job{ID: string(rune('a' + i)), GPUs: []int{1, 1, 2, 4}[r.IntN(4)], GPUMilli: 1000, Profile: madeUp[0],
							Estimate: time.Nanosecond}
						if i > 0 {
							j.Submit = jobs[i-1].Submit + time.Duration(max(0, r.IntN(4)-2))*time.Second
						}
						if seed >= 4 { // else none has work
							j.Work = time.Duration(max(0, r.IntN(8)-4)) * time.Second
							j.Estimate += j.Work
						}
						if j.GPUs == 1 && order != "exact" { // it plans whole GPUs only
							j.GPUs, j.GPUMilli = []int{1, 0}[r.IntN(8)/7], []int{1, 300, 500, 999}[r.IntN(4)]
						}
					}
					x := &world{spec: spec, cfg: sim.DefaultConfig(), jobs: jobs, policy: c}
					x.know()
					x.policy.Simulator(&x.cfg)
					s, h := x.machine(t)
					if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
						t.Fatal(err)
					}
					ended := 0
					var rank *schedulers.Ranker
					if slices.Contains(schedulers.Ranking(), order) {
						var err error
						if rank, err = schedulers.NewRanker(order, c.Estimates); err != nil {
							t.Fatal(err)
						}
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only ends a hang
					err := sim.Run(ctx, s, h, observer(func(v *sim.View, p *sim.Point) error {
						for _, e := range p.Events {
							if e.Kind == sim.Finish {
								ended++
							}
						}
						for _, j := range v.Waiting() {
							if rank != nil && math.IsNaN(rank.Key(v, j)) {
								t.Errorf("seed %d: the rank of job %s at %v is NaN", seed, v.Trace(j).ID, v.Now())
							}
						}
						return nil
					}))
					cancel()
					if err != nil || ended != len(jobs) {
						t.Fatalf("seed %d: %d of %d jobs ended, %v\n%s", seed, ended, len(jobs), err, x)
					}
				}
			})
		}
	}
}

// Jobs without work take no time. Under area they start first, in the order of the trace, whatever their GPUs, and
// delay no other job.
func TestAreaStartsJobsWithoutWorkFirst(t *testing.T) {
	jobs := []traces.Job{
		{Work: 10 * time.Second, GPUs: 1, GPUMilli: 1000}, {GPUs: 4, GPUMilli: 1000},
		{Work: time.Second, GPUs: 1, GPUMilli: 1},
		{GPUs: 1, GPUMilli: 300}, {Work: 10 * time.Second, GPUs: 4, GPUMilli: 1000}, {GPUs: 4, GPUMilli: 1000},
	}
	if got := firstStarts(t, cluster.Spec{Pool: 4}, "area", "strict", jobs); !slices.Equal(got, []int{1, 3, 5, 2, 0, 4}) {
		t.Errorf("jobs start as %v", got)
	}
}
