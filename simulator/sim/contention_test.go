package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// contended makes an exchange of 10^8 bytes take 100, 300, 500, … ms beside 0, 1, 2, … other gangs. An iteration with
// 100 ms of computing then runs at 1/2, 1/4, 1/6, … of its rate on a single node.
func contended() sim.Config {
	return sim.Config{Comm: "contention", Contention: sim.Contention{B: ms, Eta: ms}}
}

// playScript plays the decisions listed for each time, and returns when jobs finish. If a time has no decisions, it
// waits.
func playScript(t fatal, s *sim.Simulator, at map[time.Duration][]sim.Decision) map[string]time.Duration {
	t.Helper()
	v, finish := s.View(), map[string]time.Duration{}
	for {
		p, err := s.Advance(ctx)
		if ended(t, err) {
			return finish
		}
		for _, e := range p.Events {
			if e.Kind == sim.Finish {
				finish[v.Trace(e.Job).ID] = e.At
			}
		}
		if v.Over() {
			continue
		}
		for _, d := range at[p.Now] {
			apply(t, s, d)
		}
		delete(at, p.Now)
		next := time.Duration(0)
		for when := range at {
			if next == 0 || when < next {
				next = when
			}
		}
		apply(t, s, sim.Decision{Until: next})
	}
}

func on(j sim.Job, gpus ...cluster.GPU) sim.Decision {
	return sim.Decision{Op: sim.StartJob, Job: j, GPUs: gpus}
}

// On paper: A has the network to itself until 4 s and has done 2 s of its 10 s. With B, both run at a quarter: B's 2 s
// take until 12 s. A then has 6 s left and runs at a half again, until 24 s.
func TestTwoGangsContendByHand(t *testing.T) {
	s := start(t, contended(), short(t, "2x2"),
		[]traces.Job{modelled("A", 0, 10*second, 2), modelled("B", 4*second, 2*second, 2)})
	v := s.View()
	rates := map[time.Duration][2]float64{}
	spy := map[time.Duration][]sim.Decision{0: {on(0, 0, 2)}, 4 * second: {on(1, 1, 3)}}
	advance(t, s)
	apply(t, s, spy[0][0])
	rates[0] = [2]float64{v.Rate(0)}
	advance(t, s)
	if got := v.Factor(1, []cluster.GPU{1, 3}); got != 0.25 {
		t.Errorf("B would run at %v, want 1/4", got)
	}
	if got := v.Factor(0, []cluster.GPU{2, 0}); got != 0.5 {
		t.Errorf("A would run at %v where it is, want 1/2", got)
	}
	apply(t, s, spy[4*second][0])
	rates[4*second] = [2]float64{v.Rate(0), v.Rate(1)}
	if v.Left(0) != 8e9 || v.Finished(0) != 36*second {
		t.Errorf("A has %v left and would finish at %v", v.Left(0), v.Finished(0))
	}
	if p := advance(t, s); p.Now != 12*second || v.State(1) != sim.Finished {
		t.Errorf("at %v B is %v, want 12s", p.Now, v.State(1))
	}
	rates[12*second] = [2]float64{v.Rate(0), v.Rate(1)}
	if p := advance(t, s); p.Now != 24*second || !v.Over() {
		t.Errorf("A finishes at %v, want 24s", p.Now)
	}
	want := map[time.Duration][2]float64{0: {0.5}, 4 * second: {0.25, 0.25}, 12 * second: {0.5, 0}}
	for at, r := range want {
		if rates[at] != r {
			t.Errorf("rates at %v: %v, want %v", at, rates[at], r)
		}
	}
}

// On paper: at a sixth, A's 1 s takes 6 s. Then B and C have 1 s and 2 s left, and run at a quarter for 4 s. Then C
// has 1 s left, at a half.
func TestThreeGangsContendByHand(t *testing.T) {
	s := start(t, contended(), short(t, "2x3"),
		[]traces.Job{modelled("A", 0, second, 2), modelled("B", 0, 2*second, 2), modelled("C", 0, 3*second, 2)})
	got := playScript(t, s, map[time.Duration][]sim.Decision{0: {on(0, 0, 3), on(1, 1, 4), on(2, 2, 5)}})
	for id, want := range map[string]time.Duration{"A": 6 * second, "B": 10 * second, "C": 12 * second} {
		if d := got[id] - want; d < 0 || d > 3 { // a nanosecond for each change of rate
			t.Errorf("%s finishes at %v, want %v", id, got[id], want)
		}
	}
}

// A gang that stops, moves off the network or was never on it leaves the network to the others.
func TestWhoContends(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Uplink: cluster.Link{Gbps: 10},
		Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 3}}}}}
	var jobs []traces.Job
	for _, id := range []string{"A", "B", "C", "D", "E"} {
		jobs = append(jobs, modelled(id, 0, 1000*second, 2))
	}
	jobs = append(jobs, modelled("F", 0, 1000*second, 4))
	s := start(t, contended(), spec, jobs)
	v := s.View()
	want := func(what string, rates ...float64) {
		t.Helper()
		for j, r := range rates {
			if math.Abs(v.Rate(sim.Job(j))-r) > 1e-15 {
				t.Errorf("%s: job %d runs at %v, want %v", what, j, v.Rate(sim.Job(j)), r)
			}
		}
	}
	advance(t, s)
	// GPUs 0–2 and 3–5 are in rack 0, 6–8 and 9–11 in rack 1.
	apply(t, s, on(0, 0, 6)) // across racks, nodes 0 and 2
	want("alone", 0.5)
	apply(t, s, on(1, 3, 9)) // across racks, nodes 1 and 3: they share only the uplinks
	want("two on the uplinks", 0.25, 0.25)
	apply(t, s, on(2, 1, 4)) // in rack 0, over the NICs of nodes 0 and 1, not over the uplink
	want("a third in the rack", 0.25, 0.25, 0.25)
	apply(t, s, on(3, 7, 8)) // on one node
	want("one that does not talk", 0.25, 0.25, 0.25, 1)
	apply(t, s, sim.Decision{Until: second})
	advance(t, s)
	apply(t, s, sim.Decision{Op: sim.MigrateJob, Job: 1, GPUs: []cluster.GPU{9, 10}}) // onto one node
	want("one has moved into a node", 0.25, 1, 0.25, 1)
	apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 2})
	want("one was stopped", 0.5, 1, 0, 1)
	if got := s.View().OnNode(0); len(got) != 1 || got[0] != 0 {
		t.Errorf("on node 0 are %v", got)
	}
	// Four GPUs fit no node, so alone the gang loses nothing; beside another gang on a NIC it does:
	// (100+100)/(100+300).
	apply(t, s, on(5, 1, 2, 3, 4))
	want("a gang that no node holds", 0.25, 1, 0, 1, 0, 0.5)
	if err := s.CheckInvariants(); err != nil {
		t.Error(err)
	}
}

// b and eta are for 10 Gbps: a link ten times as fast takes a tenth of the time, and the slowest link counts.
func TestContentionScalesWithTheSlowestLink(t *testing.T) {
	node := func(gbps float64) cluster.NodeSpec { return cluster.NodeSpec{GPUs: 2, NIC: cluster.Link{Gbps: gbps}} }
	spec := cluster.Spec{Racks: []cluster.RackSpec{
		{Nodes: []cluster.NodeSpec{node(100), node(100), node(10)}, Uplink: cluster.Link{Gbps: 5}},
		{Nodes: []cluster.NodeSpec{node(100)}, Uplink: cluster.Link{Gbps: 20}},
	}}
	s := start(t, contended(), spec, []traces.Job{modelled("A", 0, second, 2), modelled("B", 0, second, 4)})
	v := s.View()
	advance(t, s)
	for _, c := range []struct {
		j    sim.Job
		gpus []cluster.GPU
		want float64
	}{
		{0, []cluster.GPU{0, 2}, 100.0 / 110},       // 100 Gbps
		{0, []cluster.GPU{0, 4}, 100.0 / 200},       // 10
		{0, []cluster.GPU{0, 6}, 100.0 / 300},       // the uplink's 5
		{1, []cluster.GPU{0, 1, 2, 3}, 1},           // the best for four: nodes of 100 Gbps in one rack
		{1, []cluster.GPU{0, 1, 2, 4}, 110.0 / 200}, // 10
		{1, []cluster.GPU{0, 1, 2, 6}, 110.0 / 300}, // 5
	} {
		if got := v.Factor(c.j, c.gpus); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("job %d on %v: %v, want %v", c.j, c.gpus, got, c.want)
		}
	}
}

// Rates follow from which job runs where, not from the order in which that came about.
func TestRatesDependOnTheSetAlone(t *testing.T) {
	differ := 0
	for seed := range uint64(200) {
		var first map[string]float64
		for round := range uint64(3) {
			r := rand.New(rand.NewPCG(seed, 31))
			spec, cfg := richSpec(r), richConfig(r, second)
			cfg.Comm, cfg.Failures.MTBF, cfg.Serial = "contention", 0, false
			cfg.Interference, cfg.InterferenceScope = pairs{}, []string{"gpu", "node"}[r.IntN(2)]
			jobs := rich(r, 12, 4, second)
			for i := range jobs {
				jobs[i].Submit, jobs[i].Work = 0, time.Hour
			}
			s := start(t, cfg, spec, jobs)
			v := s.View()
			advance(t, s)
			// Put the same jobs in the same places in another order, and stop and restart some of them on the way.
			var todo []sim.Decision
			free, err := cluster.New(spec)
			if err != nil {
				t.Fatal(err)
			}
			c := newChaos(t, r)
			for j := range v.Arrived() {
				gpus, ok := c.rules[r.IntN(len(c.rules))].Place(free, v.Request(sim.Job(j)), nil)
				if ok {
					if err := free.Allocate(v.Request(sim.Job(j)), gpus); err != nil {
						t.Fatal(err)
					}
					todo = append(todo, on(sim.Job(j), gpus...))
				}
			}
			shuffle := rand.New(rand.NewPCG(round, seed))
			shuffle.Shuffle(len(todo), func(i, k int) { todo[i], todo[k] = todo[k], todo[i] })
			for _, d := range todo {
				apply(t, s, d)
			}
			apply(t, s, sim.Decision{Until: time.Minute})
			advance(t, s)
			for _, d := range todo {
				if d.Job%3 == 0 {
					apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: d.Job})
				}
			}
			rates := map[string]float64{}
			for j := range v.Arrived() {
				rates[v.Trace(sim.Job(j)).ID] = v.Rate(sim.Job(j))
			}
			if first == nil {
				first = rates
			}
			for id, x := range first {
				if rates[id] != x {
					t.Fatalf("seed %d: %s runs at %v in one order and at %v in another", seed, id, x, rates[id])
				}
				if x != 0 && x != 1 {
					differ++
				}
			}
		}
	}
	if differ < 100 {
		t.Errorf("only %d rates below 1", differ)
	}
}
