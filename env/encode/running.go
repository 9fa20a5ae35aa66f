package encode

import (
	"math"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/sim"
)

// Running adds to an encoder a table of the running gangs that are visible: field running, behind the encoder's own. It
// does not allocate in steady state.
type Running struct {
	sched.Encoder
	at   int // elements of the encoder's own fields
	rows int // R
	row  int // numbers of a gang
	gpus float64
	seen *Forecasts // nil = they are not shown; the encoder counts and resets them
	cost StopCost

	vcs  map[string]int32 // numbers of the trace's virtual clusters
	vc   []int32          // by job, -1 = the trace does not say
	held []float64        // GPUs by virtual cluster
	size []int32          // running gangs by GPUs
}

// StopCost returns what stopping a gang of gpus GPUs costs it, in nanoseconds; nil if none can be stopped.
type StopCost func(gpus int) float64

var (
	_ sched.Encoder = (*Running)(nil)
	_ sched.Renewer = (*Running)(nil)
	_ sched.Renewer = (*Image)(nil)
)

// The columns of field running.
const (
	runFilled = iota
	runGPUs
	runStint
	runAge
	runLeft
	runArea
	runSize
	runRate
	runVC
	runCost
	runStops
	runMay
	runLen
)

// mostStops is the number of stops of a job that is the value 1.
const mostStops = 32

// NewRunning returns e with a table of rows gangs on a cluster of gpus GPUs. seen are the forecasts that e shows, nil =
// none. The names of e's fields must be before "running".
func NewRunning(e sched.Encoder, rows, gpus int, seen *Forecasts, cost StopCost) *Running {
	r := &Running{Encoder: e, rows: rows, row: runLen, gpus: float64(gpus), seen: seen, cost: cost,
		vcs: map[string]int32{}}
	for _, f := range e.Fields() {
		r.at += f.Len()
	}
	if seen != nil {
		r.row += ForecastLen
	}
	return r
}

// The numbers at the end of a slot where jobs can be stopped.
const (
	stopRan = iota
	stopCount
	stopLen
	stopDoc = "L(time run so far); C(stops, 32)"
)

// Stopping adds to each slot of field jobs, at its end, for how long its job has run and how often it was stopped, for
// an environment whose jobs can be stopped.
func (im *Image) Stopping() {
	im.stops = true
	im.job += stopLen
}

// Renew implements sched.Renewer.
func (r *Running) Renew(s *sched.State, j sim.Job) {
	if e, ok := r.Encoder.(sched.Renewer); ok {
		e.Renew(s, j)
	}
}

// Fields implements sched.Encoder.
func (r *Running) Fields() []env.Field {
	f := env.Field{Name: "running", Shape: []int{r.rows, r.row}, High: 1, Unit: "fraction", Filled: 1 + runFilled,
		Doc: "by running gang: filled; n/G; L(time since its start); " +
			"L(time run in all); L(time left); L(time left·n/G); share of the running gangs that are smaller; rate; share of " +
			"the held GPUs that its virtual cluster holds; " +
			"L(cost of a stop); C(stops, 32); may be stopped"}
	if r.seen != nil {
		f.Doc += "; " + ForecastDoc
	}
	return append(r.Encoder.Fields(), f)
}

// Reset implements sched.Encoder.
func (r *Running) Reset(s *sched.State) {
	r.Encoder.Reset(s)
	clear(r.vcs)
	r.held = r.held[:0]
}

// Learn implements sched.Encoder.
func (r *Running) Learn(s *sched.State, j sim.Job) {
	r.Encoder.Learn(s, j)
	for int(j) >= len(r.vc) {
		r.vc = append(r.vc, -1)
	}
	r.vc[j] = -1
	if name := s.View.Trace(j).VC; name != "" {
		k, ok := r.vcs[name]
		if !ok {
			k = int32(len(r.held))
			r.vcs[name], r.held = k, append(r.held, 0)
		}
		r.vc[j] = k
	}
	for n := whole(s, j); n >= len(r.size); {
		r.size = append(r.size, 0)
	}
}

// Follow implements sched.Follower.
func (r *Running) Follow(s *sched.State, events []sim.Event) {
	if f, ok := r.Encoder.(sched.Follower); ok {
		f.Follow(s, events)
	}
}

// Rejoin implements sched.Follower.
func (r *Running) Rejoin(s *sched.State) {
	if f, ok := r.Encoder.(sched.Follower); ok {
		f.Rejoin(s)
	}
}

// whole returns the GPUs of j, shares rounded up.
func whole(s *sched.State, j sim.Job) int { return int(math.Ceil(s.Known[j].GPUs)) }

// Encode implements sched.Encoder.
func (r *Running) Encode(dst []float32, s *sched.State) {
	r.Encoder.Encode(dst[:r.at], s)
	dst = dst[r.at : r.at+r.rows*r.row]
	clear(dst)
	if len(s.Running) == 0 {
		return
	}
	all := r.count(s)
	v := s.View
	for i, j := range s.Running {
		k := &s.Known[j]
		d := dst[i*r.row : (i+1)*r.row]
		d[runFilled] = 1
		d[runGPUs] = float32(min(1, k.GPUs/r.gpus))
		d[runStint] = L(float64(v.Now() - v.Started(j)))
		d[runAge] = L(float64(v.Ran(j)))
		if !s.Blind {
			left := float64(s.Remaining(j))
			d[runLeft], d[runArea] = L(left), L(left*k.GPUs/r.gpus)
		}
		if n := whole(s, j); n > 0 {
			d[runSize] = float32(r.size[n-1]) / float32(len(v.Running()))
		}
		d[runRate] = float32(min(1, v.Rate(j)))
		if vc := r.vc[j]; vc >= 0 {
			d[runVC] = float32(min(1, r.held[vc]/all))
		}
		if r.cost != nil {
			d[runCost] = L(r.cost(v.Request(j).GPUs))
			d[runStops] = C(float64(v.Preemptions(j)), mostStops)
			if s.Stops[i] {
				d[runMay] = 1
			}
		}
		if r.seen != nil {
			r.seen.Encode(d[runLen:], v, j)
		}
	}
}

// count counts what runs: the GPUs of each virtual cluster, and the gangs of at most so many GPUs. It returns the GPUs
// of all.
func (r *Running) count(s *sched.State) (all float64) {
	clear(r.held)
	clear(r.size)
	for _, j := range s.View.Running() {
		n := s.Known[j].GPUs
		all += n
		if vc := r.vc[j]; vc >= 0 {
			r.held[vc] += n
		}
		r.size[whole(s, j)]++
	}
	for n := 1; n < len(r.size); n++ {
		r.size[n] += r.size[n-1]
	}
	return all
}
