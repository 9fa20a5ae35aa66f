package rltune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Rule is a base policy: it sorts the queue, stably, and takes the first job. Not safe for concurrent use.
type Rule struct {
	Name string
	key  func(j *Job) (key, then float64)
	rank []ranked
}

type ranked struct {
	key, then float64
	at        int32
}

func (a *ranked) compare(b *ranked) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.then, b.then))
}

func (r *Rule) rankOf(j *Job, at int32) ranked {
	x := ranked{at: at}
	x.key, x.then = r.key(j)
	return x
}

// rules are the base policies that run. Nine more are in the program's list and raise an error, because they ask for an
// attribute that no job has: smallest, largest, saf, laf, sexp, lexp, srf, lrf and unicep.
var rules = []Rule{
	{Name: "fcfs", key: func(j *Job) (float64, float64) { return float64(j.Submit), 0 }},
	{Name: "lcfs", key: func(j *Job) (float64, float64) { return -float64(j.Submit), 0 }},
	{Name: "sjf", key: func(j *Job) (float64, float64) { return float64(j.Known), float64(j.GPUs) }},
	{Name: "lpf", key: func(j *Job) (float64, float64) { return -float64(j.Known), 0 }},
	// The wait is what the trace records, not the time that the job has waited.
	{Name: "multifactor", key: func(j *Job) (float64, float64) {
		return -(1000*(float64(j.Wait)/43200) + 1000*(1-float64(j.GPUs)/160)), 0
	}},
	{Name: "f1", key: func(j *Job) (float64, float64) {
		return log10(j.Known)*float64(j.GPUs) + 870*log10(j.Submit), 0
	}},
	// The wait is −1 − submit, so that early jobs and long ones go first: the opposite of WFP3.
	{Name: "wfp3", key: func(j *Job) (float64, float64) {
		return -math.Pow(float64(-1-j.Submit)/float64(j.Known), 3) * float64(j.GPUs), 0
	}},
}

// log10 is the logarithm of a whole number of seconds, with 0.1 for 0.
func log10(s int64) float64 {
	if s <= 0 {
		return math.Log10(0.1)
	}
	return math.Log10(float64(s))
}

// Rules returns the names of the base policies.
func Rules() []string {
	var names []string
	for i := range rules {
		names = append(names, rules[i].Name)
	}
	return names
}

// NewRule returns the base policy called name.
func NewRule(name string) (*Rule, error) {
	for i := range rules {
		if rules[i].Name == name {
			r := rules[i]
			return &r, nil
		}
	}
	return nil, fmt.Errorf("base policy %q is unknown, want one of %s", name, strings.Join(Rules(), ", "))
}

// Sort sorts the queue of m.
func (r *Rule) Sort(m *Machine) {
	r.rank = r.rank[:0]
	for _, at := range m.queue {
		r.rank = append(r.rank, r.rankOf(&m.jobs[at], at))
	}
	slices.SortStableFunc(r.rank, func(a, b ranked) int { return a.compare(&b) })
	for i := range r.rank {
		m.queue[i] = r.rank[i].at
	}
}

// Choose implements Policy.
func (r *Rule) Choose(m *Machine) int {
	r.Sort(m)
	return 0
}
