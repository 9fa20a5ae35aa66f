package schedulers

import (
	"math"
	"time"

	"clustergym/simulator/sim"
)

// pass is what a scheduler does at one point: it begins, decides as often as it likes, and ends.
type pass struct {
	open      bool   // it has begun and not ended
	moved     bool   // it has decided something since waiting jobs were ranked
	own       int    // its decisions
	until     int64  // when the next one begins at the latest, 0 = with the next event
	version   uint64 // that the cluster has if nothing but the latest decision and the simulator has changed it
	decisions uint64 // and View.Decisions, likewise
}

// begins opens a pass.
func (p *pass) begins() { p.open, p.own, p.until = true, 0, 0 }

// decides notes that a decision is returned; done: it is to wait.
func (p *pass) decides(v *sim.View, done bool) {
	p.moved = !done
	if p.version, p.decisions = v.Cluster().Version(), v.Decisions(); !done {
		p.version++
		p.decisions++
		p.own++
	}
}

// ends closes the pass with the decision to wait.
func (p *pass) ends(d *sim.Decision) {
	p.open = false
	d.Op, d.Until = sim.Wait, time.Duration(p.until)
}

// others reports whether other code has decided since the latest decision. On a part of a cluster, whose policies
// decide one after the other, divided notes in version that jobs have been dropped.
func (p *pass) others(v *sim.View) bool {
	return v.Cluster().Version() != p.version || v.Cluster().Own() == v.Cluster().GPUs() && v.Decisions() != p.decisions
}

// disturbed notes that other code has changed the cluster, however often.
func (p *pass) disturbed() { p.version = math.MaxInt64 + 1 } // no cluster reaches it

// lastPass is what steady orders need of the pass before.
type lastPass struct {
	own     int  // its decisions; −1 = there was none
	waiting int  // the jobs that it left waiting
	failed  bool // a job found no place, although there was room by count
}

// happened says what has happened since the last pass, apart from its decisions.
type happened uint8

const (
	nothing  happened = iota
	jobsCame          // jobs have been submitted or have finished
	others            // something else, which other code may have done
)

// since returns what has happened by the next point.
func (l *lastPass) since(p *sim.Point) happened {
	h, own := nothing, 0
	for i := range p.Events {
		switch p.Events[i].Kind {
		case sim.Timer:
		case sim.Start, sim.Preempt:
			own++
		case sim.Submit, sim.Finish:
			h = max(h, jobsCame)
		default:
			h = others
		}
	}
	if own != l.own {
		return others
	}
	return h
}
