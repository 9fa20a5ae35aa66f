package heuristic

import (
	"math"
	"slices"

	"clustergym/env/sim"
)

// gittins2D serves the job with the greatest Gittins index in GPU-time first and preempts for it ("2D-Gittins",
// Tiresias: Gu et al., NSDI 2019, section 4.3). With a the GPU-time that a job has held, counted in whole quanta D
// (Config.Quantum), and S the GPU-time of a job drawn from Config.Service, the index is
//
//	G(a) = P(S − a ≤ D | S > a) / E[min(S − a, D) | S > a],
//
// or 0 if no S exceeds a: such jobs go last. A rank changes when a running job completes a quantum.
//
// If Config.Service is empty, the distribution is that of the jobs that have finished so far; before the first, all
// ranks are equal. Tiresias' simulator combines the index with the queues of las-2d, rounds P and E to five digits
// and looks a up among the values of S; this implementation evaluates the formula.
var gittins2D = rule{name: "gittins-2d", preemptive: true, dynamic: true, key: gittinsKey, state: newGittins}

func gittinsKey(s *Scheduler, v *sim.View, j sim.Job) float64 {
	g := s.state.(*gittins)
	return -g.index(float64(g.quanta(v, j)) * g.quantum)
}

// gittins is a distribution of GPU-times.
type gittins struct {
	quantum float64   // nanoseconds
	service []float64 // ascending
	sum     []float64 // prefix sums of service
	learns  bool
}

func newGittins(s *Scheduler) stateful {
	g, ok := s.state.(*gittins)
	if !ok {
		g = &gittins{quantum: float64(s.cfg.Quantum), learns: len(s.cfg.Service) == 0}
		for _, d := range s.cfg.Service {
			g.service = append(g.service, float64(d))
		}
		slices.Sort(g.service)
		g.add()
	}
	if g.learns {
		g.service, g.sum = g.service[:0], append(g.sum[:0], 0)
	}
	return g
}

// add computes the prefix sums.
func (g *gittins) add() {
	g.sum = append(g.sum[:0], 0)
	for i, s := range g.service {
		g.sum = append(g.sum, g.sum[i]+s)
	}
}

// index returns G(a).
func (g *gittins) index(a float64) float64 {
	above := func(x float64) int {
		i, found := slices.BinarySearch(g.service, x)
		for found && i < len(g.service) && g.service[i] == x {
			i++
		}
		return i
	}
	from := above(a)
	n := len(g.service)
	if from == n {
		return 0
	}
	to := max(from, above(a+g.quantum))
	work := g.sum[to] - g.sum[from] - float64(to-from)*a + float64(n-to)*g.quantum
	return float64(to-from) / work
}

// quanta returns the number of whole quanta that j has held.
func (g *gittins) quanta(v *sim.View, j sim.Job) int64 { return int64(v.GPUTime(j) / g.quantum) }

func (*gittins) submit(*sim.View, sim.Job) {}

func (g *gittins) before(v *sim.View, running []entry) (until int64) {
	now := int64(v.Now())
	if len(v.Waiting()) == 0 {
		return 0 // no rank matters
	}
	for _, e := range running {
		m := milli(v, e.job)
		if m == 0 {
			continue
		}
		left := float64(g.quanta(v, e.job)+1)*g.quantum - v.GPUTime(e.job)
		wait := max(1, math.Ceil(left*1000/float64(m)))
		if wait > math.MaxInt64/4 {
			continue
		}
		if t := now + int64(wait); until == 0 || t < until {
			until = t
		}
	}
	return until
}

func (*gittins) after(*sim.View, []entry, []entry) {}

// learn adds the GPU-time of j.
func (g *gittins) learn(v *sim.View, j sim.Job) {
	if !g.learns {
		return
	}
	s := math.Floor(v.GPUTime(j))
	i, _ := slices.BinarySearch(g.service, s)
	g.service = slices.Insert(g.service, i, s)
	g.add()
}
