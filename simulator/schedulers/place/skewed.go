package place

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// RackSkewed is the name of the placement skewed.
const RackSkewed = "rack-skewed"

// skewed is the placement rack, except that models with a skewed gradient are consolidated (Tiresias: Gu et al., NSDI
// 2019): it refuses them any tier farther than the nearest that holds them on the empty cluster.
type skewed struct {
	rack  cluster.Placement
	of    *cluster.Cluster
	empty *cluster.Cluster // of as if nothing ran
	alone []cluster.GPU
}

func newSkewed() *skewed {
	p := new(skewed)
	p.rack, _ = cluster.NewPlacement("rack")
	return p
}

func (*skewed) Reset() {}

func (p *skewed) Place(v *sim.View, j sim.Job, r *cluster.Request, c *cluster.Cluster,
	dst []cluster.GPU) ([]cluster.GPU, bool) {
	dst, ok := p.rack.Place(c, r, dst)
	if m := v.Trace(j).Profile; !ok || m == nil || !m.Skewed {
		return dst, ok
	}
	tier := Spread(c, dst)
	if tier == InNode {
		return dst, true
	}
	if live := v.Cluster(); p.of != live {
		p.empty, p.of = CopyOf(live, p.empty, false), live
		p.empty.Reset()
	}
	if p.alone, ok = p.rack.Place(p.empty, r, p.alone); ok && tier > Spread(p.empty, p.alone) {
		return dst[:0], false
	}
	return dst, true
}
