package delay

import (
	"math"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
)

// fast reports whether the rate at o is enough for its job, which wants less the longer it has waited.
func (d *Delay) fast(v *sim.View, o *Offer) bool {
	share := d.cfg.Accept
	if d.cfg.Patience > 0 {
		share *= math.Exp2(-float64(o.Waited) / float64(d.cfg.Lease) / d.cfg.Patience)
	}
	return v.Factor(o.Job, o.GPUs) >= share*v.Factor(o.Job, d.alonePlace(v, o.Job))
}

// stays reports whether j, whose lease has run out, gains nothing by moving to its offer. own is the tier where it is.
func (d *Delay) stays(v *sim.View, j sim.Job, own place.Tier) bool {
	if d.rule == byRate {
		return v.Factor(j, v.GPUs(j)) >= v.Factor(j, d.offer.GPUs)
	}
	return own <= d.offer.Tier
}

// alonePlace returns the place of j on the empty cluster.
func (d *Delay) alonePlace(v *sim.View, j sim.Job) []cluster.GPU {
	r := v.Request(j)
	f := slot(&d.best, r)
	if f.pass == 0 || f.req != *r { // the cluster is always the same, so passes do not matter: 0 = not looked for yet
		f.pass, f.req = 1, *r
		f.gpus, f.ok = d.rack.Place(d.empty, r, f.gpus)
	}
	if !f.ok { // it is offered something, so this cannot be
		panic("delay: a job that has an offer has no place on the empty cluster")
	}
	return f.gpus
}
