package profile

import (
	"cmp"
	"math"
	"time"

	"clustergym/traces"
)

type profileKey struct {
	m         *model
	reference string
	over      *traces.Profile // the profile that the job had before
}

// profile returns nil if there is none. What the table does not know is taken from over.
func (t *Table) profile(m *model, gpu string, over *traces.Profile) *traces.Profile {
	if m == nil || len(m.on) > 0 && m.find(gpu) == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := profileKey{m, gpu, over}
	if from, ok := t.given[over]; ok && from.m == m && from.reference == gpu {
		return over // the table's own
	}
	if p := t.profiles[key]; p != nil {
		return p
	}
	p := &traces.Profile{Name: m.name, GradientBytes: m.gradient, MemBytes: m.mem, Skewed: m.skewed}
	if o := m.find(gpu); o != nil && len(o.curve) > 0 {
		c := o.curve[0]
		p.Compute = duration(float64(c.GPUs) / c.Throughput)
		if len(o.curve) > 1 {
			p.Scaling = o.curve
		}
		if len(t.types) > 1 {
			p.Speeds = map[string]float64{}
			for _, other := range m.on {
				if s := ratio(other, o); s > 0 {
					p.Speeds[other.gpu] = s
				}
			}
		}
	}
	if over != nil {
		fill(p, over)
	}
	t.profiles[key], t.given[p] = p, key
	return p
}

// fill copies from q what p does not know.
func fill(p, q *traces.Profile) {
	if p.GradientBytes == 0 {
		p.GradientBytes, p.Skewed = q.GradientBytes, q.Skewed
	}
	p.Compute, p.MemBytes = cmp.Or(p.Compute, q.Compute), cmp.Or(p.MemBytes, q.MemBytes)
	if p.Speeds == nil {
		p.Speeds = q.Speeds
	}
	if p.Scaling == nil {
		p.Scaling = q.Scaling
	}
}

// ratio returns the speed of a relative to that of b on the smallest number of GPUs measured for both, or 0 if there is
// none.
func ratio(a, b *measured) float64 {
	for _, c := range a.curve {
		if i, found := b.at(c.GPUs); found {
			return c.Throughput / b.curve[i].Throughput
		}
	}
	return 0
}

func (m *model) work(gpus int, iterations int64, gpu string) (time.Duration, bool) {
	if iterations <= 0 {
		iterations = m.iterations
	}
	rate, ok := m.capped(gpu, gpus)
	if !ok || iterations <= 0 {
		return 0, false
	}
	d := duration(float64(iterations) / rate)
	return d, d < math.MaxInt64
}

// duration rounds to nanoseconds. The result is at least 1 ns and at most what a time.Duration holds.
func duration(seconds float64) time.Duration {
	ns := math.Round(seconds * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(1, ns))
}

// Assign gives a job what the table knows about its model: Profile, and Work from Iterations and Batch if it is 0. If
// its deadline is a multiple of its run time (SLO), Assign sets Deadline with Work. Fields of the job's own profile
// stay if the table does not know them. If Batch is 0, the batch size is the one in the model's name; else, if the
// table knows how long a training is, the one with the shortest training on these GPUs; else the smallest that was
// measured there. known is false if the table does not have the model or Work is still 0.
func (t *Table) Assign(j *traces.Job, reference string) (changed, known bool) {
	gpu, typed := t.Type(reference)
	m := t.pick(j.Model, j.Batch, j.GPUs, gpu)
	if m == nil {
		return false, false
	}
	if p := t.profile(m, gpu, j.Profile); p != nil {
		changed = j.Profile != p
		j.Profile = p
	}
	if j.Work == 0 && typed {
		if d, ok := m.work(j.GPUs, j.Iterations, gpu); ok {
			j.Work, changed = d, true
			if j.SLO > 0 {
				j.Deadline = after(j.Submit, j.SLO*float64(d))
			}
		}
	}
	return changed, j.Work != 0
}

// after returns the time ns nanoseconds after submit, at most what a time.Duration holds.
func after(submit time.Duration, ns float64) time.Duration {
	if ns >= float64(math.MaxInt64-submit) {
		return math.MaxInt64
	}
	return submit + time.Duration(ns)
}
