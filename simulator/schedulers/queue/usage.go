package queue

import (
	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// demand is GPUs, cores and memory, each as a share of what the cluster has; 0 for what the cluster does not limit.
type demand [3]float64

// Usage is what each user holds, or what is left. Sums are over the running jobs in the simulator's order, so that
// equal states give equal bits: a start, which stands last there, is added, and after any other change everything is
// summed again. Cores and memory of nodes that state none are not counted.
type Usage struct {
	of    *cluster.Cluster
	total demand       // GPUs, milli-cores and bytes
	nodes [][2]float64 // milli-cores and bytes by node; nil if none are limited
	free  demand       // shares
	// For tetris, over the waiting jobs when they were ranked: the best alignment, and the shortest estimate in
	// seconds; whether another job has a better or a shorter one; and what jobs ask for.
	Best, Shortest float64
	Outdone        bool
	wants          []want // by job

	index   map[string]int32 // users
	user    []owner          // by job
	held    []demand         // by user
	holders []int32          // users that hold something
	holds   []bool           // by user: it is in holders
	changed []int32          // users whose share may have changed in the last count

	// The sums are of this state of the cluster.
	Mine    bool // since then, nothing but a decision of the scheduler can have changed what runs
	summed  bool
	version uint64
	running int
}

// progress says what happened since the last sums.
type progress uint8

const (
	nothing   progress = iota
	oneStart           // of the job that is the last of the running ones
	something          // else
)

// since compares the cluster with the last sums and notes its state for the next.
func (u *Usage) since(v *sim.View) progress {
	now, n, p := v.Cluster().Version(), len(v.Running()), something
	switch {
	case !u.summed:
	case now == u.version:
		p = nothing
	case u.Mine && now == u.version+1 && n == u.running+1: // a single change, and one more job runs
		p = oneStart
	}
	u.summed, u.version, u.running = true, now, n
	return p
}

// want is the demand of the job at a position.
type want struct {
	pos int
	demand
}

// owner is the user of the job at a position.
type owner struct {
	pos  int
	user int32
}

// measure records what c has.
func (u *Usage) measure(c *cluster.Cluster) {
	if u.of == c {
		return
	}
	u.summed, u.wants = false, u.wants[:0]
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
func (u *Usage) demand(r *cluster.Request) (d demand) {
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

// Count computes what the running jobs leave free. It reports whether that may have changed.
func (u *Usage) Count(v *sim.View) bool {
	c := v.Cluster()
	u.measure(c)
	p := u.since(v)
	if p == nothing {
		return false
	}
	u.free[0] = 0
	if u.total[0] > 0 {
		u.free[0] = float64(c.FreeMilli()) / 1000 / u.total[0]
	}
	if u.nodes == nil {
		return true
	}
	from := v.Running()
	if p == oneStart {
		from = from[len(from)-1:]
	} else {
		u.up(c)
	}
	for _, j := range from {
		d := u.demand(v.Request(j))
		u.free[1] -= d[1]
		u.free[2] -= d[2]
	}
	return true
}

// up makes the cores and memory of all nodes that are up free.
func (u *Usage) up(c *cluster.Cluster) {
	up := u.total
	for n, has := range u.nodes {
		if c.Down(n) {
			up[1] -= has[0]
			up[2] -= has[1]
		}
	}
	for i := 1; i < 3; i++ {
		u.free[i] = 0
		if u.total[i] > 0 {
			u.free[i] = up[i] / u.total[i]
		}
	}
}

// CountUsers computes what the running jobs of each user hold.
func (u *Usage) CountUsers(v *sim.View) {
	u.measure(v.Cluster())
	from := v.Running()
	u.changed = u.changed[:0]
	switch u.since(v) {
	case nothing:
		return
	case oneStart:
		from = from[len(from)-1:]
	default:
		for _, i := range u.holders {
			u.held[i], u.holds[i] = demand{}, false
		}
		u.changed = append(u.changed, u.holders...)
		u.holders = u.holders[:0]
	}
	for _, j := range from {
		i := u.UserOf(v, j)
		if !u.holds[i] {
			u.holds[i] = true
			u.holders = append(u.holders, i)
		}
		h := &u.held[i]
		for k, x := range u.demand(v.Request(j)) {
			h[k] += x
		}
	}
	if len(from) == 1 {
		u.changed = append(u.changed, u.UserOf(v, from[0]))
	} else {
		u.changed = append(u.changed, u.holders...)
	}
}

// UserOf returns the number of j's user.
func (u *Usage) UserOf(v *sim.View, j sim.Job) int32 {
	o := grow.Or(&u.user, j, owner{pos: -1})
	if o.pos != v.Pos(j) {
		name := v.Trace(j).User
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
		u.held, u.holds = append(u.held, demand{}), append(u.holds, false)
	}
	return o.user
}

// Reset forgets the jobs of the previous run.
func (u *Usage) Reset() {
	u.user, u.held, u.holds, u.holders, u.changed = u.user[:0], u.held[:0], u.holds[:0], u.holders[:0], u.changed[:0]
	u.summed, u.wants = false, u.wants[:0]
}
