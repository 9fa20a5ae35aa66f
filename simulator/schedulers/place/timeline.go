package place

import (
	"math"
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Timeline is what will be free on each node from now on, if the running jobs end as expected and reservations are
// kept. A reservation is a set of GPUs for a time: it holds for the hardware, whatever the virtual cluster of its job.
//
// On a counter, which has no nodes, it counts.
type Timeline struct {
	c     *cluster.Cluster // as it is now
	now   int64
	epoch uint32
	nodes []nodeLine // by node
	shown []int32    // nodes whose line is of this epoch
	marks []mark     // where lines change, in order of time

	total steps   // counters only: thousandths
	quota []steps // by virtual cluster; empty = without a quota

	window  *cluster.Cluster // what stays free from one time to another
	GPUs    []cluster.GPU    // where a job has a place in it
	low     []int64          // scratch
	members []int32          // scratch, by node: 0 between calls
	dirty   []int32          // scratch
	isDirty []bool           // scratch, by node: false between calls
}

// nodeLine is what is free on a node: from at[k] until at[k+1] the thousandths of each of its GPUs, its cores and its
// memory, which are free[k*width:(k+1)*width].
type nodeLine struct {
	epoch uint32
	width int
	at    []int64
	free  []int64
}

// mark says that the line of a node changes at a time; node is -1 on a counter.
type mark struct {
	at   int64
	node int32
}

// Begin shows c, as it is now, without any job that ends.
func (p *Timeline) Begin(c *cluster.Cluster, now int64) {
	if p.window == nil || p.c != c {
		p.window = CopyOf(c, p.window, p.c == c)
		p.nodes, p.epoch = nil, 0
		if !c.Pool() {
			p.nodes = make([]nodeLine, c.Nodes())
			p.members, p.isDirty = make([]int32, c.Nodes()), make([]bool, c.Nodes())
		}
		p.quota = make([]steps, len(c.VCs())+1)
	}
	p.c, p.now = c, now
	p.epoch++
	p.shown, p.marks = p.shown[:0], p.marks[:0]
	p.total.begin(now, int64(c.FreeMilli()))
	for vc := range p.quota {
		p.quota[vc].clear()
		if room := c.VCRoom(int32(vc)); room < math.MaxInt {
			p.quota[vc].begin(now, int64(room))
		}
	}
}

// Ends gives back what a job holds at a time that is not before those of the calls since begin.
func (p *Timeline) Ends(r *cluster.Request, gpus []cluster.GPU, at int64) {
	at = max(at, p.now)
	need := int64(r.GPUs * r.Milli)
	if q := &p.quota[r.VC]; len(q.at) > 0 {
		q.give(at, need)
	}
	if p.c.Pool() {
		p.total.give(at, need)
		p.marks = append(p.marks, mark{at, -1})
		return
	}
	for _, g := range gpus {
		n := p.c.NodeOf(g)
		l := p.line(n)
		k := len(l.at) - 1
		if at > l.at[k] {
			l.at = append(l.at, at)
			l.free = append(l.free, l.free[k*l.width:]...)
			p.marks = append(p.marks, mark{at, int32(n)})
			k++
		}
		p.change(l, k, g, n, -1, r)
	}
}

// change takes a member of r on g, which is on node n, from step k of its line; times is -1 to give it back.
func (p *Timeline) change(l *nodeLine, k int, g cluster.GPU, n int, times int64, r *cluster.Request) {
	step := l.free[k*l.width : (k+1)*l.width]
	if g >= 0 {
		from, _ := p.c.NodeGPUs(n)
		step[g-from] -= times * int64(r.Milli)
	}
	for i, need := range [...]int64{r.CPUMilli, r.MemBytes} {
		if x := &step[l.width-2+i]; *x != math.MaxInt64 {
			*x -= times * need
		}
	}
}

// line returns the line of node n.
func (p *Timeline) line(n int) *nodeLine {
	l := &p.nodes[n]
	if l.epoch == p.epoch {
		return l
	}
	from, to := p.c.NodeGPUs(n)
	l.epoch, l.width = p.epoch, int(to-from)+2
	l.at, l.free = append(l.at[:0], p.now), l.free[:0]
	for g := from; g < to; g++ {
		l.free = append(l.free, int64(p.c.GPUFree(g)))
	}
	cpu, mem := p.c.Left(n)
	l.free = append(l.free, cpu, mem)
	p.shown = append(p.shown, int32(n))
	return l
}

// split returns the step of n's line that begins at a time. If the line has no such step, split makes it.
func (p *Timeline) split(l *nodeLine, n int, at int64) int {
	k, found := slices.BinarySearch(l.at, at)
	if !found {
		l.at = slices.Insert(l.at, k, at)
		l.free = slices.Insert(l.free, k*l.width, l.free[(k-1)*l.width:k*l.width]...)
		p.mark(at, int32(n))
	}
	return k
}

func (p *Timeline) mark(at int64, node int32) {
	i := p.after(at)
	p.marks = slices.Insert(p.marks, i, mark{at, node})
}

// after returns the place of the first mark behind a time.
func (p *Timeline) after(at int64) int {
	i, _ := slices.BinarySearchFunc(p.marks, at, func(m mark, at int64) int {
		if m.at <= at {
			return -1
		}
		return 1
	})
	return i
}

// Take reserves gpus for r.
func (p *Timeline) Take(r *cluster.Request, gpus []cluster.GPU, from, to int64) {
	need := int64(r.GPUs * r.Milli)
	if q := &p.quota[r.VC]; len(q.at) > 0 {
		q.take(from, to, need)
	}
	if p.c.Pool() {
		p.total.take(from, to, need)
		p.mark(from, -1)
		p.mark(to, -1)
		return
	}
	for _, g := range gpus {
		n := p.c.NodeOf(g)
		l := p.line(n)
		a := p.split(l, n, from)
		for k, b := a, p.split(l, n, to); k < b; k++ {
			p.change(l, k, g, n, 1, r)
		}
	}
}

// Free reports whether nothing is reserved, or held, of what r needs on gpus.
func (p *Timeline) Free(r *cluster.Request, gpus []cluster.GPU, from, to int64) bool {
	if !p.allows(r, from, to) {
		return false
	}
	ok := true
	for _, g := range gpus {
		n := p.c.NodeOf(g)
		p.members[n]++
		if !ok {
			continue
		}
		l := p.line(n)
		has := p.least(l, from, to)
		i, _ := p.c.NodeGPUs(n)
		m := int64(p.members[n])
		ok = (g < 0 || has[g-i] >= int64(r.Milli)) && has[l.width-2] >= m*r.CPUMilli && has[l.width-1] >= m*r.MemBytes
	}
	for _, g := range gpus {
		p.members[p.c.NodeOf(g)] = 0
	}
	return ok
}

// allows reports whether the quota of r's virtual cluster and, on a counter, the GPUs leave r what it needs.
func (p *Timeline) allows(r *cluster.Request, from, to int64) bool {
	need := int64(r.GPUs * r.Milli)
	if q := &p.quota[r.VC]; len(q.at) > 0 && q.least(from, to) < need {
		return false
	}
	return !p.c.Pool() || p.total.least(from, to) >= need
}

// least returns what stays free of a node's line, in scratch.
func (p *Timeline) least(l *nodeLine, from, to int64) []int64 {
	k, found := slices.BinarySearch(l.at, from)
	if !found {
		k = max(0, k-1)
	}
	p.low = append(p.low[:0], l.free[k*l.width:(k+1)*l.width]...)
	for k++; k < len(l.at) && l.at[k] < to; k++ {
		for i, x := range l.free[k*l.width : (k+1)*l.width] {
			p.low[i] = min(p.low[i], x)
		}
	}
	return p.low
}

// show makes the window show what stays free on node n. It reports whether that is more of anything than it showed.
func (p *Timeline) show(n int, from, to int64) (gained bool) {
	if p.c.Down(n) {
		return false
	}
	l := &p.nodes[n]
	low := p.least(l, from, to)
	gpus := low[:l.width-2]
	g0, _ := p.c.NodeGPUs(n)
	for i, x := range gpus {
		gained = gained || x > int64(p.window.GPUFree(g0+cluster.GPU(i)))
	}
	cpu, mem := p.window.Left(n)
	gained = gained || low[l.width-2] > cpu || low[l.width-1] > mem
	p.window.SetFree(n, gpus, low[l.width-2], low[l.width-1])
	return gained
}

// Earliest returns the first time in [from, until) from which j has a place for as long as it lasts, and leaves the
// place in spot. If there is no such time, ok is false. With until = never that happens only while nodes are down.
func (p *Timeline) Earliest(choose Placement, v *sim.View, j sim.Job, lasts, from, until int64) (at int64, ok bool) {
	r := v.Request(j)
	at = from
	if at >= until {
		return at, false
	}
	left, right := p.after(at), 0
	if !p.c.Pool() {
		p.window.CopyFrom(p.c)
		p.window.LiftQuotas()
		for _, n := range p.shown {
			p.show(int(n), at, at+lasts)
		}
		right = p.after(at + lasts - 1)
	}
	for {
		if p.allows(r, at, at+lasts) {
			p.GPUs = p.GPUs[:0]
			if p.c.Pool() {
				return at, true
			}
			if p.GPUs, ok = choose.Place(v, j, r, p.window, p.GPUs); ok {
				return at, true
			}
		}
		for gained := false; !gained; {
			if left == len(p.marks) || p.marks[left].at >= until {
				return at, false
			}
			at = p.marks[left].at
			if p.c.Pool() {
				left = p.after(at)
				break
			}
			for ; left < len(p.marks) && p.marks[left].at <= at; left++ {
				p.touch(p.marks[left].node)
			}
			for ; right < len(p.marks) && p.marks[right].at < at+lasts; right++ {
				p.touch(p.marks[right].node)
			}
			gained = len(p.quota[r.VC].at) > 0
			for _, n := range p.dirty {
				p.isDirty[n] = false
				gained = p.show(int(n), at, at+lasts) || gained
			}
			p.dirty = p.dirty[:0]
		}
	}
}

func (p *Timeline) touch(n int32) {
	if !p.isDirty[n] {
		p.isDirty[n] = true
		p.dirty = append(p.dirty, n)
	}
}

// steps is a number as a function of time: free[k] from at[k] until at[k+1].
type steps struct{ at, free []int64 }

func (s *steps) clear() { s.at, s.free = s.at[:0], s.free[:0] }

func (s *steps) begin(now, free int64) {
	s.at, s.free = append(s.at[:0], now), append(s.free[:0], free)
}

// give adds x from a time on that is not before any step.
func (s *steps) give(at, x int64) {
	k := len(s.at) - 1
	if at > s.at[k] {
		s.at, s.free = append(s.at, at), append(s.free, s.free[k])
		k++
	}
	s.free[k] += x
}

func (s *steps) split(at int64) int {
	k, found := slices.BinarySearch(s.at, at)
	if !found {
		s.at, s.free = slices.Insert(s.at, k, at), slices.Insert(s.free, k, s.free[k-1])
	}
	return k
}

func (s *steps) take(from, to, x int64) {
	a := s.split(from)
	for k, b := a, s.split(to); k < b; k++ {
		s.free[k] -= x
	}
}

func (s *steps) least(from, to int64) int64 {
	k, found := slices.BinarySearch(s.at, from)
	if !found {
		k = max(0, k-1)
	}
	least := s.free[k]
	for k++; k < len(s.at) && s.at[k] < to; k++ {
		least = min(least, s.free[k])
	}
	return least
}
