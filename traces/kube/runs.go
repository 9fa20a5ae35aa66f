package kube

import (
	"slices"
	"time"
)

// Run is a time in which a job had its nodes.
type Run struct{ Start, End time.Time }

// slack is how much later than its last container's end a job may be found to have ended.
const slack = time.Minute

// runHistory is the history of one object's runs, from its states. A recording of a watch has many states, a list one.
type runHistory struct {
	starts, stops []time.Time
	deleted       bool // it was seen to be deleted
}

func (p *runHistory) add(list *[]time.Time, at time.Time) {
	if at.IsZero() {
		return
	}
	if i, there := slices.BinarySearchFunc(*list, at, time.Time.Compare); !there {
		*list = slices.Insert(*list, i, at)
	}
}

// job notes when a state of a Job says that it began, or was suspended.
func (p *runHistory) job(j *Job) {
	p.add(&p.starts, j.Status.StartTime)
	if c := Holds(j.Status.Conditions, "Suspended"); c != nil {
		p.add(&p.stops, c.LastTransitionTime)
	}
}

// workload notes when a state of a Workload says that it was admitted, or evicted.
func (p *runHistory) workload(w *Workload) {
	for _, c := range w.Status.Conditions {
		switch {
		case c.Type == "Admitted" && c.Status == "True":
			p.add(&p.starts, c.LastTransitionTime)
		case c.Type == "Evicted" && c.Status == "True", c.Type == "Admitted" && c.Status == "False":
			p.add(&p.stops, c.LastTransitionTime)
		}
	}
}

// runs returns what lies between starts and stops, and finish as the last stop. unknown says that a start followed
// another one without a stop between them, so that the length of the first run is unknown.
func (p *runHistory) runs(finish time.Time) (all []Run, unknown bool) {
	if p == nil {
		return nil, false
	}
	for i, s := range p.starts {
		next := finish
		if i+1 < len(p.starts) {
			next = p.starts[i+1]
		}
		k, _ := slices.BinarySearchFunc(p.stops, s.Add(1), time.Time.Compare)
		switch {
		case k < len(p.stops) && (next.IsZero() || !p.stops[k].After(next)):
			all = append(all, Run{s, p.stops[k]})
		case i+1 < len(p.starts):
			unknown = true
		case finish.After(s):
			all = append(all, Run{s, finish})
		}
	}
	return all, unknown
}

// Ended returns when the pod let go its node: when its last container ended or, of one whose containers do not tell,
// when it was disrupted, found not to be ready any more, or deleted. Zero says that it has not, or does not tell.
func (p *Pod) Ended() time.Time {
	all := p.Status.ContainerStatuses
	running := slices.ContainsFunc(all, func(c ContainerStatus) bool { return c.State.Terminated == nil })
	if at := p.Finished(); !at.IsZero() && (p.Over() || !running) {
		return at
	}
	if c := Holds(p.Status.Conditions, "DisruptionTarget"); c != nil && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime
	}
	if p.Over() {
		for _, c := range p.Status.Conditions {
			if c.Type == "Ready" && c.Status == "False" && !c.LastTransitionTime.IsZero() {
				return c.LastTransitionTime
			}
		}
	}
	return p.DeletionTimestamp
}

// LastRun returns the last time in which pods of one job, which ended at finish, had nodes; width is how many of them
// run at once. It has no times if there was none.
func LastRun(pods []*Pod, width int, finish time.Time) Run {
	all, _ := podRuns(pods, width, finish, &runHistory{}, func(*Pod) bool { return false })
	if len(all) == 0 {
		return Run{}
	}
	return all[len(all)-1]
}

// podRuns returns the times in which pods of one job had nodes, in order and disjoint. A pod without a recorded end ran
// until the job was stopped, or until finish if it is one of the last and the job has not begun again since; otherwise
// its end is unknown, and it is left out and counted. gone reports that it was deleted.
func podRuns(pods []*Pod, width int, finish time.Time, job *runHistory, gone func(*Pod) bool) (all []Run, unknown int) {
	ran := make([]*Pod, 0, len(pods))
	for _, p := range pods {
		if !p.Started().IsZero() && p.Spec.NodeName != "" {
			ran = append(ran, p)
		}
	}
	slices.SortFunc(ran, func(a, b *Pod) int { return a.Started().Compare(b.Started()) })
	for i, p := range ran {
		end := p.Ended()
		if end.IsZero() {
			var known bool
			if end, known = job.stopped(p.Started(), finish); !known && (gone(p) || width > 0 && i+width < len(ran)) {
				end = time.Time{}
			}
			if end.IsZero() && !finish.IsZero() {
				unknown++
				continue
			}
		}
		if end.After(p.Started()) {
			all = append(all, Run{p.Started(), end})
		}
	}
	return union(all), unknown
}

// stopped returns when a run that began at a time was stopped: finish if there was neither a stop nor another start in
// between, and zero if that is unknown. known reports that there was a stop.
func (p *runHistory) stopped(at, finish time.Time) (end time.Time, known bool) {
	k, _ := slices.BinarySearchFunc(p.stops, at.Add(1), time.Time.Compare)
	again, _ := slices.BinarySearchFunc(p.starts, at.Add(slack), time.Time.Compare)
	switch {
	case k < len(p.stops) && (again == len(p.starts) || !p.stops[k].After(p.starts[again])) &&
		(finish.IsZero() || p.stops[k].Before(finish)):
		return p.stops[k], true
	case again < len(p.starts) && (finish.IsZero() || p.starts[again].Before(finish)):
		return time.Time{}, false
	}
	return finish, false
}

// with returns the starts and stops of both.
func (p *runHistory) with(o *runHistory) *runHistory {
	both := &runHistory{}
	for _, x := range []*runHistory{p, o} {
		if x == nil {
			continue
		}
		for _, t := range x.starts {
			both.add(&both.starts, t)
		}
		for _, t := range x.stops {
			both.add(&both.stops, t)
		}
	}
	return both
}

// union joins runs that meet or overlap.
func union(all []Run) []Run {
	slices.SortFunc(all, func(a, b Run) int { return a.Start.Compare(b.Start) })
	n := 0
	for _, r := range all {
		if n > 0 && !r.Start.After(all[n-1].End) {
			if r.End.After(all[n-1].End) {
				all[n-1].End = r.End
			}
			continue
		}
		all[n] = r
		n++
	}
	return all[:n]
}

// fill adds the runs of others that meet none of all: what is known less exactly, of times of which nothing else is
// known.
func fill(all, others []Run) []Run {
	n := len(all)
	for _, o := range others {
		if !slices.ContainsFunc(all[:n], func(r Run) bool { return o.Start.Before(r.End) && r.Start.Before(o.End) }) {
			all = append(all, o)
		}
	}
	return union(all)
}

// settle makes the last run end when the job was found to have ended, if that is only a little later or earlier than
// its last pod did.
func settle(all []Run, finish time.Time) {
	if n := len(all); n > 0 && !finish.IsZero() {
		if last := &all[n-1]; finish.Sub(last.End).Abs() <= slack && finish.After(last.Start) {
			last.End = finish
		}
	}
}

// lasted returns how long all runs were.
func lasted(all []Run) (d time.Duration) {
	for _, r := range all {
		d += r.End.Sub(r.Start)
	}
	return d
}
