package schedulers_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// queued returns a cluster and n jobs that make long queues on it: mostly small, a few gangs that wait for long, run
// times over four orders of magnitude, bursts of equal jobs, and estimates that are right, too long or too short.
func queued(r *rand.Rand, n int) (cluster.Spec, []traces.Job) {
	var spec cluster.Spec
	gpus := 16
	switch r.IntN(4) {
	case 0:
		spec.Pool = gpus
	case 1:
		spec.Speeds = map[string]float64{"k80": 0.4}
		spec.Racks = []cluster.RackSpec{
			{Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 4, GPUType: "v100"}, {GPUs: 4, GPUType: "k80", CPUs: 16}}}}
	default:
		spec.Racks = []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, CPUs: 16}}}}
	}
	odd := r.IntN(3) == 0
	tasks := r.IntN(2) == 0 // there may be jobs without GPUs
	load := 0.5 + r.Float64()*3
	jobs := make([]traces.Job, 0, n)
	at := 0.0
	for len(jobs) < n {
		work := math.Ceil(math.Exp(3 + 2*r.NormFloat64()))
		j := traces.Job{User: fmt.Sprint("u", r.IntN(4)), Submit: time.Duration(at) * second,
			Work: time.Duration(work) * second, GPUs: 1, GPUMilli: 1000}
		switch r.IntN(10) {
		case 0, 1:
			j.GPUs = 1 + r.IntN(gpus)
		case 2:
			j.GPUs = 8
		}
		switch {
		case odd && r.IntN(6) == 0:
			j.GPUMilli = 100 + 100*r.IntN(9)
		case odd && r.IntN(6) == 0:
			j.CPUMilli = int64(r.IntN(4)) * 2000
		case odd && spec.Speeds != nil && r.IntN(6) == 0:
			j.GPUs, j.GPUTypes = 1+r.IntN(4), []string{"k80"}
		case odd && tasks && r.IntN(12) == 0:
			j.GPUs, j.GPUMilli = 0, 0
		}
		j.Estimate = time.Duration(float64(j.Work)*math.Exp(r.NormFloat64())) + time.Duration(r.IntN(2))*time.Minute + 1
		if r.IntN(3) == 0 {
			j.Estimate = j.Work + 1
		}
		for range 1 + r.IntN(3)*r.IntN(2)*r.IntN(6) {
			j.ID = fmt.Sprint("j", len(jobs))
			jobs = append(jobs, j)
			at += math.Floor(work * float64(max(1, j.GPUs)) / float64(gpus) / load * r.ExpFloat64())
		}
	}
	if r.IntN(4) == 0 {
		spec.VCs = []cluster.VCSpec{{Name: "own", Nodes: 2}, {Name: "few", Quota: 6}, {Name: "any"}}
		if spec.Pool > 0 {
			spec.VCs = []cluster.VCSpec{{Name: "own", Quota: 12}, {Name: "few", Quota: 5}, {Name: "any"}}
		}
		for i := range jobs {
			jobs[i].VC = []string{"own", "few", "any"}[r.IntN(3)]
		}
	}
	return spec, jobs[:n]
}

// playAmid plays jobs under h, with meddling while other code starts and drops jobs too, and returns all events as
// text, with the error that ended them if there was one: a run in which the jobs that are left can never start.
func playAmid(t *testing.T, cfg sim.Config, spec cluster.Spec, jobs []traces.Job, h sim.Scheduler, seed uint64,
	meddling bool) string {
	t.Helper()
	s, err := sim.New(cfg, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 2))
	v := s.View()
	h.Reset(v)
	var l log
	for !v.Over() {
		p, err := s.Advance(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Observe(v, p); err != nil {
			t.Fatal(err)
		}
		if v.Over() {
			break
		}
		w := v.Waiting()
		d := sim.Decision{}
		switch k := r.IntN(40); {
		case !meddling:
		case k == 0 && len(w) > 0:
			d.Op, d.Job = sim.StartJob, w[r.IntN(len(w))]
			if !v.Cluster().Pool() {
				d.GPUs, _ = firstFit.Place(v.Cluster(), v.Request(d.Job), nil)
			}
		case k == 1 && len(w) > 0:
			d.Op, d.Job = sim.DropJob, w[r.IntN(len(w))]
		}
		if d.Op != sim.Wait {
			_ = s.Apply(&d) // it may be impossible
		}
		d = sim.Decision{}
		if err := sim.Decide(s, h, p, &d, nil); err != nil {
			if !errors.Is(err, sim.ErrWait) {
				t.Fatalf("%+v: %v", d, err)
			}
			fmt.Fprintln(&l.b, err)
			break
		}
	}
	return l.b.String()
}

// Every decision is that of the straightforward implementation, with right and wrong estimates, failing nodes, costs of
// restarts, gangs that their placement slows down, virtual clusters, and other code that decides too.
func TestDecisionsArePlain(t *testing.T) {
	rounds := 10
	if testing.Short() || raced.On {
		rounds = 3
	}
	for _, policy := range []string{"fifo+strict+conservative", "sjf+strict+conservative", "f1+strict+conservative",
		"largest+strict+conservative", "wfp3+strict+conservative", "drf+strict+conservative", "random+strict+conservative",
		"gittins-2d+skip", "gittins-2d+strict"} {
		t.Run(policy, func(t *testing.T) {
			for seed := range uint64(rounds) {
				h := fnv.New64a()
				_, _ = fmt.Fprint(h, policy, seed)
				r := rand.New(rand.NewPCG(h.Sum64(), 1))
				spec, jobs := queued(r, 50+r.IntN(250))
				cfg := schedulers.DefaultConfig()
				called(policy)(&cfg)
				cfg.Seed = r.Uint64()
				cfg.Placement = append([]string{"random"}, fixedPlacements...)[r.IntN(1+len(fixedPlacements))]
				cfg.Estimates = sim.MustEstimates([]string{"exact", "trace", "noisy:0.7"}[r.IntN(3)])
				cfg.Quantum = []time.Duration{time.Second, 10 * second, time.Minute, 1234567 * time.Microsecond,
					time.Hour}[r.IntN(5)]
				if r.IntN(3) == 0 {
					for range 1 + r.IntN(40) {
						cfg.Service = append(cfg.Service, time.Duration(math.Exp(3+2*r.NormFloat64())*1e9))
					}
				}
				run := sim.Config{Comm: []string{"none", "tree"}[r.IntN(2)], Restart: time.Duration(r.IntN(2)) * 5 * second}
				if r.IntN(3) == 0 && spec.Pool == 0 {
					run.Failures = sim.Failures{MTBF: time.Hour, MTTR: 10 * time.Minute}
				}
				others := r.IntN(2) == 0
				var logs [2]string
				for i := range logs {
					p, err := schedulers.New(cfg)
					if err != nil {
						t.Fatal(err)
					}
					if i == 1 {
						schedulers.Plainly(p)
					}
					for range 2 { // the second time with the state that the first left
						logs[i] = playAmid(t, run, spec, jobs, p, seed, others)
					}
				}
				if logs[0] != logs[1] {
					t.Fatalf("seed %d: %+v, %+v on %+v:\n%s", seed, cfg, run, spec, diff(logs[0], logs[1]))
				}
			}
		})
	}
}

// However many jobs wait, conservative back-filling looks only at the times before the wall: a profile of the whole
// future would have as many steps as there are jobs.
func TestProfileStaysShort(t *testing.T) {
	jobs := generated(6000)
	for i := range jobs {
		jobs[i].Submit = time.Duration(i) * second
	}
	for _, order := range []string{"fifo", "sjf", "f1", "largest"} {
		for _, estimates := range []string{"exact", "noisy:0.5"} {
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Backfill, cfg.Estimates = order, "conservative", sim.MustEstimates(estimates)
			p, err := schedulers.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 256}, jobs, p)
			if n := schedulers.ProfileSteps(p); n > 1000 {
				t.Errorf("%s with %s estimates: room for %d steps", order, estimates, n)
			}
		}
	}
}
