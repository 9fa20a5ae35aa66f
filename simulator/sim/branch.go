package sim

import (
	"errors"
	"fmt"
	"math"

	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// Future is what a fork takes to come. It replaces what the original's stream, and on request its run times and
// failures, would bring, so a fork knows of the real future only what its Future says.
type Future struct {
	// Jobs will arrive, in order of submit and none before now. They stay the caller's, and must not change while the fork
	// runs. Those that cannot fit the cluster, or lack the model that communication needs (LacksModel), are left out.
	Jobs []traces.Job
	// Forecasts are those of Jobs, in runs where jobs have forecasts.
	Forecasts []predict.Forecast
	// Left is the remaining work of the jobs in the system, by Job, in nanoseconds at rate 1, from now on. nil leaves that
	// of the run; so does a number that is not above 0.
	Left []float64
	// Seed draws the failures and recoveries of nodes anew, from now on.
	Seed uint64
	// SameFailures keeps those of the run instead.
	SameFailures bool
}

// role says whose run a simulator plays.
type role uint8

const (
	plays    role = iota // jobs of a stream
	forks                // the rest of another simulator's run: see View.Fork
	follows              // facts (Follow), and takes no decisions
	imagines             // facts, and decisions that Forget undoes
)

// facts reports whether facts move the clock.
func (r role) facts() bool { return r >= follows }

// lends reports whether placements are kept in Simulator.gangs.
func (r role) lends() bool { return r == forks || r == imagines }

var errFork = errors.New("sim: a fork only continues runs of other simulators")

// Fork returns a simulator that can continue runs of v's simulator (CopyFrom). It has no predictor, and its clock ends
// where all clocks end, whatever the horizon of the original. Reset and RestoreSnapshot refuse. A fork may be used in
// another goroutine than the original while the original stands still.
func (v *View) Fork() (*Simulator, error) {
	cfg := v.s.cfg
	cfg.Predictor, cfg.Horizon = nil, traces.MaxTime
	t, err := New(cfg, v.s.cluster.Spec())
	if err != nil {
		return nil, fmt.Errorf("sim: fork: %w", err)
	}
	t.role, t.forecasts.told = forks, v.s.forecasts.told
	return t, nil
}

// CopyFrom makes s, a fork, continue the run of v from its current state, with f as its future. Decisions of the
// current point count as made, and the point stays open. It takes time in proportion to the jobs in the system and to
// the cluster, and allocates nothing once s has seen as many jobs. What s shows of jobs that were in the system is
// valid until v's run goes on; f is used until the next CopyFrom.
func (s *Simulator) CopyFrom(v *View, f *Future) {
	o := v.s
	if s.role != forks || s.cluster.GPUs() != o.cluster.GPUs() {
		panic(fmt.Sprintf("sim: a copy of a run on %d GPUs was asked of %d that are no fork of it", o.cluster.GPUs(),
			s.cluster.GPUs()))
	}
	if len(f.Jobs) > 0 && int64(f.Jobs[0].Submit) < o.now {
		panic(fmt.Sprintf("sim: the first job of a future arrives at %v, now is %v", f.Jobs[0].Submit, v.Now()))
	}
	s.copyState(o)
	s.traced = append(s.traced[:0], o.traced[:len(o.jobs)]...)
	if o.forecasts.told {
		s.forecasts.of = append(s.forecasts.of[:0], o.forecasts.of...)
	}
	s.gangs = s.gangs[:0]
	s.copyFailures(o, f)
	s.copyDrains(o)
	s.future, s.ahead = f, 0
	s.foresee()
	s.over = s.over && !s.coming
	if f.Left != nil {
		s.redraw(f.Left)
	}
}

// copyState makes the state of o that of s, but for what decisions do not change: trace data, forecasts, what will
// arrive, and when nodes fail.
func (s *Simulator) copyState(o *Simulator) {
	s.cluster.CopyFrom(o.cluster)
	s.read, s.arrived, s.ended, s.decisions = o.read, o.arrived, o.ended, o.decisions
	s.now, s.seq, s.points, s.timer = o.now, o.seq, o.points, o.timer
	s.waited, s.begun, s.over, s.err = o.waited, o.begun, o.over, o.err
	s.jobs = append(s.jobs[:0], o.jobs...)
	s.more = append(s.more[:0], o.more...)
	s.spare, s.dead, s.gone = append(s.spare[:0], o.spare...), append(s.dead[:0], o.dead...), o.gone
	s.waiting, s.running = append(s.waiting[:0], o.waiting...), append(s.running[:0], o.running...)
	s.finishes = append(s.finishes[:0], o.finishes...)
	s.events = append(s.events[:0], o.events...)
	s.point.Now, s.point.Events = o.point.Now, append(s.point.Events[:0], o.point.Events...)
	s.copyNeighbours(o)
}

// hold makes gpus the placement of st's gang. The event of an earlier stop at this point still shows the list before.
func (s *Simulator) hold(st *jobState, gpus []cluster.GPU) {
	if !s.role.lends() {
		st.gpus, st.other = append(st.other[:0], gpus...), st.gpus
		return
	}
	n := len(s.gangs)
	s.gangs = append(s.gangs, gpus...)
	st.gpus = s.gangs[n:len(s.gangs):len(s.gangs)]
}

// foresee reads the next job of a fork's future that can run.
func (s *Simulator) foresee() {
	for s.coming = false; s.ahead < len(s.future.Jobs) && !s.coming; s.ahead++ {
		j := &s.future.Jobs[s.ahead]
		if r, ok := s.cluster.Request(j); ok && (!s.models || LacksModel(s.cfg.Comm, j) == "") {
			s.next, s.nextReq, s.coming = j, r, true
		}
	}
}

// foretold returns the forecast of the job that has just arrived in a fork.
func (s *Simulator) foretold() predict.Forecast {
	if i := s.ahead - 1; i < len(s.future.Forecasts) {
		return s.future.Forecasts[i]
	}
	return predict.Forecast{}
}

// redraw gives the jobs in the system another remaining work.
func (s *Simulator) redraw(left []float64) {
	for _, j := range s.waiting {
		if x := leftOf(left, j); x > 0 {
			s.jobs[j].left = x
		}
	}
	for _, j := range s.running {
		x := leftOf(left, j)
		if !(x > 0) {
			continue
		}
		st := &s.jobs[j]
		s.settle(j, st)
		if st.more {
			s.more[j].saved += x - st.left
		}
		st.left = x
		st.finish = finishAt(st.since, x, st.rate)
		s.finishes[st.heap].at = st.finish
	}
	for i := len(s.finishes)/2 - 1; i >= 0; i-- {
		s.heapDown(i)
	}
}

// leftOf returns j's number of left, 0 if it has none.
func leftOf(left []float64, j Job) float64 {
	if int(j) >= len(left) || math.IsInf(left[j], 1) {
		return 0
	}
	return left[j]
}

// copyNeighbours copies which jobs are on each node, and which gangs share links.
func (s *Simulator) copyNeighbours(o *Simulator) {
	n, from := &s.near, &o.near
	if n.on = from.on; !n.on {
		return
	}
	s.makeNeighbours()
	for i, list := range from.byNode {
		n.byNode[i] = append(n.byNode[i][:0], list...)
	}
	if l := s.links; l != nil {
		copy(l.onNIC, o.links.onNIC)
		copy(l.onUp, o.links.onUp)
		for i, list := range o.links.spanning {
			l.spanning[i] = append(l.spanning[i][:0], list...)
		}
	}
}

// copyDrains copies which nodes let their jobs end and take no others: they stay so in the fork.
func (s *Simulator) copyDrains(o *Simulator) {
	w := &s.follow
	w.drains, w.blocked = w.drains[:0], o.follow.blocked
	for i := range o.follow.drains {
		from := &o.follow.drains[i]
		d := s.moreDrains()
		d.node, d.gpus, d.held = from.node, append(d.gpus[:0], from.gpus...), append(d.held[:0], from.held...)
	}
}

// copyFailures copies which nodes are down, and when nodes fail or recover next unless f draws that anew. Exponential
// times have no memory, so those that are drawn anew count from now.
func (s *Simulator) copyFailures(o *Simulator, f *Future) {
	n := &s.nodes
	n.on, n.down = o.nodes.on, o.nodes.down
	n.pending, n.draws = append(n.pending[:0], o.nodes.pending...), append(n.draws[:0], o.nodes.draws...)
	if s.cfg.Seed = o.cfg.Seed; !n.on || f.SameFailures {
		return
	}
	s.cfg.Seed = f.Seed
	for i := range n.pending {
		e := &n.pending[i]
		n.draws[e.node]--
		e.at = s.now + s.draw(e.node)
	}
	n.order()
}
