package encode

import (
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// Truth adds to an encoder what a policy may not know and a critic in training may (an asymmetric critic: Pinto et al.
// 2018, arXiv 1710.06542): field truth, behind the encoder's own. It does not allocate in steady state.
type Truth struct {
	sched.Encoder
	at      int // elements of the encoder's own fields
	slots   int
	window  int // counted jobs of an episode
	gpus    float64
	arrived int // of them
}

var (
	_ sched.Encoder = (*Truth)(nil)
	_ sched.Renewer = (*Truth)(nil)
)

// The numbers of field truth before those of the slots.
const (
	truthComing = iota
	truthQueue
	truthRunning
	truthLen
)

// NewTruth returns e with the field, for K slots, episodes of window counted jobs and a cluster of gpus GPUs. The names
// of e's fields must be before "truth".
func NewTruth(e sched.Encoder, k, window, gpus int) *Truth {
	t := &Truth{Encoder: e, slots: k, window: window, gpus: float64(gpus)}
	for _, f := range e.Fields() {
		t.at += f.Len()
	}
	return t
}

// Renew implements sched.Renewer.
func (t *Truth) Renew(s *sched.State, j sim.Job) {
	if e, ok := t.Encoder.(sched.Renewer); ok {
		e.Renew(s, j)
	}
}

// Fields implements sched.Encoder.
func (t *Truth) Fields() []env.Field {
	return append(t.Encoder.Fields(),
		env.Field{Name: "truth", Shape: []int{truthLen + t.slots}, High: 1, Unit: "fraction", Critic: true,
			Doc: "for critics: share of the window's jobs still to come; L(true work·n/G left) of waiting and of running " +
				"jobs; L(true work left) by slot"})
}

// Reset implements sched.Encoder.
func (t *Truth) Reset(s *sched.State) {
	t.Encoder.Reset(s)
	t.arrived = 0
}

// Learn implements sched.Encoder.
func (t *Truth) Learn(s *sched.State, j sim.Job) {
	t.Encoder.Learn(s, j)
	if s.Known[j].Counted {
		t.arrived++
	}
}

// Encode implements sched.Encoder.
func (t *Truth) Encode(dst []float32, s *sched.State) {
	t.Encoder.Encode(dst[:t.at], s)
	dst = dst[t.at : t.at+truthLen+t.slots]
	clear(dst)
	dst[truthComing] = float32(max(0, t.window-t.arrived)) / float32(t.window)
	dst[truthQueue] = L(t.work(s, s.View.Waiting()))
	dst[truthRunning] = L(t.work(s, s.View.Running()))
	for i, j := range s.Slots {
		dst[truthLen+i] = L(s.View.Left(j))
	}
}

// work returns the work left of jobs times their GPUs, divided by the cluster's, in nanoseconds.
func (t *Truth) work(s *sched.State, jobs []sim.Job) float64 {
	sum := 0.0
	for _, j := range jobs {
		sum += s.View.Left(j) * s.Known[j].GPUs
	}
	return sum / t.gpus
}
