package rlscheduler

import "math"

// Key ranks a job by what never changes: its request, its processors and its submit. The least is the first.
type Key interface {
	Key(j *Job) float64
}

// Traits is how many traits a Linear key weighs.
const Traits = 8

// Linear is a key like F1 to F4 of Carastan-Santos and de Camargo ("Obtaining dynamic scheduling policies with
// simulation and machine learning", SC 2017), with more terms: a weighted sum of traits. With r the natural logarithm
// of the request in seconds, at least 10, n the processors and l the natural logarithm of n, the traits are r, l,
// n/256, r·n/256, r·l, submit/12 h, r²/10, and 1 for jobs of more than 128 processors.
type Linear [Traits]float64

// Key implements Key.
func (w *Linear) Key(j *Job) float64 {
	r, n := math.Log(float64(max(j.Request, 10))), float64(j.Procs)
	l := math.Log(n)
	k := w[0]*r + w[1]*l + w[2]*n/256 + w[3]*r*n/256 + w[4]*r*l + w[5]*float64(j.Submit)/43200 + w[6]*r*r/10
	if j.Procs > 128 {
		k += w[7]
	}
	return k
}

// Key implements Key, for rules that do not look at the wait.
func (r *Rule) Key(j *Job) float64 { return r.key(j, 0) }

// Keyed is a policy that chooses the waiting job of the least key; ties go to the job that arrived first. Not safe for
// concurrent use.
type Keyed struct {
	key  Key
	keys []float64 // by place in the list of jobs
}

// NewKeyed returns the policy of a key.
func NewKeyed(key Key) *Keyed { return &Keyed{key: key} }

// Reset computes the keys of a machine's jobs. It must be called after the machine's Reset.
func (k *Keyed) Reset(m *Machine) {
	k.keys = k.keys[:0]
	for i := range m.jobs {
		k.keys = append(k.keys, k.key.Key(&m.jobs[i]))
	}
}

// Choose implements Policy.
func (k *Keyed) Choose(m *Machine) int {
	first := m.waiting[0]
	best, at, least := 0, first, k.keys[first]
	for i, w := range m.waiting {
		if x := k.keys[w]; x < least || x == least && w < at {
			best, at, least = i, w, x
		}
	}
	return best
}

// PlayKeyed plays jobs on m by a key, and returns the mean bounded slowdown.
func PlayKeyed(m *Machine, k *Keyed, jobs []Job) float64 {
	m.Reset(jobs)
	k.Reset(m)
	return Play(m, k)
}
