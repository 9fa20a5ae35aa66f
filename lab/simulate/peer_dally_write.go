package simulate

import (
	"strconv"

	"clustergym/peer/dally"
)

// dallyLog is the log of a run that also counts preemptions and migrations. The event second-gang is a grant to a running job.
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
	t, refused := r.table, r.refused
	t.policy = policy
	var b []byte
	for i := 0; i <= len(r.jobs); i++ {
		b = b[:0]
		for ; len(refused) > 0 && refused[0].before == i; refused = refused[1:] {
			j := &refused[0].job
			b = appendPeerJob(b, j.Name, refused[0].who, j.GPUs, j.Arrival)
			b = t.appendRefused(b, peerDuration(j), dallyColumns)
		}
		if i < len(r.jobs) {
			j, f := &r.jobs[i], &found.Jobs[i]
			jct := f.End - j.Arrival
			var who [2]string
			if r.who != nil {
				who = r.who[i]
			}
			b = appendFloats(appendPeerJob(b, j.Name, who, j.GPUs, j.Arrival), f.First, f.End, peerDuration(j), jct-f.GPUTime, jct)
			if b = append(b, ','); f.CompTime > 0 { // the machine's work, in whole blocks
				b = strconv.AppendFloat(b, jct/f.CompTime, 'f', -1, 64)
			}
			b = append(appendInts(b, log.stops[i], log.moved[i]), ","+stateFinished...)
			b = appendFloats(t.appendPolicy(b), f.Queue, f.GPUTime, f.CompTime)
			b = append(appendInts(appendInts(b, f.Grants[:]...), f.WhileRunning), '\n')
		}
		if _, err := t.w.Write(b); err != nil {
			return err
		}
	}
	return t.w.Flush()
}

// peerDuration is the run time of a job on its GPUs, in seconds, if communication took no time.
func peerDuration(j *dally.Job) float64 { return j.Iterations * j.Time / float64(j.GPUs) }
