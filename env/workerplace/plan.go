package workerplace

import (
	"math"
	"slices"
)

// Planner places gangs where all jobs together are fastest, by what is said of their speeds: one worker after the
// other, each on the server that leaves the sum of all speeds largest, a speed above that alone counting as that alone.
// Not safe for concurrent use.
type Planner struct {
	// Speeds are what it plans by, nil = the true ones, which no agent knows.
	Speeds Speeds
	// Wait is the least that a gang must add to the sum of all speeds, as a part of its own speed alone: of the jobs that
	// fit the one that takes least alone and adds so much goes first, and where none does the interval is closed if it may
	// be. -Inf = whatever it costs: the shortest job goes.
	Wait float64

	place Placement
	speed []float64
	on    []int32 // of the gang that is looked at
	free  []freeResources
	tried []bool
}

// Never is a Planner.Wait with which nobody waits.
var Never = math.Inf(-1)

// Choose is the planner's action in the present state of e.
func (p *Planner) Choose(e *Env) (int32, error) {
	last := int32(len(e.mask) - 1)
	visible := e.visible()
	p.tried = slices.Grow(p.tried[:0], len(visible))[:len(visible)]
	clear(p.tried)
	now, known := 0.0, false
	for {
		slot := -1
		for s, id := range visible {
			if !p.tried[s] && (e.begun < 0 || e.begun == id) && e.fits(&e.jobs[id]) &&
				(slot < 0 || e.jobs[id].work < e.jobs[visible[slot]].work) {
				slot = s
			}
		}
		if slot < 0 {
			break
		}
		p.tried[slot] = true
		whole := e.begun < 0 && e.mask[last] && !math.IsInf(p.Wait, -1) // else what the whole gang adds does not matter
		m, after, err := p.gang(e, visible[slot], whole)
		if err != nil {
			return 0, err
		}
		if !whole {
			return int32(slot*e.cfg.Servers + m), nil
		}
		if !known {
			e.placement()
			if now, err = p.sum(e, &e.place); err != nil {
				return 0, err
			}
			known = true
		}
		if after-now >= p.Wait {
			return int32(slot*e.cfg.Servers + m), nil
		}
	}
	return last, nil
}

// gang places what is left of a job, all of it or one worker, and says where the first goes and what the sum of speeds
// is then.
func (p *Planner) gang(e *Env, id int32, whole bool) (first int, sum float64, err error) {
	j := &e.jobs[id]
	p.on, p.free = append(p.on[:0], j.on...), append(p.free[:0], e.free...)
	e.placement()
	p.place.Servers, p.place.Jobs = e.place.Servers, append(p.place.Jobs[:0], e.place.Jobs...)
	n := len(p.place.Jobs)
	p.place.Jobs = append(p.place.Jobs, Placed{Job: int(id), Type: j.kind, On: p.on})
	first = -1
	for k := j.placed; k < j.workers; k++ {
		// As if the workers after this one were not to come.
		p.place.Jobs[n].Workers = k + 1
		best := -1
		for m := range e.active {
			if p.free[m].holds(j.gpus) == 0 {
				continue
			}
			p.on[m]++
			v, err := p.sum(e, &p.place)
			p.on[m]--
			if err != nil {
				return 0, 0, err
			}
			if best < 0 || v > sum+1e-9 {
				best, sum = m, v
			}
		}
		p.on[best]++
		p.free[best].take(j.gpus, 1)
		if first < 0 {
			first = best
		}
		if !whole {
			break
		}
	}
	return first, sum, nil
}

// sum is the speed of all jobs together.
func (p *Planner) sum(e *Env, at *Placement) (float64, error) {
	n := len(at.Jobs)
	for len(p.speed) < n {
		p.speed = append(p.speed, 0)
	}
	v := p.speed[:n]
	var s Speeds = e.truth
	if p.Speeds != nil {
		s = p.Speeds
	}
	if err := s.Speeds(v, at); err != nil {
		return 0, err
	}
	sum := 0.0
	for _, x := range v {
		sum += min(x, 1)
	}
	return sum, nil
}
