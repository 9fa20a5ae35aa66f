package simulate

import (
	"bufio"
	"io"
	"strconv"

	"clustergym/env/peer/dally"
)

// peerLog counts the events of a peer's machine. If w is not nil, it also writes them like eventLog. The event second-gang is
// a grant to a running job.
type peerLog struct {
	jobs               []dally.Job
	w                  *eventLog
	n, preempts, moves int
	err                error
}

// observe counts and writes one event.
func (l *peerLog) observe(e *dally.Event) {
	l.n++
	switch e.Kind {
	case dally.Preempt:
		l.preempts++
	case dally.Migrate:
		l.moves++
	}
	if l.w == nil || l.err != nil {
		return
	}
	b := append(l.w.row[:0], `{"t_s":`...)
	b = strconv.AppendFloat(b, e.At, 'f', -1, 64)
	b = append(b, `,"event":"`...)
	b = append(b, e.Kind.String()...)
	b = append(b, `","job":`...)
	b = appendJSON(b, l.jobs[e.Job].Name)
	b = append(b, `,"gpus":[`...)
	for k, g := range e.GPUs {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(g), 10)
	}
	l.w.row = append(b, "]}\n"...)
	_, l.err = l.w.w.Write(l.w.row)
}

// writePeerJobs writes a CSV row for each job, with all digits. The columns are named as in the recorded runs.
func writePeerJobs(w io.Writer, jobs []dally.Job, found *dally.Report) error {
	b := bufio.NewWriterSize(w, 1<<16)
	b.WriteString("job,first_start,end,queue_delay,gpu_time,comp_time,g_one,g_slot,g_machine,g_rack,g_cross,g_while_running\n") //nolint:errcheck // Flush returns the error
	var row []byte
	for i := range jobs {
		f := &found.Jobs[i]
		row = append(row[:0], jobs[i].Name...)
		for _, v := range []float64{f.First, f.End, f.Queue, f.GPUTime, f.CompTime} {
			row = strconv.AppendFloat(append(row, ','), v, 'f', -1, 64)
		}
		for _, n := range f.Grants {
			row = strconv.AppendInt(append(row, ','), int64(n), 10)
		}
		row = strconv.AppendInt(append(row, ','), int64(f.WhileRunning), 10)
		b.Write(append(row, '\n')) //nolint:errcheck // Flush returns the error
	}
	return b.Flush()
}
