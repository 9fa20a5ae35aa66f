package metrics

import (
	"time"

	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// systemLog integrates the number of jobs in the system, so that its mean over any job's life is a difference.
type systemLog struct {
	area float64   // job-seconds up to now
	at   []float64 // by job: area at its submit
}

func (l *systemLog) reset() { l.area = 0 }

func (l *systemLog) add(jobs int, span time.Duration) { l.area += float64(jobs) * span.Seconds() }

// begin marks the jobs that are in the system when the collector starts: how long they have been there is unknown.
func (l *systemLog) begin(v *sim.View) {
	for _, list := range [][]sim.Job{v.Running(), v.Waiting()} {
		for _, j := range list {
			l.set(j, -1)
		}
	}
}

func (l *systemLog) submit(j sim.Job) { l.set(j, l.area) }

func (l *systemLog) set(j sim.Job, area float64) {
	*grow.At(&l.at, j) = area
}

// fairness returns ρ of a job that has just finished, 0 if undefined.
func (l *systemLog) fairness(j sim.Job, k *Job, gpus float64) float64 {
	jct := (k.Finish - k.Submit).Seconds()
	if k.Work <= 0 || jct <= 0 || l.at[j] < 0 {
		return 0
	}
	others := (l.area - l.at[j]) / jct
	alone := k.Work.Seconds() * max(1, float64(k.GPUs)*float64(k.Milli)/1000*others/gpus)
	return jct / alone
}

// queueLog records for how long the queue had each length.
type queueLog struct{ ns []int64 } // nanoseconds by length

func (l *queueLog) reset() { clear(l.ns) }

func (l *queueLog) add(length int, span time.Duration) {
	*grow.At(&l.ns, length) += int64(span)
}

// quantiles returns quantiles weighted by time: P90 is the shortest length that was not exceeded for 90 % of the time.
func (l *queueLog) quantiles() Quantiles {
	total, sum := 0.0, 0.0
	for n, t := range l.ns {
		total += float64(t)
		sum += float64(n) * float64(t)
	}
	if total == 0 {
		return Quantiles{}
	}
	at := func(q float64) float64 {
		seen, last := 0.0, 0
		for n, t := range l.ns {
			if t > 0 {
				last = n
				if seen += float64(t); seen >= q*total {
					break
				}
			}
		}
		return float64(last)
	}
	return Quantiles{Mean: sum / total, P50: at(.5), P90: at(.9), P99: at(.99), Max: at(1)}
}

// nodeLog tracks from events alone which GPUs are in use, and integrates the share of the free GPUs that are on nodes
// in use.
type nodeLog struct {
	users   []int32         // by GPU: jobs on it
	used    []int32         // by node: GPUs in use
	held    [][]cluster.GPU // by job: the GPUs that a move or resize releases
	free    int             // GPUs not in use
	started int             // those of them on nodes in use
	area    float64         // share × seconds
	span    float64         // seconds in which at least one GPU was free
}

func (l *nodeLog) reset() { l.area, l.span = 0, 0 }

// begin records the jobs that are running when the collector starts.
func (l *nodeLog) begin(v *sim.View) {
	c := v.Cluster()
	if c.Pool() {
		return
	}
	if len(l.users) != c.GPUs() || len(l.used) != c.Nodes() {
		l.users, l.used = make([]int32, c.GPUs()), make([]int32, c.Nodes())
	}
	clear(l.users)
	clear(l.used)
	l.free, l.started = c.GPUs(), 0
	for _, j := range v.Running() {
		l.change(c, l.hold(j, v.GPUs(j)), 1)
	}
}

// hold records that j now has gpus.
func (l *nodeLog) hold(j sim.Job, gpus []cluster.GPU) []cluster.GPU {
	held := grow.At(&l.held, j)
	*held = append((*held)[:0], gpus...)
	return gpus
}

// observe processes the events of p. Decisions were made at the last point and hold for the span before p; events at
// p's own time hold from then on.
func (l *nodeLog) observe(c *cluster.Cluster, p *sim.Point, span time.Duration) {
	if c.Pool() {
		return
	}
	i := 0
	for ; i < len(p.Events) && p.Events[i].At < p.Now; i++ {
		l.take(c, &p.Events[i])
	}
	if l.free > 0 {
		s := span.Seconds()
		l.area += s * float64(l.started) / float64(l.free)
		l.span += s
	}
	for ; i < len(p.Events); i++ {
		l.take(c, &p.Events[i])
	}
}

func (l *nodeLog) take(c *cluster.Cluster, e *sim.Event) {
	switch e.Kind {
	case sim.Start:
		l.change(c, l.hold(e.Job, e.GPUs), 1)
	case sim.Migrate, sim.Resize:
		l.change(c, l.held[e.Job], -1)
		l.change(c, l.hold(e.Job, e.GPUs), 1)
	case sim.Finish, sim.Preempt, sim.Fail:
		l.change(c, e.GPUs, -1)
	}
}

func (l *nodeLog) change(c *cluster.Cluster, gpus []cluster.GPU, by int32) {
	for _, g := range gpus {
		if g < 0 {
			continue // cores only
		}
		was := l.users[g] > 0
		l.users[g] += by
		is := l.users[g] > 0
		if was == is {
			continue
		}
		n := c.NodeOf(g)
		from, to := c.NodeGPUs(n)
		idle := func() int { // GPUs not in use on the node, if the node is in use
			if l.used[n] == 0 {
				return 0
			}
			return int(to-from) - int(l.used[n])
		}
		l.started -= idle()
		if is {
			l.used[n]++
			l.free--
		} else {
			l.used[n]--
			l.free++
		}
		l.started += idle()
	}
}
