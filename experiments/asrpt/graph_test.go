package asrpt

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// near reports whether a and b are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// on returns a placement: for each server its replicas by stage.
func on(counts ...[]int) *placement {
	p := &placement{}
	for m, c := range counts {
		p.server, p.count = append(p.server, m), append(p.count, c)
	}
	return p
}

func TestAnIterationByHand(t *testing.T) {
	net := network{NIC: 2, Link: 10, Server: 4}
	// Two stages: two replicas with 3 GB of gradients that send 8 GB to one replica.
	g := newGraph("two", stage{2, 1, 3, 8}, stage{1, .5, 5, 0})
	if g.gpus != 3 || g.ring(0) != 3 || g.ring(1) != 0 {
		t.Fatalf("%d GPUs, rings %v and %v", g.gpus, g.ring(0), g.ring(1))
	}
	if g.weight[0][0] != 6 || g.weight[0][1] != 8 || g.weight[1][0] != 8 || g.weight[1][1] != 0 {
		t.Errorf("weights %v", g.weight)
	}
	// One more micro-batch in eight fills the pipeline. The second stage's GPU sends 8 GB over its link, the others 3 + 4.
	least := 1.125 + .8
	if got := net.least(g); !near(got, least) {
		t.Errorf("least %v, want %v", got, least)
	}
	for _, c := range []struct {
		p    *placement
		want float64 // beyond least: GB over the share of 2 GB/s
	}{
		{on([]int{2, 1}), 0},
		{on([]int{2, 0}, []int{0, 1}), 8 / .5},               // the single GPU has a quarter of the NIC
		{on([]int{1, 1}, []int{1, 0}), (3 + 4) / .5},         // the ring and half the activations, on a quarter
		{on([]int{1, 0}, []int{1, 0}, []int{0, 1}), 8 / .5},  // as the first, since 8 > 3 + 4
		{on([]int{0, 1}, []int{2, 0}), math.Max(8/.5, 8/1.)}, // the order of servers does not matter
	} {
		if got := net.iteration(g, c.p); !near(got, least+c.want) {
			t.Errorf("%v: %v, want %v", c.p.count, got, least+c.want)
		}
	}
	if got := net.alone(g); !near(got, least+16) {
		t.Errorf("alone %v, want %v", got, least+16)
	}
}

// Of two servers each sends what the other receives, which is what that one sends. A graph on one server sends nothing.
func TestTrafficBalances(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		g := anyGraph(r)
		free := make([]int, 5)
		for i := range free {
			free[i] = 8
		}
		p := place(random, &network{NIC: 1, Link: 1, Server: 8}, g, free, r.Uint64())
		if len(p.server) == 1 && p.outside(g, 0) != 0 {
			t.Fatalf("%s on one server sends %v", g.name, p.outside(g, 0))
		}
		if g.gpus > 1 {
			first := 1 + r.IntN(g.gpus-1)
			p = place(random, &network{NIC: 1, Link: 1, Server: 8}, g, []int{first, g.gpus - first}, r.Uint64())
			if a, b := p.outside(g, 0), p.outside(g, 1); !near(a, b) || a <= 0 {
				t.Fatalf("%s on two servers sends %v and %v", g.name, a, b)
			}
		}
		if got := onOne(g).outside(g, 0); got != 0 {
			t.Fatalf("%s on one server sends %v", g.name, got)
		}
	}
}

func onOne(g *graph) *placement {
	c := make([]int, len(g.stages))
	for s := range c {
		c[s] = g.stages[s].replicas
	}
	return on(c)
}

// anyGraph draws a graph of up to 8 GPUs.
func anyGraph(r *rand.Rand) *graph {
	all := catalogue(1 + r.IntN(8))
	return all[r.IntN(len(all))]
}

func TestTheCatalogue(t *testing.T) {
	net := network{NIC: 3.125, Link: 20, Server: 8}
	for gpus := 1; gpus <= widest; gpus++ {
		seen := map[string]bool{}
		for _, g := range catalogue(gpus) {
			n := 0
			for _, s := range g.stages {
				n += s.replicas
				if s.replicas < 1 || s.compute <= 0 || s.params <= 0 || s.out < 0 {
					t.Errorf("%s: stage %+v", g.name, s)
				}
			}
			if n != gpus || g.gpus != gpus || seen[g.name] {
				t.Errorf("%s has %d GPUs, want %d, once", g.name, n, gpus)
			}
			seen[g.name] = true
			if g.stages[len(g.stages)-1].out != 0 {
				t.Errorf("%s: the last stage sends on", g.name)
			}
			if best, worst := net.least(g), net.alone(g); best > worst || gpus > 1 && best == worst {
				t.Errorf("%s: %v s at best, %v at worst", g.name, best, worst)
			}
		}
		if len(seen) == 0 {
			t.Errorf("no graphs of %d GPUs", gpus)
		}
	}
}

func TestHeavyEdgesByHand(t *testing.T) {
	// Stage 1 and 2 exchange most, then the replicas of stage 0.
	g := newGraph("", stage{2, 1, 5, 4}, stage{1, 1, 0, 30}, stage{1, 1, 0, 0})
	// weights: 0–0 10, 0–1 4, 1–2 60
	for _, c := range []struct {
		caps []int
		want string
	}{
		{[]int{4}, "[[2 1 1]]"},
		{[]int{2, 2}, "[[0 1 1] [2 0 0]]"},
		{[]int{3, 1}, "[[1 1 1] [1 0 0]]"},
		{[]int{1, 3}, "[[1 0 0] [1 1 1]]"}, // the single one is the replica with the lightest edges
		{[]int{1, 1, 1, 1}, "[[1 0 0] [1 0 0] [0 1 0] [0 0 1]]"},
	} {
		if got := fmt.Sprint(heavyEdge(g, indices(len(c.caps)), c.caps).count); got != c.want {
			t.Errorf("caps %v: %s, want %s", c.caps, got, c.want)
		}
	}
}

func TestFewestServersByHand(t *testing.T) {
	for _, c := range []struct {
		free          []int
		gpus          int
		servers, caps string
		evenly        string
	}{
		{[]int{8, 3, 5}, 3, "[1]", "[3]", "[3]"},
		{[]int{8, 3, 5}, 4, "[2]", "[4]", "[4]"},
		{[]int{8, 3, 5}, 9, "[0 1]", "[8 1]", "[6 3]"},
		{[]int{8, 3, 5}, 16, "[0 2 1]", "[8 5 3]", "[8 5 3]"},
		{[]int{0, 1, 1, 2}, 3, "[3 1]", "[2 1]", "[2 1]"},
		{[]int{7, 7, 2}, 8, "[0 2]", "[7 1]", "[6 2]"},
	} {
		servers, caps := fewest(c.free, c.gpus)
		if fmt.Sprint(servers) != c.servers || fmt.Sprint(caps) != c.caps {
			t.Errorf("%d GPUs of %v: servers %v with %v, want %s with %s", c.gpus, c.free, servers, caps, c.servers, c.caps)
		}
		if even(c.free, c.gpus, servers, caps); fmt.Sprint(caps) != c.evenly {
			t.Errorf("%d GPUs of %v evenly: %v, want %s", c.gpus, c.free, caps, c.evenly)
		}
	}
}

// Every placement has all replicas, each on a free GPU, and none is better than the optimum.
func TestPlacementsAreWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	net := network{NIC: 3.125, Link: 20, Server: 8}
	for range 300 {
		g := anyGraph(r)
		free := make([]int, 4)
		for sum := 0; sum < g.gpus; {
			sum = 0
			for i := range free {
				free[i] = r.IntN(9)
				sum += free[i]
			}
		}
		best := net.iteration(g, place(optimum, &net, g, free, 0))
		for _, how := range append(placements(), optimum) {
			p := place(how, &net, g, free, r.Uint64())
			count := make([]int, len(g.stages))
			for i, m := range p.server {
				if n := p.on(i); n < 1 || n > free[m] || slices.Index(p.server, m) != i {
					t.Fatalf("%s of %s on %v: %v on %v", how, g.name, free, p.count, p.server)
				}
				for s, k := range p.count[i] {
					count[s] += k
				}
			}
			for s, k := range count {
				if k != g.stages[s].replicas {
					t.Fatalf("%s of %s on %v: %v", how, g.name, free, p.count)
				}
			}
			if got := net.iteration(g, p); got < best*(1-1e-9) || got < net.least(g) {
				t.Fatalf("%s of %s on %v: %v s, the best of all %v", how, g.name, free, got, best)
			}
		}
		servers, _ := fewest(free, g.gpus)
		if p := place(heaviest, &net, g, free, 0); len(p.server) != len(servers) {
			t.Fatalf("%s of %s on %v: %d servers, want %d", heaviest, g.name, free, len(p.server), len(servers))
		}
	}
}

// The enumeration finds what trying every server for every replica finds.
func TestTheOptimumIsThatOfAllAssignments(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	net := network{NIC: 3.125, Link: 20, Server: 8}
	for range 60 {
		all := catalogue(2 + r.IntN(4))
		g := all[r.IntN(len(all))]
		free := []int{r.IntN(4), r.IntN(4), r.IntN(4), 2}
		if free[0]+free[1]+free[2]+free[3] < g.gpus {
			continue
		}
		want := math.Inf(1)
		p := on(make([]int, len(g.stages)), make([]int, len(g.stages)), make([]int, len(g.stages)),
			make([]int, len(g.stages)))
		var try func(s, k int)
		try = func(s, k int) {
			if s == len(g.stages) {
				q := &placement{}
				for i := range p.server {
					if slices.Max(p.count[i]) > 0 {
						q.server, q.count = append(q.server, i), append(q.count, p.count[i])
					}
				}
				want = min(want, net.iteration(g, q))
				return
			}
			for m := range free {
				if free[m] == 0 {
					continue
				}
				free[m]--
				p.count[m][s]++
				if k+1 < g.stages[s].replicas {
					try(s, k+1)
				} else {
					try(s+1, 0)
				}
				p.count[m][s]--
				free[m]++
			}
		}
		try(0, 0)
		if got := net.iteration(g, place(optimum, &net, g, free, 0)); !near(got, want) {
			t.Errorf("%s on %v: %v, want %v", g.name, free, got, want)
		}
	}
}
