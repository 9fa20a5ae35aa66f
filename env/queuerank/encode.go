package queuerank

import (
	"strconv"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/sched"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// maxima are the largest values in the training part.
type maxima struct{ estimate, memory, user float64 }

func maximaOf(jobs []traces.Job, est sim.Estimates) maxima {
	m := maxima{estimate: 1}
	if est.Mode != sim.EstimateTrace {
		est = sim.Estimates{Mode: sim.EstimateExact} // noisy estimates have no maximum
	}
	for i := range jobs {
		j := &jobs[i]
		m.estimate = max(m.estimate, float64(est.OfJob(j)))
		m.memory = max(m.memory, float64(j.MemBytes))
		if u, err := strconv.Atoi(j.User); err == nil {
			m.user = max(m.user, float64(u))
		}
	}
	return m
}

// encoder writes a row of each visible job.
type encoder struct {
	l    *line
	most maxima
	seen *encode.Forecasts // nil = they are not shown
	own  []owned           // by job

	blank []float32 // the observation of an empty queue
}

// owned is what never changes of a job.
type owned struct{ memory, user float32 }

var _ sched.Encoder = (*encoder)(nil)

// features is F of the observation.
const features = 8

// cut is the largest value of a feature.
const cut = 1 - 1e-5

// wide returns the numbers of a row.
func (x *encoder) wide() int {
	if x.seen != nil {
		return features + encode.ForecastLen
	}
	return features
}

// Fields implements sched.Encoder.
func (x *encoder) Fields() []env.Field {
	doc := "by slot: wait/12 h; e/max; n/G; memory, user, group and executable by their maxima (absent: 1); can start 1 " +
		"− 1e-5, else 1e-5; all cut at 1 − 1e-5; an empty slot is 0, 1, 1, 1, 1, 1, 1, 0"
	if x.seen != nil {
		doc += "; " + encode.ForecastDoc + "; zeros for an empty slot"
	}
	return []env.Field{{Name: "jobs", Shape: []int{x.l.cfg.Visible, x.wide()}, High: 1, Unit: "fraction", Doc: doc,
		Filled: 8}}
}

// Reset implements sched.Encoder.
func (x *encoder) Reset(*sched.State) { x.seen.Reset() }

// Learn implements sched.Encoder.
func (x *encoder) Learn(s *sched.State, j sim.Job) {
	for int(j) >= len(x.own) {
		x.own = append(x.own, owned{})
	}
	t, k := s.View.Trace(j), owned{1, 1}
	if t.MemBytes > 0 && x.most.memory > 0 {
		k.memory = min(cut, float32(float64(t.MemBytes)/x.most.memory))
	}
	if x.most.user > 0 { // some users are numbers; Atoi allocates when it fails
		if u, err := strconv.Atoi(t.User); err == nil && u > 0 {
			k.user = min(cut, float32(float64(u)/x.most.user))
		}
	}
	x.own[j] = k
	x.seen.Learn(s.View, j, s.Known[j].Estimate)
}

// Encode implements sched.Encoder.
func (x *encoder) Encode(dst []float32, s *sched.State) {
	v, n := s.View, x.wide()
	gpus := float64(v.Cluster().GPUs())
	if x.seen != nil {
		x.seen.Count(v)
	}
	used := len(s.Slots) * n
	if x.blank == nil {
		x.blank = blanks(x.l.cfg.Visible, n)
	}
	copy(dst[used:], x.blank[used:])
	for i, j := range s.Slots {
		d := dst[i*n : (i+1)*n]
		r := v.Request(j)
		if wait := v.Now() - v.Trace(j).Submit; x.l.own.Seconds {
			d[0] = float32(min(cut, wait.Seconds()/43200))
		} else {
			d[0] = min(cut, float32(wait.Hours()/12))
		}
		d[1] = min(cut, float32(float64(s.Known[j].Estimate)/x.most.estimate))
		d[2] = min(cut, float32(float64(r.GPUs*r.Milli)/1000/gpus))
		d[3], d[4] = x.own[j].memory, x.own[j].user
		d[5], d[6] = 1, 1 // the workload has no groups or executables
		d[7] = 1e-5
		if v.Fits(j) {
			d[7] = cut
		}
		if x.seen != nil {
			x.seen.Encode(d[features:], v, j)
		}
	}
}

// blanks returns the rows of empty slots.
func blanks(visible, wide int) []float32 {
	rows := make([]float32, visible*wide)
	for i := range visible {
		copy(rows[i*wide:], []float32{0, 1, 1, 1, 1, 1, 1, 0})
	}
	return rows
}
