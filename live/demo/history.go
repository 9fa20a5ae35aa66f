package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/live"
	"clustergym/traces"
)

// mostlyStarted is the share of jobs whose start a history must have to say what ran at a moment.
const mostlyStarted = 0.9

// LeftOut counts what of a history has no place in a demo.
type LeftOut struct {
	NoGPUs, NoRunTime, Unfit int
	UnfitHours               float64 // GPU-hours of the unfit ones
	Hours                    float64 // of all jobs
}

// past is a history on a cluster: what New makes machines of.
type past struct {
	jobs     []traces.Job // that have a place, in order of submit; IDs differ
	nodes    []live.Node
	backfill string
	starts   bool          // the history says what ran and waited
	begin    time.Duration // when the demo begins
	end      time.Duration // the last submit
	leftOut  LeftOut
}

// newPast returns the jobs that have a place on the nodes. The demo begins when the job is submitted before which there
// is this share of all.
func newPast(all []traces.Job, nodes []live.Node, backfill string, share float64) (*past, error) {
	p := &past{nodes: nodes, backfill: backfill}
	empty := newMachine(nodes, backfill, 0)
	idle := make([]int, len(empty.nodes))
	for i, n := range empty.nodes {
		idle[i] = n.GPUs
	}
	types := spellings(nodes)
	seen, started := map[string]int{}, 0
	for i := range all {
		j := all[i]
		switch {
		case j.GPUs < 1:
			p.leftOut.NoGPUs++
			continue
		case j.Work <= 0:
			p.leftOut.NoRunTime++
			continue
		}
		j.GPUTypes = typesOf(j.GPUTypes, types)
		hours := j.Work.Hours() * float64(j.GPUs)
		p.leftOut.Hours += hours
		if empty.place(newJob(&j), idle) == nil {
			p.leftOut.Unfit++
			p.leftOut.UnfitHours += hours
			continue
		}
		if j.ID == "" {
			j.ID = fmt.Sprint("job-", i)
		}
		if seen[j.ID]++; seen[j.ID] > 1 {
			j.ID = fmt.Sprintf("%s~%d", j.ID, seen[j.ID])
			seen[j.ID]++
		}
		if j.Started {
			started++
		}
		p.jobs = append(p.jobs, j)
	}
	n := len(p.jobs)
	switch {
	case n == 0 && p.leftOut.Unfit > 0:
		return nil, fault.Mistakef("none of the %d jobs fits the nodes; want larger %s", p.leftOut.Unfit, fault.Key("nodes"))
	case n == 0 && p.leftOut.NoRunTime > 0:
		return nil, fault.Mistakef("no job has a run time, by which it would end; want a file that has run times")
	case n == 0:
		return nil, fault.Mistakef("no job has GPUs; want a file of jobs with GPUs")
	}
	slices.SortStableFunc(p.jobs, func(a, b traces.Job) int { return cmp.Compare(a.Submit, b.Submit) })
	p.starts = float64(started) >= mostlyStarted*float64(n)
	p.begin, p.end = p.jobs[min(n-1, int(share*float64(n)))].Submit, p.jobs[n-1].Submit
	if p.begin >= p.end {
		return nil, fault.Mistakef("no job is submitted after the demo's beginning (%s %v of %d jobs); want a longer history, "+
			"or a smaller share", fault.Key("begin"), share, n)
	}
	return p, nil
}

// spellings returns the types of nodes as they are written, by what they are in small letters.
func spellings(nodes []live.Node) map[string]string {
	types := map[string]string{}
	for i := range nodes {
		types[strings.ToLower(nodes[i].GPUType)] = nodes[i].GPUType
	}
	return types
}

// typesOf returns the types that a job asks for, as nodes write them. Nodes without a type take jobs of any.
func typesOf(asked []string, types map[string]string) (list []string) {
	for _, t := range asked {
		if written, there := types[strings.ToLower(t)]; there {
			list = append(list, written)
		}
	}
	if _, untyped := types[""]; len(list) == 0 && !untyped {
		return asked
	}
	return list
}

// newJob returns a job as the demo shows it before it comes.
func newJob(t *traces.Job) *job {
	j := &job{submit: t.Submit, work: t.Work, limit: noLimit,
		shape: fmt.Sprint(t.GPUs, " ", strings.Join(t.GPUTypes, " "))}
	j.Job = live.Job{Job: traces.Job{ID: t.ID, User: t.User, VC: t.VC, Group: t.Group, Name: t.Name, GPUs: t.GPUs,
		GPUMilli: 1000, GPUTypes: t.GPUTypes, CPUMilli: t.CPUMilli, MemBytes: t.MemBytes}}
	if t.Estimate > 0 && !t.Assumed {
		j.Estimate, j.limit = t.Estimate, t.Estimate
	}
	return j
}

// machine returns the cluster at the demo's beginning, the jobs that had ended by then, and how many of those that ran
// by the history found no room, and wait.
func (p *past) machine() (m *machine, ended []traces.Job, unseated int) {
	if !p.starts {
		m = newMachine(p.nodes, p.backfill, 0)
		for i := range p.jobs {
			m.future = append(m.future, newJob(&p.jobs[i]))
		}
		all := m.future
		m.advance(p.begin)
		for i, j := range all {
			if j.State == live.Ended {
				ended = append(ended, p.jobs[i])
			}
		}
		return m, ended, 0
	}
	m = newMachine(p.nodes, p.backfill, p.begin)
	var run []*job
	for i := range p.jobs {
		t := &p.jobs[i]
		j, start := newJob(t), t.Submit+t.Waited
		switch {
		case t.Submit > p.begin:
			m.future = append(m.future, j)
		case start+t.Work <= p.begin:
			ended = append(ended, *t)
		case start <= p.begin:
			j.start, j.seq = start, m.come
			m.come++
			m.jobs[j.ID] = j
			run = append(run, j)
		default:
			m.wait(j)
		}
	}
	slices.SortStableFunc(run, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(a.start, b.start))
	})
	for _, j := range run {
		if !m.seat(j) {
			unseated++
			m.wait(j)
		}
	}
	m.schedule()
	return m, ended, unseated
}

// seat lets a job run since its start, wherever there is room. It reports whether there is any.
func (m *machine) seat(j *job) bool {
	idle := make([]int, len(m.nodes))
	var room []place
	for i, n := range m.nodes {
		if idle[i] = n.idle; n.idle > 0 && fits(j, n) {
			room = append(room, place{n, n.idle})
		}
	}
	places := m.place(j, idle)
	if places == nil {
		places = anyhow(room, j.GPUs)
	}
	if places != nil {
		m.run(j, j.start, places)
	}
	return places != nil
}
