package asrpt

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/internal/rng"
)

// The placements by their names in tables.
const (
	heaviest = "heaviest edge"
	ordered  = "fewest servers, stages in order"
	exactMap = "fewest servers, best graph cut"
	firstFit = "first fit"
	random   = "random"
	evenly   = "heaviest edge, even split"
	optimum  = "optimum"
)

// placements are those that schedules can use.
func placements() []string { return []string{heaviest, exactMap, ordered, evenly, firstFit, random} }

// small is the largest number of GPUs for which all placements are enumerated.
const small = 8

// place puts g on servers with these numbers of free GPUs, which are enough in all. draw seeds the placement random.
func place(how string, n *network, g *graph, free []int, draw uint64) *placement {
	switch how {
	case firstFit:
		return inOrder(g, free, indices(len(free)))
	case random:
		return scattered(g, free, rng.Stream(draw, "asrpt/random"))
	case ordered:
		servers, caps := fewest(free, g.gpus)
		return inOrder(g, capped(free, servers, caps), servers)
	case evenly:
		servers, caps := fewest(free, g.gpus)
		even(free, g.gpus, servers, caps)
		return heavyEdge(g, servers, caps)
	case exactMap:
		servers, caps := fewest(free, g.gpus)
		if g.gpus <= small && len(servers) > 1 {
			return bestOf(n, g, servers, caps)
		}
		return heavyEdge(g, servers, caps)
	case optimum:
		var servers, caps []int
		for m, f := range free {
			if f > 0 {
				servers, caps = append(servers, m), append(caps, f)
			}
		}
		return bestOf(n, g, servers, caps)
	default:
		servers, caps := fewest(free, g.gpus)
		return heavyEdge(g, servers, caps)
	}
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// capped returns free with the GPUs of servers limited to caps.
func capped(free, servers, caps []int) []int {
	own := slices.Clone(free)
	for i, m := range servers {
		own[m] = caps[i]
	}
	return own
}

// inOrder puts the replicas, stage by stage, on the free GPUs of servers, one server after another.
func inOrder(g *graph, free, servers []int) *placement {
	p := &placement{}
	s, left := 0, g.stages[0].replicas
	for _, m := range servers {
		for room := free[m]; room > 0 && s < len(g.stages); {
			k := min(room, left)
			p.add(m, len(g.stages), s, k)
			room -= k
			if left -= k; left == 0 {
				if s++; s < len(g.stages) {
					left = g.stages[s].replicas
				}
			}
		}
	}
	return p
}

// scattered puts each replica on any free GPU.
func scattered(g *graph, free []int, r *rand.Rand) *placement {
	var gpus []int // the server of each free GPU
	for m, f := range free {
		for range f {
			gpus = append(gpus, m)
		}
	}
	counts := make([][]int, len(free))
	for s, st := range g.stages {
		for range st.replicas {
			k := r.IntN(len(gpus))
			m := gpus[k]
			gpus[k] = gpus[len(gpus)-1]
			gpus = gpus[:len(gpus)-1]
			if counts[m] == nil {
				counts[m] = make([]int, len(g.stages))
			}
			counts[m][s]++
		}
	}
	p := &placement{}
	for m, c := range counts {
		if c != nil {
			p.server, p.count = append(p.server, m), append(p.count, c)
		}
	}
	return p
}

// fewest returns the smallest number of servers that have gpus free GPUs, and how many of each are used: the fullest
// ones of the free, and as the last one the server that has the fewest but enough.
func fewest(free []int, gpus int) (servers, caps []int) {
	taken := func(m int) bool { return slices.Contains(servers, m) }
	for gpus > 0 {
		most, fit := -1, -1
		for m, f := range free {
			if f == 0 || taken(m) {
				continue
			}
			if most < 0 || f > free[most] {
				most = m
			}
			if f >= gpus && (fit < 0 || f < free[fit]) {
				fit = m
			}
		}
		m := most
		if fit >= 0 {
			m = fit
		}
		k := min(gpus, free[m])
		servers, caps = append(servers, m), append(caps, k)
		gpus -= k
	}
	return servers, caps
}

// even changes caps so that the servers have numbers of the GPUs that are as equal as their free ones allow.
func even(free []int, gpus int, servers, caps []int) {
	clear(caps)
	for gpus > 0 {
		least := -1
		for i, m := range servers {
			if caps[i] < free[m] && (least < 0 || caps[i] < caps[least]) {
				least = i
			}
		}
		caps[least]++
		gpus--
	}
}

// heavyEdge cuts g over servers with room for caps, one after another: a server begins with the two replicas of the
// heaviest edge between any that are left, and takes the replica that has the heaviest edge to those which it has,
// until it is full.
func heavyEdge(g *graph, servers, caps []int) *placement {
	left := make([]int, len(g.stages))
	for s := range left {
		left[s] = g.stages[s].replicas
	}
	p := &placement{}
	for i, m := range servers {
		here := make([]int, len(g.stages))
		take := func(s int) {
			here[s]++
			left[s]--
		}
		room := caps[i]
		if s, t := heaviestEdge(g, left); s >= 0 && room >= 2 {
			take(s)
			take(t)
			room -= 2
		} else if room > 0 {
			take(lightest(g, left))
			room--
		}
		for ; room > 0; room-- {
			take(nextTo(g, here, left))
		}
		p.server, p.count = append(p.server, m), append(p.count, here)
	}
	return p
}

// heaviestEdge returns the stages of the heaviest edge between replicas that are left, −1 if there is none.
func heaviestEdge(g *graph, left []int) (s, t int) {
	s, t = -1, -1
	for a := range left {
		for b := a; b < len(left); b++ {
			need := 1
			if a == b {
				need = 2
			}
			if left[a] < need || left[b] < 1 || g.weight[a][b] == 0 {
				continue
			}
			if s < 0 || g.weight[a][b] > g.weight[s][t] {
				s, t = a, b
			}
		}
	}
	return s, t
}

// lightest returns the stage of the replica whose edges to the others that are left carry the least: the one to part
// with if there is room for one.
func lightest(g *graph, left []int) int {
	best, least := -1, math.Inf(1)
	for s := range left {
		if left[s] == 0 {
			continue
		}
		sum := -g.weight[s][s]
		for t := range left {
			sum += float64(left[t]) * g.weight[s][t]
		}
		if sum < least {
			best, least = s, sum
		}
	}
	return best
}

// nextTo returns the stage of the replica, among those left, with the heaviest edge to those here; of several the one
// with most in all.
func nextTo(g *graph, here, left []int) int {
	best, edge, sum := -1, -1.0, -1.0
	for s := range left {
		if left[s] == 0 {
			continue
		}
		e, all := 0.0, 0.0
		for t, k := range here {
			if k > 0 {
				e = max(e, g.weight[s][t])
				all += float64(k) * g.weight[s][t]
			}
		}
		if e > edge || e == edge && all > sum {
			best, edge, sum = s, e, all
		}
	}
	return best
}

// bestOf returns the placement with the shortest iteration on servers with room for caps, by trying all.
func bestOf(n *network, g *graph, servers, caps []int) *placement {
	// Servers with equally much room are next to each other, so that of placements that differ by exchanging them one is
	// tried.
	order := indices(len(servers))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(caps[b], caps[a]) })
	e := enumerator{n: n, g: g, best: math.Inf(1), after: make([]int, len(order)+1), left: make([]int, len(g.stages))}
	for s := range e.left {
		e.left[s] = g.stages[s].replicas
	}
	for _, i := range order {
		e.servers, e.caps = append(e.servers, servers[i]), append(e.caps, caps[i])
		e.counts = append(e.counts, make([]int, len(g.stages)))
	}
	for i := len(order) - 1; i >= 0; i-- {
		e.after[i] = e.after[i+1] + e.caps[i]
	}
	e.server(0, g.gpus)
	return e.found
}

// enumerator tries all placements.
type enumerator struct {
	n             *network
	g             *graph
	servers, caps []int
	after         []int // room of this server and those after it
	left          []int // replicas of each stage that are not placed yet
	counts        [][]int
	best          float64
	found         *placement
}

// server tries all that can stand on server i and on those after it; gpus replicas are left.
func (e *enumerator) server(i, gpus int) {
	if gpus == 0 {
		e.weigh(i)
		return
	}
	if i < len(e.servers) && gpus <= e.after[i] {
		e.stage(i, 0, e.caps[i], gpus)
	}
}

// stage tries all numbers of replicas of stage s, and of those after it, on server i with room for as many.
func (e *enumerator) stage(i, s, room, gpus int) {
	if s == len(e.left) {
		if i > 0 && e.caps[i] == e.caps[i-1] && slices.Compare(e.counts[i], e.counts[i-1]) > 0 {
			return
		}
		e.server(i+1, gpus)
		return
	}
	for k := min(room, e.left[s]); k >= 0; k-- {
		e.counts[i][s] = k
		e.left[s] -= k
		e.stage(i, s+1, room-k, gpus-k)
		e.left[s] += k
	}
	e.counts[i][s] = 0
}

// weigh keeps the placement on the first servers if it is the best so far.
func (e *enumerator) weigh(servers int) {
	p := &placement{}
	for i := range servers {
		if slices.Max(e.counts[i]) > 0 {
			p.server, p.count = append(p.server, e.servers[i]), append(p.count, slices.Clone(e.counts[i]))
		}
	}
	if t := e.n.iteration(e.g, p); t < e.best {
		e.best, e.found = t, p
	}
}
