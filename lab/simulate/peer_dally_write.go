package simulate

import (
	"strconv"

	"clustergym/peer/dally"
)

// dallyLog is the log of a run that also counts preemptions and migrations. The event second-gang is a grant to a
// running job.
type dallyLog struct {
	*peerLog
	jobs            []dally.Job
	preempts, moves int
	stops, moved    []int // by job: preemptions and migrations; nil = not counted
}

// observe counts and writes one event.
func (l *dallyLog) observe(e *dally.Event) {
	switch e.Kind {
	case dally.Preempt:
		l.preempts++
		if l.stops != nil {
			l.stops[e.Job]++
		}
	case dally.Migrate:
		l.moves++
		if l.moved != nil {
			l.moved[e.Job]++
		}
	}
	l.event(e.At, e.Kind.String(), e.Kind == dally.Finish, l.jobs[e.Job].Name, e.GPUs)
}

// dallyColumns are what the machine tells of a job beyond jobColumns, named as in the recorded runs.
const dallyColumns = "queue_delay,gpu_time,comp_time,g_one,g_slot,g_machine,g_rack,g_cross,g_while_running"

// writeJobs writes the rows of a run of policy, with all digits of the machine's seconds.
func (r *dallyRun) writeJobs(policy string, found *dally.Report, log *dallyLog) error {
	return r.peerRun.writeJobs(policy, func(b []byte, i, at int) []byte {
		j := &r.all[i]
		b = r.appendJob(b, i, j.Name, j.GPUs, j.Arrival)
		if at < 0 {
			return r.table.appendRefused(b, peerDuration(j), dallyColumns)
		}
		f := &found.Jobs[at]
		jct := f.End - j.Arrival
		b = appendFloats(b, f.First, f.End, peerDuration(j), jct-f.GPUTime, jct)
		if b = append(b, ','); f.CompTime > 0 { // the machine's work, in whole blocks
			b = strconv.AppendFloat(b, jct/f.CompTime, 'f', -1, 64)
		}
		b = append(appendInts(b, log.stops[at], log.moved[at]), ","+stateFinished...)
		b = appendFloats(r.table.appendPolicy(b), f.Queue, f.GPUTime, f.CompTime)
		return append(appendInts(appendInts(b, f.Grants[:]...), f.WhileRunning), '\n')
	})
}

// peerDuration is the run time of a job on its GPUs, in seconds, if communication took no time.
func peerDuration(j *dally.Job) float64 { return j.Iterations * j.Time / float64(j.GPUs) }
