package profile

import (
	"math"
	"time"

	"clustergym/traces"
)

type profileKey struct {
	m         *model
	reference string
	over      *traces.Profile // what the job had before
}

// Profile is what the table knows of a model, for a cluster whose reference GPU is of type reference (see Type):
//
//   - Compute: an iteration on one GPU; of a model that needs more, so many times an iteration on the fewest.
//   - Speeds: by type, relative to the reference, on the fewest GPUs on which both were measured; nil for a table
//     of one type.
//   - Scaling: the throughput on the reference, placed together; nil where fewer than two points are known.
//   - GradientBytes, MemBytes, Skewed, where the table has them.
//
// ok is false where the table does not have the model, or has throughputs and none of it on the reference. A base
// name stands for the batch size that Work takes on one GPU. Every call gives the same *traces.Profile.
func (t *Table) Profile(model string, reference string) (*traces.Profile, bool) {
	gpu, _ := t.Type(reference)
	p := t.profile(t.pick(model, 0, 1, gpu), gpu, nil)
	return p, p != nil
}

// profile is nil where there is none. Where over knows what the table does not, that is taken over.
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

// fill takes from q what p does not know.
func fill(p, q *traces.Profile) {
	if p.GradientBytes == 0 {
		p.GradientBytes, p.Skewed = q.GradientBytes, q.Skewed
	}
	if p.Compute == 0 {
		p.Compute = q.Compute
	}
	if p.MemBytes == 0 {
		p.MemBytes = q.MemBytes
	}
	if p.Speeds == nil {
		p.Speeds = q.Speeds
	}
	if p.Scaling == nil {
		p.Scaling = q.Scaling
	}
}

// ratio is the speed of a to that of b on the fewest GPUs that both know, 0 where there are none.
func ratio(a, b *measured) float64 {
	for _, c := range a.curve {
		if i, found := b.at(c.GPUs); found {
			return c.Throughput / b.curve[i].Throughput
		}
	}
	return 0
}

// Work is the run time of a job alone on gpus GPUs of type reference, placed together: iterations over the
// throughput. As in a profile's Scaling, more GPUs than were measured bring no more. Sia's and Pollux' tables know
// how many iterations a training takes with each batch size, so that iterations may be 0 there. batch counts the examples on all GPUs together; 0 = not given: it is then the one in
// the model's name, else the one with the shortest training on these GPUs where the table knows how long a training
// is (as the authors drew those of their workloads), else the smallest that was measured there. ok is false where
// the table does not know, or where the time is more than a time.Duration holds.
func (t *Table) Work(model string, batch, gpus int, iterations int64, reference string) (time.Duration, bool) {
	gpu, ok := t.Type(reference)
	m := t.pick(model, batch, gpus, gpu)
	if !ok || m == nil {
		return 0, false
	}
	return m.work(gpus, iterations, gpu)
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

// duration rounds to nanoseconds; it is at least one, and what a time.Duration cannot hold stays at its end.
func duration(seconds float64) time.Duration {
	ns := math.Round(seconds * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(1, ns))
}

// Assign gives jobs what the table knows of their models: Work where it is 0, from Iterations and Batch, and Profile.
// A job whose deadline is a multiple of its run time (SLO) gets Deadline with Work. Of a profile that a job has, what
// the table does not know stays. changed counts jobs that got something, unknown those whose model the table does not
// have or whose Work is still 0. The slice's jobs are changed in place.
func Assign(jobs []traces.Job, t *Table, reference string) (changed, unknown int) {
	for i := range jobs {
		did, known := t.Assign(&jobs[i], reference)
		if did {
			changed++
		}
		if !known {
			unknown++
		}
	}
	return changed, unknown
}

// Assign is the function of that name for one job. Where Job.Batch is 0 the model's name tells, see Work. known is false where the table does not have the model or Work is still 0.
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

// after is the time ns nanoseconds after submit; what a time.Duration cannot hold stays at its end.
func after(submit time.Duration, ns float64) time.Duration {
	if ns >= float64(math.MaxInt64-submit) {
		return math.MaxInt64
	}
	return submit + time.Duration(ns)
}
