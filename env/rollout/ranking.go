package rollout

import (
	"math"
	"time"

	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// ranking is the line of an order that stops gangs, and which of them it spares.
type ranking struct {
	order string
	est   sim.Estimates
	first int           // gangs at positions before it are spared
	min   time.Duration // and those whose stint has not lasted so long
	wakes bool          // in queues of what jobs have attained: a pass is also made when a gang falls
}

// Stopping returns the orders that stop running jobs and that rollouts can play on with: their ranks follow from the
// jobs in the system.
func Stopping() []string {
	return []string{"srtf", "srsf", "gittins", "las", "las-2d", "las-2d-prompt"}
}

// limits are those of the queues of las and las-2d.
var limits = schedulers.DefaultConfig().Limits

// rank is what a job's place in line follows from while it has run for at least from and less than until.
type rank struct {
	pos         int // of the job, −1 = none
	x           float64
	less        bool // the time run is taken off
	from, until time.Duration
	stamp       uint64        // of the decision at which it was computed
	fell        time.Duration // the run time at which it has reached its queue, 0 in the first
}

// stale is by how much a job's run time grows until its rank is computed anew, where it follows from a forecast.
const stale = 1.25

// rank computes what j's place in line follows from.
func (o *ranking) rank(v *sim.View, j sim.Job) rank {
	ran := v.Ran(j)
	m := rank{pos: v.Pos(j), from: ran, until: ran}
	later := max(ran+time.Second, time.Duration(min(stale*float64(ran), 1<<62)))
	switch {
	case o.order == "las":
		m.attained(float64(ran), 1)
	case o.queues():
		m.attained(v.GPUTime(j), share(v.Request(j).GPUs, v.Request(j).Milli))
	case o.est.Mode == sim.EstimateExact:
		m.x = v.Left(j)
	case o.order == "gittins" && o.est.Causal():
		m.x, m.until = math.Inf(1), later
		if x := v.Forecast(j).Gittins(ran); x > 0 {
			m.x = 1 / x
		}
	default:
		lasting := o.est.Lasting(v, j)
		m.x, m.less, m.until = float64(lasting), true, min(lasting, later)
	}
	return m
}

// attained sets x to the queue of a job that has attained so much, which grows by rate.
func (m *rank) attained(held, rate float64) {
	m.until = math.MaxInt64
	for _, l := range limits {
		if held < float64(l) {
			if t := math.Ceil((float64(l) - held) / rate); t < 1<<62 {
				m.until = m.from + time.Duration(t)
			}
			return
		}
		m.x++
		m.fell = m.from
		if rate > 0 {
			m.fell -= time.Duration((held - float64(l)) / rate)
		}
	}
}

// queues reports whether the order has queues of what jobs have attained.
func (o *ranking) queues() bool {
	return o.order == "las" || o.order == "las-2d" || o.order == "las-2d-prompt"
}

// byGPU reports whether the order counts time on each GPU.
func (o *ranking) byGPU() bool { return o.order == "srsf" || o.order == "gittins" }

// put sets the place in line of e.
func (o *ranking) put(v *sim.View, e *entry, m *rank) {
	e.key, e.next = m.x, 0
	switch {
	case o.queues():
		e.key++
		switch {
		case v.State(e.job) != sim.Running:
		case o.wakes && m.fell > 0 && m.fell == v.Ran(e.job):
			e.key += 0.25 // it falls now, so it goes behind those that wait in the queue
		default:
			e.key -= 0.5 // before them
			e.next = float64(v.Started(e.job))
		}
	case m.less:
		e.key -= float64(v.Ran(e.job))
	}
	if o.byGPU() {
		e.key *= float64(e.milli)
	}
}

// spares reports whether j, which runs, may not be stopped now.
func (o *ranking) spares(v *sim.View, j sim.Job) bool {
	return v.Pos(j) < o.first || v.Now()-v.Started(j) < o.min || v.Decided(j)
}
