package steer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/live"
)

// refusal is what the cluster has refused for a job.
type refusal struct {
	op    live.Op
	tries int
	until time.Time // when it is tried again
}

// The first and the last time after which an action is tried again that the cluster has refused.
const (
	firstRefusal = time.Minute
	lastRefusal  = time.Hour
)

// refuse notes that the cluster has refused an action, and says what becomes of its job.
func (l *loop) refuse(a live.Action) string {
	r := l.refused[a.Job]
	if r == nil {
		r = new(refusal)
		l.refused[a.Job] = r
	}
	wait := firstRefusal << min(r.tries, 10)
	wait = min(wait, lastRefusal)
	r.op, r.tries, r.until = a.Op, r.tries+1, l.Now().Add(wait)
	return fmt.Sprintf("the job is left to the cluster, and tried again in %v", wait)
}

// taken notes that the cluster has taken an action. That a job can be held says nothing of its start.
func (l *loop) taken(a live.Action) {
	if r := l.refused[a.Job]; r != nil && (r.op == a.Op || a.Op == live.StartJob) {
		delete(l.refused, a.Job)
	}
}

// spared reports whether a job is left to the cluster for now, because it has refused something.
func (l *loop) spared(id string) bool {
	r := l.refused[id]
	return r != nil && l.Now().Before(r.until)
}

// leftOver counts the waiting jobs that are left to the cluster.
func (l *loop) leftOver(s *live.Snapshot) (n int64) {
	for i := range s.Jobs {
		if j := &s.Jobs[i]; j.State == live.Waiting && (l.unfit[j.ID] != "" || l.spared(j.ID)) {
			n++
		}
	}
	return n
}

// fitting finds the waiting jobs about which the policy cannot be asked, and says of each once why.
func (l *loop) fitting(s *live.Snapshot) {
	m := machines{of: map[string]int{}}
	for i := range s.Nodes {
		m.all += s.Nodes[i].GPUs
		m.of[s.Nodes[i].GPUType] += s.Nodes[i].GPUs
	}
	var list []string
	more := 0
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.State != live.Waiting || j.GPUs < 1 || j.Blocked != "" {
			continue
		}
		was, why := l.unfit[j.ID], l.fits(&m, j)
		switch {
		case why == "" && was != unseen:
			delete(l.unfit, j.ID)
		case was != "":
		case len(list) < 5:
			l.unfit[j.ID], list = why, append(list, j.ID+" "+why)
		default:
			l.unfit[j.ID] = why
			more++
		}
	}
	if len(list) == 0 {
		return
	}
	text := "left to the cluster: " + strings.Join(list, "; ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	l.Note(text)
	l.remark(text)
}

// unseen is why a job is the cluster's own affair that the environment has left out.
const unseen = "is not seen by the policy"

// machines is how many GPUs a cluster has.
type machines struct {
	all int
	of  map[string]int // by type
}

// fits says why the policy cannot be asked about a waiting job; "" = it can.
func (l *loop) fits(m *machines, j *live.Job) string {
	typed := m.all
	if len(j.GPUTypes) > 0 {
		typed = 0
		for i, t := range j.GPUTypes {
			if !slices.Contains(j.GPUTypes[:i], t) {
				typed += m.of[t]
			}
		}
	}
	switch most := l.policy.Largest(); {
	case j.GPUs > m.all:
		return fmt.Sprintf("wants %d GPUs, and the cluster has %d", j.GPUs, m.all)
	case typed == 0:
		return fmt.Sprintf("wants GPUs of type %s, and the cluster has %s", strings.Join(j.GPUTypes, " or "), m.kinds())
	case j.GPUs > typed:
		return fmt.Sprintf("wants %d GPUs of type %s, and the cluster has %d", j.GPUs, strings.Join(j.GPUTypes, " or "),
			typed)
	case most > 0 && j.GPUs > most:
		return fmt.Sprintf("wants %d GPUs, and %s knows jobs of up to %d", j.GPUs, l.policy.Name, most)
	}
	return ""
}

// kinds names the types of a cluster's GPUs.
func (m *machines) kinds() string {
	var list []string
	for t, n := range m.of {
		if n > 0 && t == "" {
			t = "some without a type"
		}
		if n > 0 {
			list = append(list, t)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
