package delayoffer

import (
	"math"
	"time"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/delay"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Lengths of the fields, in the order of the observation.
const (
	clusterLen = 6
	jobLen     = 14
	queueLen   = 6
	timersLen  = 5

	jobLeft = 3 // the place of L(remaining) in field job
)

func (x *encoder) fields() []env.Field {
	fields := []env.Field{
		{Name: "cluster", Shape: []int{clusterLen}, High: 1, Unit: "fraction",
			Doc: "free share; idle machines; largest number of free GPUs in a machine, over its size; in a rack; share of " +
				"running gangs across machines; across racks"},
		{Name: "job", Shape: []int{jobLen}, High: 1, Unit: "fraction",
			Doc: "the offer is a rack, the network; log2 n/log2 G; L(remaining); share done; min(Nw_sens, 2)/2; leases " +
				"waited/24; C(iteration ms, 1000); C(gradient MB, 1e6); its rate in a machine, a rack, across racks (0 = " +
				"impossible); place in the pass/jobs asked; L(since submit)"},
		{Name: "queue", Shape: []int{queueLen}, High: 1, Unit: "fraction",
			Doc: "C(waiting, 1024); min(1, their GPUs/4G); C(asked after it, 1024); of the other jobs that wait: L(least " +
				"remaining) (1 = there are none), share of those with less remaining than it, min(1, GPUs of those/G)"},
		{Name: "timers", Shape: []int{timersLen}, High: 1, Unit: "fraction",
			Doc: "in leases/24: the policy's rack_wait and nw_wait for n; mean and deviation of the delays after which gangs " +
				"of n took a machine; 1 = the policy accepts, 0 = it declines"},
	}
	if x.seen != nil {
		fields[1].Shape[0] += encode.ForecastLen
		fields[1].Doc += "; " + encode.ForecastDoc
	}
	return fields
}

// day is the number of leases by which times in leases are scaled.
const day = 24

// maxProfiles bounds the table of rates, for workloads in which every job has its own profile.
const maxProfiles = 1 << 10

// encoder writes observations.
type encoder struct {
	gpus    float64
	nodes   float64
	node    int                                // GPUs of the largest machine
	rack    int                                // GPUs of the largest rack
	typical [3][][]cluster.GPU                 // by tier and gang size: a place on the empty cluster, nil = none
	rates   map[*traces.Profile][3][]rateKnown // by tier and gang size
	moving  bool                               // rates depend on the other running jobs, so they are not kept
	seen    *encode.Forecasts                  // nil = they are not shown
}

type rateKnown struct {
	known bool
	rate  float64
}

func newEncoder(c *cluster.Cluster, comm string) encoder {
	x := encoder{
		gpus: float64(c.GPUs()), nodes: float64(c.Nodes()), node: c.MaxNode(), moving: comm == "contention",
		rates: map[*traces.Profile][3][]rateKnown{},
	}
	for k := range c.Racks() {
		x.rack = max(x.rack, rackSize(c, k))
	}
	return x
}

func rackSize(c *cluster.Cluster, k int) (n int) {
	from, to := c.RackNodes(k)
	for node := from; node < to; node++ {
		a, b := c.NodeGPUs(node)
		n += int(b - a)
	}
	return n
}

func (x *encoder) encode(dst []float32, e *offers) {
	v, o := e.view, e.offer
	part := dst[:clusterLen]
	x.cluster(part, v)
	part = dst[clusterLen:]
	x.job(part[:jobLen], e, v, o)
	if part = part[jobLen:]; x.seen != nil {
		x.seen.Count(v)
		x.seen.Encode(part, v, o.Job)
		if e.est.Mode == sim.EstimateExact { // the work left, however fast it went so far
			x.seen.Sure(part, dst[clusterLen+jobLeft])
		}
		part = part[encode.ForecastLen:]
	}
	x.queue(part[:queueLen], e, v, o)
	part = part[queueLen:]
	n := v.Request(o.Job).GPUs
	rack, network := e.rule.Timers(v, n)
	mean, deviation := e.rule.Delays(v, n)
	part[0], part[1], part[2], part[3] = cut(rack/day), cut(network/day), cut(mean/day), cut(deviation/day)
	part[4] = float32(e.timely())
}

// queue encodes the waiting jobs, and how many of them have less left than the job that is asked.
func (x *encoder) queue(dst []float32, e *offers, v *sim.View, o *delay.Offer) {
	own, _ := e.remaining(o.Job)
	least, wanted, others, shorter, gpus := math.Inf(1), 0, 0, 0, 0
	for _, j := range v.Waiting() {
		n := v.Request(j).GPUs
		wanted += n
		if j == o.Job {
			continue
		}
		left, _ := e.remaining(j)
		least = min(least, left)
		others++
		if left < own {
			shorter++
			gpus += n
		}
	}
	dst[0] = encode.C(float64(len(v.Waiting())), 1024)
	dst[1] = cut(float64(wanted) / (4 * x.gpus))
	dst[2] = encode.C(float64(o.Behind), 1024)
	dst[3] = 1
	if others > 0 {
		dst[3], dst[4], dst[5] = encode.L(least), float32(shorter)/float32(others), cut(float64(gpus)/x.gpus)
	}
}

func (x *encoder) cluster(dst []float32, v *sim.View) {
	c := v.Cluster()
	idle, node, rack, inRack := 0, 0, 0, 0
	for k := range c.Racks() {
		from, to := c.RackNodes(k)
		inRack = 0
		for n := from; n < to; n++ {
			a, b := c.NodeGPUs(n)
			free := c.NodeFree(n)
			if free == int(b-a) {
				idle++
			}
			node = max(node, free)
			inRack += free
		}
		rack = max(rack, inRack)
	}
	machines, racks := 0, 0
	for _, j := range v.Running() {
		switch place.Spread(c, v.GPUs(j)) {
		case place.AcrossRacks:
			racks++
			machines++
		case place.InRack:
			machines++
		}
	}
	dst[0] = cut(float64(c.Free()) / x.gpus)
	dst[1] = cut(float64(idle) / x.nodes)
	dst[2] = cut(float64(node) / float64(x.node))
	dst[3] = cut(float64(rack) / float64(x.rack))
	if n := float64(len(v.Running())); n > 0 {
		dst[4], dst[5] = cut(float64(machines)/n), cut(float64(racks)/n)
	}
}

func (x *encoder) job(dst []float32, e *offers, v *sim.View, o *delay.Offer) {
	j := o.Job
	t, n := v.Trace(j), v.Request(j).GPUs
	if o.Tier == place.InRack {
		dst[0] = 1
	} else {
		dst[1] = 1
	}
	if x.gpus > 1 {
		dst[2] = cut(math.Log2(float64(n)) / math.Log2(x.gpus))
	}
	left, done := e.remaining(j)
	dst[jobLeft] = encode.L(left)
	dst[4] = cut(done)
	dst[5] = cut(min(delay.Sensitivity(v, j), 2) / 2)
	dst[6] = cut(float64(o.Waited) / float64(e.cfg.Lease) / day)
	if p := t.Profile; p != nil {
		dst[7] = encode.C(float64(p.Compute)/float64(time.Millisecond), 1000)
		dst[8] = encode.C(float64(p.GradientBytes)/1e6, 1e6)
	}
	for tier := range 3 {
		dst[9+tier] = cut(x.rate(v, j, t.Profile, tier, n))
	}
	dst[12] = cut(float64(o.Place) / float64(o.Place+o.Behind+1))
	dst[13] = encode.L(float64(v.Now() - t.Submit))
}

// remaining returns what is known of the work that a job has left, in nanoseconds, and the share that is done. Without
// estimates it returns the time run, and 0.
func (e *offers) remaining(j sim.Job) (left, done float64) {
	t, ran := e.view.Trace(j), e.view.Ran(j)
	switch e.est.Mode {
	case sim.EstimateExact:
		left = e.view.Left(j)
		return left, 1 - left/math.Max(1, float64(t.Work))
	case sim.EstimateNone:
		return float64(ran), 0
	}
	left = float64(e.est.Left(e.view, j))
	return left, 1 - left/math.Max(1, left+float64(ran))
}

// rate returns the rate of a gang of n at a tier of the empty cluster, 0 if there is no such place. It depends on the
// job only through its profile, unless x.moving is set.
func (x *encoder) rate(v *sim.View, j sim.Job, p *traces.Profile, tier, n int) float64 {
	if x.moving {
		if place := x.place(v.Cluster(), tier, n); place != nil {
			return v.Factor(j, place)
		}
		return 0
	}
	known, ok := x.rates[p]
	if !ok && len(x.rates) == maxProfiles {
		clear(x.rates)
	}
	list := known[tier]
	for n >= len(list) {
		list = append(list, rateKnown{})
	}
	if !list[n].known {
		list[n].known = true
		if place := x.place(v.Cluster(), tier, n); place != nil {
			list[n].rate = v.Factor(j, place)
		}
		known[tier] = list
		x.rates[p] = known
	}
	return list[n].rate
}

// place returns a typical place of n GPUs at a tier: as few nodes as possible, but at least two in a rack, and at least
// two racks across racks, with GPUs spread evenly as far as possible. It returns nil if there is none.
func (x *encoder) place(c *cluster.Cluster, tier, n int) []cluster.GPU {
	for n >= len(x.typical[tier]) {
		x.typical[tier] = append(x.typical[tier], nil)
	}
	if got := x.typical[tier][n]; got != nil {
		return got
	}
	var gpus []cluster.GPU
	switch {
	case tier == 0 && n <= x.node:
		for node := range c.Nodes() {
			if a, b := c.NodeGPUs(node); int(b-a) >= n {
				gpus = spread(c, gpus, n, node, node+1, 1)
				break
			}
		}
	case tier == 1 && n > 1 && n <= x.rack:
		for k := range c.Racks() {
			if from, to := c.RackNodes(k); rackSize(c, k) >= n && to-from > 1 {
				gpus = spread(c, gpus, n, from, to, max(2, (n+x.node-1)/x.node))
				break
			}
		}
	case tier == 2 && n > 1 && c.Racks() > 1:
		racks := min(c.Racks(), max(2, (n+x.rack-1)/x.rack))
		for k := range racks {
			share := n / racks
			if k < n%racks {
				share++
			}
			from, to := c.RackNodes(k)
			if rackSize(c, k) < share {
				return nil
			}
			gpus = spread(c, gpus, share, from, to, max(1, (share+x.node-1)/x.node))
		}
	}
	if len(gpus) != n {
		return nil
	}
	x.typical[tier][n] = gpus
	return gpus
}

// spread appends n GPUs of nodes from to to−1, evenly over the first nodes of them; the rest go wherever there is room.
func spread(c *cluster.Cluster, dst []cluster.GPU, n, from, to, nodes int) []cluster.GPU {
	taken := map[cluster.GPU]bool{}
	for _, each := range [2]int{(n + nodes - 1) / nodes, n} {
		for node := from; node < to && n > 0; node++ {
			a, b := c.NodeGPUs(node)
			for k := 0; a < b && k < each && n > 0; a++ {
				if !taken[a] {
					taken[a] = true
					dst = append(dst, a)
					n--
					k++
				}
			}
		}
	}
	return dst
}

func cut(x float64) float32 { return float32(max(0, min(1, x))) }
