package heuristic

import (
	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// demand is GPUs, cores and memory, each as a share of what the cluster has; 0 for what the cluster does not limit.
type demand [3]float64

// usage is what each user holds, summed anew for every ranking. Cores and memory of nodes that state none are not
// counted.
type usage struct {
	of    *cluster.Cluster
	total demand       // GPUs, milli-cores and bytes
	nodes [][2]float64 // milli-cores and bytes by node; nil if none are limited
	free  demand       // shares
	// For tetris, over the waiting jobs when they were ranked: the best alignment, and the shortest estimate in
	// seconds.
	best, shortest float64

	index map[string]int32 // users
	user  []owner          // by job
	held  []demand         // by user
}

// owner is the user of the job at a position.
type owner struct {
	pos  int
	user int32
}

// measure records what c has.
func (u *usage) measure(c *cluster.Cluster) {
	if u.of == c {
		return
	}
	u.of, u.total, u.nodes = c, demand{float64(c.Own())}, nil
	for _, r := range c.Spec().Racks {
		for range r.Count.N() {
			for _, n := range r.Nodes {
				for range n.Count.N() {
					has := [2]float64{n.CPUs * 1000, n.MemGB * (1 << 30)}
					if !c.Has(len(u.nodes)) {
						has = [2]float64{}
					}
					u.nodes = append(u.nodes, has)
					u.total[1] += has[0]
					u.total[2] += has[1]
				}
			}
		}
	}
	if u.total[1] == 0 && u.total[2] == 0 {
		u.nodes = nil
	}
}

// demand returns what r asks for.
func (u *usage) demand(r *cluster.Request) (d demand) {
	n := float64(max(1, r.GPUs))
	if u.total[0] > 0 {
		d[0] = float64(r.GPUs*r.Milli) / 1000 / u.total[0]
	}
	for i, x := range [...]int64{r.CPUMilli, r.MemBytes} {
		if u.total[i+1] > 0 {
			d[i+1] = float64(x) * n / u.total[i+1]
		}
	}
	return d
}

// count computes what the running jobs leave free.
func (u *usage) count(v *sim.View) {
	c := v.Cluster()
	u.measure(c)
	u.free = demand{}
	if u.total[0] > 0 {
		u.free[0] = float64(c.FreeMilli()) / 1000 / u.total[0]
	}
	if u.nodes == nil {
		return
	}
	up := demand{0, u.total[1], u.total[2]}
	for n, has := range u.nodes {
		if c.Down(n) {
			up[1] -= has[0]
			up[2] -= has[1]
		}
	}
	for i := 1; i < 3; i++ {
		if u.total[i] > 0 {
			u.free[i] = up[i] / u.total[i]
		}
	}
	for _, j := range v.Running() {
		d := u.demand(v.Request(j))
		u.free[1] -= d[1]
		u.free[2] -= d[2]
	}
}

// countUsers computes what the running jobs of each user hold.
func (u *usage) countUsers(v *sim.View) {
	u.measure(v.Cluster())
	u.held = u.held[:0]
	for _, j := range v.Running() {
		h := &u.held[u.userOf(v, j)]
		for i, x := range u.demand(v.Request(j)) {
			h[i] += x
		}
	}
}

// userOf returns the number of j's user.
func (u *usage) userOf(v *sim.View, j sim.Job) int32 {
	for int(j) >= len(u.user) {
		u.user = append(u.user, owner{pos: -1})
	}
	o := &u.user[j]
	name := v.Trace(j).User
	if o.pos != v.Pos(j) {
		if u.index == nil {
			u.index = map[string]int32{}
		}
		i, ok := u.index[name]
		if !ok {
			i = int32(len(u.index))
			u.index[name] = i
		}
		*o = owner{v.Pos(j), i}
	}
	for int(o.user) >= len(u.held) { // users that hold nothing
		u.held = append(u.held, demand{})
	}
	return o.user
}

// reset forgets the jobs of the previous run.
func (u *usage) reset() { u.user, u.held = u.user[:0], u.held[:0] }
