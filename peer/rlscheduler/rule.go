package rlscheduler

import (
	"fmt"
	"math"
	"strings"
)

// Rule is a policy that chooses the job of the least key; ties go to the job that arrived first. Not safe for
// concurrent use.
type Rule struct {
	Name  string
	key   func(j *Job, wait float64) float64
	then  func(j *Job) float64 // of equal keys; nil = none
	ranks []rank               // scratch
}

// log10 is that of max(x, 0.1), as in the authors' program.
func log10(x float64) float64 { return math.Log10(max(x, 0.1)) }

// submitted breaks ties by submit.
func submitted(j *Job) float64 { return float64(j.Submit) }

// rules are those of the published tables, and others of the same kind.
var rules = []Rule{
	{Name: "fcfs", key: func(j *Job, _ float64) float64 { return float64(j.Submit) }},
	{Name: "sjf", key: func(j *Job, _ float64) float64 { return float64(j.Request) }, then: submitted},
	{Name: "smallest", key: func(j *Job, _ float64) float64 { return float64(j.Procs) }, then: submitted},
	{Name: "smallest-area", key: func(j *Job, _ float64) float64 { return float64(j.Request) * float64(j.Procs) },
		then: submitted},
	{Name: "f1", key: func(j *Job, _ float64) float64 {
		return math.Log10(float64(j.Request))*float64(j.Procs) + 870*log10(float64(j.Submit))
	}},
	{Name: "f2", key: func(j *Job, _ float64) float64 {
		return math.Sqrt(float64(j.Request))*float64(j.Procs) + 25600*log10(float64(j.Submit))
	}},
	{Name: "f3", key: func(j *Job, _ float64) float64 {
		return float64(j.Request)*float64(j.Procs) + 6860000*log10(float64(j.Submit))
	}},
	{Name: "f4", key: func(j *Job, _ float64) float64 {
		return float64(j.Request)*math.Sqrt(float64(j.Procs)) + 530000*log10(float64(j.Submit))
	}},
	{Name: "wfp3", key: func(j *Job, wait float64) float64 {
		return -math.Pow(wait/float64(j.Request), 3) * float64(j.Procs)
	}},
	{Name: "unicep", key: func(j *Job, wait float64) float64 {
		return -(wait + 1e-15) / (math.Log2(float64(j.Procs)+1e-15) * float64(j.Request))
	}},
	{Name: "wfp3-rlscheduler", key: func(j *Job, _ float64) float64 {
		return -math.Pow(float64(-1-j.Submit)/float64(j.Request), 3) * float64(j.Procs)
	}},
	{Name: "unicep-rlscheduler", key: func(j *Job, _ float64) float64 {
		return -(float64(-1-j.Submit) + 1e-15) / (math.Log2(float64(j.Procs)+1e-15) * float64(j.Request))
	}},
}

// Rules returns the names of the rules.
func Rules() []string {
	var names []string
	for i := range rules {
		names = append(names, rules[i].Name)
	}
	return names
}

// NewRule returns the rule called name.
func NewRule(name string) (*Rule, error) {
	for i := range rules {
		if rules[i].Name == name {
			r := rules[i]
			return &r, nil
		}
	}
	return nil, fmt.Errorf("rule %q is unknown, want one of %s", name, strings.Join(Rules(), ", "))
}

// Choose implements Policy. The authors' program sorts the queue, stably, and takes the first. Their order remains,
// which decides between jobs of one second when others are back-filled; without back-filling it decides nothing.
func (r *Rule) Choose(m *Machine) int {
	if m.backfill {
		r.sort(m)
		return 0
	}
	best := 0
	least := r.rank(m, m.waiting[0])
	for i, at := range m.waiting[1:] {
		if k := r.rank(m, at); k.less(&least) || k.equal(&least) && at < m.waiting[best] {
			best, least = i+1, k
		}
	}
	return best
}

// rank is the key of a waiting job and what breaks ties.
type rank struct{ key, then float64 }

func (a *rank) less(b *rank) bool  { return a.key < b.key || a.key == b.key && a.then < b.then }
func (a *rank) equal(b *rank) bool { return a.key == b.key && a.then == b.then }

func (r *Rule) rank(m *Machine, at int32) rank {
	j := &m.jobs[at]
	k := rank{key: r.key(j, float64(m.now-j.Submit))}
	if r.then != nil {
		k.then = r.then(j)
	}
	return k
}

// sort sorts the queue by insertion.
func (r *Rule) sort(m *Machine) {
	r.ranks = r.ranks[:0]
	for _, at := range m.waiting {
		k := r.rank(m, at)
		r.ranks = append(r.ranks, k)
		i := len(r.ranks) - 1
		for ; i > 0 && k.less(&r.ranks[i-1]); i-- {
			r.ranks[i], m.waiting[i] = r.ranks[i-1], m.waiting[i-1]
		}
		r.ranks[i], m.waiting[i] = k, at
	}
	m.mixed = true
}
