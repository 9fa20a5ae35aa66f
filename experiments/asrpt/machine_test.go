package asrpt

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// simple returns a job of so many GPUs and seconds that sends nothing.
func simple(submit, run float64, gpus int) job {
	g := newGraph("simple", stage{gpus, 1, 0, 0})
	return job{submit: submit, iterations: run, graph: g, best: 1, worst: 1, least: 1,
		meta: traces.Job{GPUs: gpus, Work: seconds(run)}}
}

// exact knows the iterations of jobs.
func exact(jobs []job) predictor { return &noisy{jobs: jobs} }

// finishes plays jobs on servers of two GPUs and returns when they are finished.
func finishes(t *testing.T, r rule, servers int, jobs ...job) []float64 {
	t.Helper()
	net := network{NIC: 1, Link: 10, Server: 2}
	out, err := newMachine(net, servers, heaviest, 0, jobs).play(t.Context(), newList(r, jobs, servers*2, exact(jobs)))
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	for _, o := range out {
		all = append(all, o.finish)
	}
	return all
}

func TestOrdersByHand(t *testing.T) {
	// Two GPUs: 0 takes one of them for 10 s. 1 needs both; 2 and 3 need one.
	jobs := []job{simple(0, 10, 1), simple(1, 3, 2), simple(2, 20, 1), simple(3, 4, 1)}
	for _, c := range []struct {
		name string
		want string
	}{
		{fifo, "[10 13 33 17]"},       // 1 blocks; then both others
		{wcsSubTime, "[10 25 22 14]"}, // 2 begins at once, 3 at 10, 1 when both have ended
		{spjf, "[10 13 33 17]"},       // 1 is the shortest that waits
		{spwf, "[10 13 33 7]"},        // at 3 job 3 has the least and fits; then 1 blocks 2
		{wcsDuration, "[10 25 22 14]"},
	} {
		got := fmt.Sprint(finishes(t, ruleOf(c.name, waiting{}), 1, jobs...))
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTheVirtualMachineByHand(t *testing.T) {
	// On two GPUs as one machine: 0 has 4 s of it. 1 arrives at 1 with 1 s, and goes first: ends 2. 0 ends at 5.
	// 2 arrives at 4.5 with 2 s and ends at 7.
	jobs := []job{simple(0, 8, 1), simple(1, 1, 2), simple(4.5, 4, 1)}
	ends := srptEnds(jobs, []float64{4, 1, 2})
	if fmt.Sprint(ends) != "[5 2 7]" {
		t.Errorf("virtual ends %v, want [5 2 7]", ends)
	}
	// So 1 begins at 2, 0 at 5 and 2 at 7.
	if got := fmt.Sprint(finishes(t, rule{order: aSRPT}, 1, jobs...)); got != "[13 3 11]" {
		t.Errorf("A-SRPT: %s, want [13 3 11]", got)
	}
	// A machine of half the speed has 8, 2 and 4 s of them, and ends 1 at 3, 2 at 8.5 and 0 at 14.
	if got := fmt.Sprint(finishes(t, rule{order: aSRPT, speed: .5}, 1, jobs...)); got != "[22 4 12.5]" {
		t.Errorf("half the speed: %s, want [22 4 12.5]", got)
	}
	// Eager: 0 begins at once, 1 must wait for it until 8, 2 waits for 1 unless it may pass.
	if got := fmt.Sprint(finishes(t, rule{order: aSRPT, skip: true, eager: true}, 1, jobs...)); got != "[8 9.5 8.5]" {
		t.Errorf("eager: %s, want [8 9.5 8.5]", got)
	}
}

func TestTheListCanGoByWorkload(t *testing.T) {
	// On the virtual machine of two GPUs 0 ends at 5, 1 at 8 and 2 at 8.5. 0 runs from 5 to 15, and until then 1 does not
	// fit.
	jobs := []job{simple(0, 10, 1), simple(5, 3, 2), simple(8, 1, 1)}
	for _, c := range []struct {
		r    rule
		want string
	}{
		{rule{order: aSRPT}, "[15 18 19]"},
		{rule{order: aSRPT, area: true}, "[15 18 9.5]"},
		{rule{order: aSRPT, skip: true}, "[15 18 9.5]"},
	} {
		if got := fmt.Sprint(finishes(t, c.r, 1, jobs...)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.r, got, c.want)
		}
	}
}

func TestJobsWaitForServersByHand(t *testing.T) {
	// Three servers of two GPUs at 1 GB/s. A job of two replicas with 4 GB of gradients takes .4 s inside a server, and 8
	// s more on two servers, where each has half a NIC.
	pair := func(submit float64) job {
		g := newGraph("pair", stage{2, 1, 4, 0})
		net := network{NIC: 1, Link: 10, Server: 2}
		j := job{submit: submit, iterations: 10, graph: g, least: net.least(g), worst: net.alone(g)}
		j.best = net.iteration(g, onOne(g))
		return j
	}
	if p := pair(0); !near(p.best, 1.4) || !near(p.worst, 9.4) {
		t.Fatalf("best %v, worst %v", p.best, p.worst)
	}
	for _, c := range []struct {
		wait       waiting
		pair, last float64
	}{
		{waiting{}, 1 + 94, 20 + 5},
		{waiting{Ratio: 10, Patience: 9}, 1 + 94, 20 + 5},        // 9.4 is not ten times 1.4
		{waiting{Ratio: 2, Patience: 9}, 20 + 14, 3 + 5},         // until a server is free; the last one passes
		{waiting{Ratio: 2, Patience: .5}, 1 + 7 + 94, 3 + 5},     // for half of 14 s
		{waiting{Ratio: 2, Patience: 1000}, 20 + 14, 3 + 5},      // as long as it takes
		{waiting{Ratio: 2, Patience: 0}, 1 + 94, 20 + 5},         // for no time
		{waiting{Ratio: 2, Patience: 19.1 / 14}, 20 + 14, 3 + 5}, // just long enough
	} {
		// From 0.5 on each of two servers has one free GPU, one until 20 and the other until 30.
		jobs := []job{simple(0, 20, 1), simple(0, .5, 1), simple(0, 30, 1), pair(1), simple(3, 5, 1)}
		got := finishes(t, rule{order: fifo, wait: c.wait}, 2, jobs...)
		for i, want := range []float64{20, .5, 30, c.pair, c.last} {
			if !near(got[i], want) {
				t.Errorf("%+v: job %d is finished at %v, want %v", c.wait, i, got[i], want)
			}
		}
	}
}

// workloadOf draws a workload.
func workloadOf(seed uint64, n int) ([]job, network) {
	net := network{NIC: 3.125, Link: 20, Server: 8}
	return loaded(newMaker(net, 4).generate(seed, n), 32, 1.2), net
}

// No GPU has two jobs, every job runs for its iterations at the speed of its placement, and what the rules promise
// holds.
func TestSchedulesAreSound(t *testing.T) {
	const servers, gpus = 4, 32
	for seed := range uint64(4) {
		jobs, net := workloadOf(seed, 150)
		low := lower(jobs, gpus)
		for _, name := range orderings() {
			p := &player{s: &settings{Servers: servers, GPUs: net.Server, Wait: waiting{1.2, 2}}, ctx: t.Context()}
			stops := name == srtf || name == srsf
			for _, how := range placements() {
				if name != aSRPT && how != heaviest {
					continue
				}
				out, err := p.play(net, how, jobs, p.policy(name, jobs, exact(jobs)))
				if err != nil {
					t.Fatal(err)
				}
				if f := flow(jobs, out); f < low.any*(1-1e-9) || !stops && f < low.steady*(1-1e-9) {
					t.Errorf("%s: %v s in all, the bounds are %v and %v", name, f, low.any, low.steady)
				}
				if !stops {
					sound(t, name+", "+how, jobs, out, net, servers)
				}
			}
		}
		for _, name := range []string{wcsDuration, wcsWorkload, wcsSubTime} {
			p := &player{s: &settings{Servers: servers, GPUs: net.Server}, ctx: t.Context()}
			out, err := p.play(net, heaviest, jobs, p.policy(name, jobs, exact(jobs)))
			if err != nil {
				t.Fatal(err)
			}
			conserving(t, name, jobs, out, gpus)
		}
		p := &player{s: &settings{Servers: servers, GPUs: net.Server}, ctx: t.Context()}
		out, err := p.play(net, heaviest, jobs, newList(rule{order: aSRPT}, jobs, gpus, exact(jobs)))
		if err != nil {
			t.Fatal(err)
		}
		if sum, proved := flow(jobs, out)+low.submits, guarantee(jobs, gpus, out); sum > proved {
			t.Errorf("A-SRPT: %v s, proved %v", sum, proved)
		}
	}
}

// sound checks a schedule that stops no job.
func sound(t *testing.T, name string, jobs []job, out []outcome, net network, servers int) {
	t.Helper()
	type change struct {
		at     float64
		server int
		gpus   int
	}
	var all []change
	for i, o := range out {
		j := &jobs[i]
		if o.begin < j.submit || o.placed == nil || !near(o.iteration, net.iteration(j.graph, o.placed)) ||
			!near(o.finish, o.begin+j.iterations*o.iteration) {
			t.Fatalf("%s: job %d, submitted at %v, is %+v", name, i, j.submit, o)
		}
		for k, m := range o.placed.server {
			n := o.placed.on(k)
			all = append(all, change{o.begin, m, n}, change{o.finish, m, -n})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int {
		if a.at != b.at {
			if a.at < b.at {
				return -1
			}
			return 1
		}
		return a.gpus - b.gpus
	})
	used := make([]int, servers)
	for _, c := range all {
		if used[c.server] += c.gpus; used[c.server] > net.Server {
			t.Fatalf("%s: server %d has %d GPUs in use at %v", name, c.server, used[c.server], c.at)
		}
	}
}

// conserving checks that no job waits while as many GPUs as it needs are free.
func conserving(t *testing.T, name string, jobs []job, out []outcome, gpus int) {
	t.Helper()
	for i := range out { // GPUs are freed at finishes only
		at := out[i].finish
		free := gpus
		for k := range out {
			if out[k].begin <= at && out[k].finish > at {
				free -= jobs[k].graph.gpus
			}
		}
		for k := range out {
			if jobs[k].submit <= at && out[k].begin > at && jobs[k].graph.gpus <= free {
				t.Fatalf("%s: job %d waits at %v for %d GPUs, %d are free", name, k, at, jobs[k].graph.gpus, free)
			}
		}
	}
}

// Jobs that send nothing are finished when simulator/sim finishes them under the same orders.
func TestTheMachineAgreesWithTheSimulator(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 7))
		var jobs []job
		var list []traces.Job
		at := 0
		for i := range 200 {
			at += r.IntN(60)
			j := simple(float64(at), float64(1+r.IntN(2000)), 1+r.IntN(16))
			jobs = append(jobs, j)
			list = append(list, traces.Job{
				ID: strconv.Itoa(i), Submit: time.Duration(at) * time.Second, Work: seconds(j.iterations), GPUs: j.graph.gpus,
				GPUMilli: 1000,
			})
		}
		for _, c := range []struct{ ours, order, admission string }{
			{fifo, "fifo", "strict"}, {wcsSubTime, "fifo", "skip"}, {spjf, "sjf", "strict"}, {wcsDuration, "sjf", "skip"},
			{spwf, "area", "strict"}, {wcsWorkload, "area", "skip"}, {srtf, "srtf", ""}, {srsf, "srsf", ""},
		} {
			on, _, err := cluster.Parse("pool:32")
			if err != nil {
				t.Fatal(err)
			}
			b, err := sched.NewBaseline(sim.DefaultConfig(), on)
			if err != nil {
				t.Fatal(err)
			}
			h := schedulers.DefaultConfig()
			h.Order, h.Estimates = c.order, sim.MustEstimates("exact")
			if c.admission != "" {
				h.Admission = c.admission
			}
			policy, err := schedulers.New(h)
			if err != nil {
				t.Fatal(err)
			}
			m := &metrics.Collector{Keep: func(int) bool { return true }}
			if err := b.Play(t.Context(), sched.Jobs{List: list}, policy, m); err != nil {
				t.Fatal(err)
			}
			want := make([]float64, len(jobs))
			for j := range m.Jobs() {
				want[j.Pos] = j.Finish.Seconds()
			}
			p := &player{s: &settings{Servers: 4, GPUs: 8}, ctx: t.Context()}
			out, err := p.play(network{NIC: 1, Link: 1, Server: 8}, heaviest, jobs, p.policy(c.ours, jobs, exact(jobs)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				if math.Abs(out[i].finish-want[i]) > 1e-3 {
					t.Errorf("seed %d, %s: job %d is finished at %v, in env/sim at %v", seed, c.ours, i, out[i].finish, want[i])
					break
				}
			}
		}
	}
}

func TestBoundsByHand(t *testing.T) {
	// Two GPUs. As one machine 0 has 4 s and 1, from 1 on, 1 s: SRPT ends them at 5 and 2. Run times are 8 and 1.
	jobs := []job{simple(0, 8, 1), simple(1, 1, 2)}
	b := lower(jobs, 2)
	// Completions: 5 + 2 − 1 = 6; run times: 9. Mean busy times: 0 runs in [0, 1] and [2, 5], 1 in [1, 2].
	busy := (.5*1+3.5*3)/4 + 1.5
	if b.any != 9 || !near(b.steady, max(9, busy+4.5-1)) || b.submits != 1 {
		t.Errorf("%+v", b)
	}
	if got := busyTimes(jobs, []float64{4, 1}); !near(got, busy) {
		t.Errorf("mean busy times %v, want %v", got, busy)
	}
}

// No order in which a small cluster could start jobs beats the bounds.
func TestNoOrderBeatsTheBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 60 {
		var jobs []job
		at := 0.
		for range 5 {
			jobs = append(jobs, simple(at, float64(1+r.IntN(20)), 1+r.IntN(4)))
			at += float64(r.IntN(6))
		}
		best := math.Inf(1)
		order := indices(len(jobs))
		var try func(k int)
		try = func(k int) {
			if k == len(order) {
				best = min(best, listed(jobs, order))
				return
			}
			for i := k; i < len(order); i++ {
				order[k], order[i] = order[i], order[k]
				try(k + 1)
				order[k], order[i] = order[i], order[k]
			}
		}
		try(0)
		if b := lower(jobs, 4); best < b.steady*(1-1e-9) || b.steady < b.any {
			t.Errorf("a schedule has %v s, the bounds are %v and %v", best, b.steady, b.any)
		}
	}
}

// listed returns the sum of completion times on four GPUs if each job, in this order, starts as early as it can but not
// before those in front of it.
func listed(jobs []job, order []int) (sum float64) {
	var gpus [4]float64 // when each is free
	last := 0.
	for _, i := range order {
		slices.Sort(gpus[:])
		n := jobs[i].graph.gpus
		last = max(last, jobs[i].submit, gpus[n-1])
		for k := range n {
			gpus[k] = last + jobs[i].iterations
		}
		sum += last + jobs[i].iterations - jobs[i].submit
	}
	return sum
}
