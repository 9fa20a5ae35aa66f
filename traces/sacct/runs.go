package sacct

import (
	"cmp"
	"math"
	"slices"
	"time"

	"clustergym/traces"
)

// after is what a state says of the runs that follow.
type after uint8

const (
	unclear     after = iota // no state, or one that is not known
	completed                // none
	broken                   // none, except if somebody requeues the job
	interrupted              // perhaps one: the nodes failed, or others needed them
	requeued                 // one
)

// How long after the end of a run the next one of the same job is submitted at the latest; what comes later under its
// id is another job, because Slurm's ids have begun again. Slurm submits a job that it requeues at once, and one that
// has ended can be requeued by hand as long as the controller keeps it, which is minutes.
var within = [...]time.Duration{unclear: day, completed: 0, broken: day, interrupted: 31 * day, requeued: 366 * day}

// stale is how long the record of a job that had not ended may be older than the next of its job.
const stale = 31 * day

const day = 24 * time.Hour

// distinct returns the records without those of a run that another record describes too, and how many those are. A run
// has its component, submit and start. Of equal ones the one that has ended stays, and of several the one that ended
// last.
func distinct(records []record) (kept []record, again int) {
	if len(records) == 1 {
		return records, 0
	}
	slices.SortStableFunc(records, func(a, b record) int {
		// -1 last
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.job.Submit, b.job.Submit),
			cmp.Compare(uint64(a.start), uint64(b.start)),
			cmp.Compare(a.ends,
				b.ends), -cmp.Compare(a.end, b.end), -cmp.Compare(a.after, b.after), -cmp.Compare(a.job.Work, b.job.Work))
	})
	for _, r := range records {
		if n := len(kept); n > 0 && kept[n-1].same(&r) {
			again++
			continue
		}
		kept = append(kept, r)
	}
	return kept, again
}

// same reports whether o, which is behind r in the order of distinct, describes the same run.
func (r *record) same(o *record) bool {
	switch {
	case r.component != o.component || r.job.Submit != o.job.Submit:
		return false
	case r.start == o.start && r.start >= 0:
		return true
	case o.start >= 0:
		return false
	case r.start >= 0 && o.ends == waiting: // o was written before the job started, or waits to start once more
		return r.after != requeued && r.after != interrupted
	case r.start >= 0: // o is of a dump without Start
		return o.ends == running || r.job.Work == o.job.Work
	}
	// Without Start, runs of one submit that ended in different ways or after different times are not the same.
	return o.ends != ended || r.after == o.after && r.job.Work == o.job.Work && r.end == o.end
}

// apart returns the records of each of the jobs that had one id, one after the other, each in the order of its runs.
func apart(records []record) (jobs [][]record) {
	slices.SortStableFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.job.Submit, b.job.Submit), cmp.Compare(uint64(a.start), uint64(b.start)))
	})
	from := 0
	for i := 1; i < len(records); i++ {
		before := &records[i-1]
		for k := i - 1; k >= from && k >= i-64; k-- { // the last of the same component
			if records[k].component == records[i].component {
				before = &records[k]
				break
			}
		}
		if !before.goesOn(&records[i]) {
			jobs, from = append(jobs, records[from:i:i]), i
		}
	}
	return append(jobs, records[from:])
}

// goesOn reports whether next is another run of the job of r, and not another job of the same id.
func (r *record) goesOn(next *record) bool {
	gap := next.job.Submit - r.over()
	switch {
	case next.job.Submit == r.job.Submit:
		return true
	case r.ends != ended && r.after == unclear: // and was not cancelled before it started
		return gap <= stale
	case gap <= 0:
		return true
	}
	return gap <= within[r.after] && (r.after != broken || r.job.Name == next.job.Name && r.job.GPUs == next.job.GPUs)
}

// over returns the end of a run, or the last time that its records mention.
func (r *record) over() time.Duration {
	began := max(r.start, r.job.Submit)
	if r.end >= 0 || r.job.Work > math.MaxInt64-began {
		return max(r.end, began)
	}
	return began + r.job.Work
}

// whole returns the job of all its records, in order, and why it is left out, "" if it is not. One that had not ended
// may be taken all the same: its Open says so. The job's GPUs or Work are out of range if the records add up to too
// much.
func whole(records []record) (j traces.Job, why string) {
	var (
		work time.Duration
		seen []string // components of the current run
		last record   // the current run
		tops time.Duration
		done []time.Duration // at the ends of runs but the last
	)
	for i, r := range records {
		if i == 0 || slices.Contains(seen, r.component) {
			if work, tops, seen = add(work, tops), 0, seen[:0]; work > 0 && (len(done) == 0 || done[len(done)-1] < work) {
				done = append(done, work)
			}
			last = r
		} else {
			last.join(&r)
		}
		seen = append(seen, r.component)
		tops = max(tops, r.job.Work)
	}
	work = add(work, tops)
	j = last.job
	j.Submit, j.Eligible, j.Work = records[0].job.Submit, records[0].job.Eligible, work
	j.Open = last.opened()
	if n := len(done); n > 0 && done[n-1] == work { // the last run has done nothing yet
		done = done[:n-1]
	}
	if len(done) > 0 {
		j.Stops = done
	}
	if i := slices.IndexFunc(records, func(r record) bool { return r.start >= 0 }); i >= 0 {
		j.Start(records[i].start)
	}
	switch {
	case last.ends == running || last.ends == waiting && work > 0:
		return j, NotEnded
	case last.ends == waiting && work == 0:
		return j, NeverStarted
	case work == 0:
		return j, NoRunTime
	}
	return j, ""
}

// opened returns where a job is whose last run is r.
func (r *record) opened() traces.Open {
	switch {
	case !r.open:
		return traces.Ended
	case r.ends == running && r.after != requeued:
		return traces.StillRunning
	case r.ends == ended && r.after != requeued:
		return traces.Ended
	}
	return traces.StillWaiting // also behind a run after which it was sent back to the queue
}

// add returns the sum of two times of 0 or more, -1 if it is out of range or one of them is.
func add(a, b time.Duration) time.Duration {
	if a < 0 || b < 0 || a > math.MaxInt64-b {
		return -1
	}
	return a + b
}

// nodes adds the nodes of another component of the same run. Their number says how GPUs are spread over nodes, so nodes
// without GPUs do not count next to others, and it is 0 if components have different numbers of GPUs on each.
func (r *record) nodes(o *record) {
	a, b := &r.job, &o.job
	switch {
	case b.Hosts != "" && a.Hosts != "":
		a.Hosts += "," + b.Hosts
	case b.Hosts != "":
		a.Hosts = b.Hosts
	}
	switch {
	case a.GPUs > 0 && b.GPUs == 0:
	case a.GPUs == 0 && b.GPUs > 0:
		a.Nodes = b.Nodes
	case a.Nodes == 0 || b.Nodes == 0 || a.GPUs*b.Nodes != b.GPUs*a.Nodes:
		a.Nodes = 0
	default:
		a.Nodes += b.Nodes
	}
}

// join adds another component of the same run.
func (r *record) join(o *record) {
	r.nodes(o)
	r.job.GPUs += o.job.GPUs
	r.job.CPUMilli += o.job.CPUMilli
	r.job.MemBytes += o.job.MemBytes
	r.open = r.open || o.open
	r.job.Estimate = max(r.job.Estimate, o.job.Estimate)
	r.ends = max(r.ends, o.ends)
	for _, t := range o.job.GPUTypes {
		if !slices.Contains(r.job.GPUTypes, t) {
			r.job.GPUTypes = append(slices.Clip(r.job.GPUTypes), t)
		}
	}
	if o.component < r.component { // the first component stands for the job
		r.component, r.job.Status, r.job.Name, r.job.Group = o.component, o.job.Status, o.job.Name, o.job.Group
	}
}
