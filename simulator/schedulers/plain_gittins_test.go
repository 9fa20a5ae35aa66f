package schedulers

import (
	"math"
	"slices"

	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// plainly is gittins2D from a plain list, with every rank computed anew at every point.
var plainly = rule{name: "gittins-2d", preemptive: true, dynamic: true,
	key: func(in *inputs, v *sim.View, j sim.Job) float64 {
		g := in.state.(*plainGittins)
		return -g.index(float64(g.quanta(v, j)) * g.quantum)
	}, state: func(in *inputs) stateful {
		g := &plainGittins{quantum: float64(in.cfg.Quantum), learns: len(in.cfg.Service) == 0}
		for _, d := range in.cfg.Service {
			g.service = append(g.service, float64(d))
		}
		slices.Sort(g.service)
		g.add()
		return g
	}}

type plainGittins struct {
	quantum float64   // nanoseconds
	service []float64 // ascending
	sum     []float64 // prefix sums of service
	learns  bool
}

func (g *plainGittins) add() {
	g.sum = append(g.sum[:0], 0)
	for i, s := range g.service {
		g.sum = append(g.sum, g.sum[i]+s)
	}
}

func (g *plainGittins) index(a float64) float64 {
	above := func(x float64) int {
		i := 0
		for i < len(g.service) && g.service[i] <= x {
			i++
		}
		return i
	}
	from, n := above(a), len(g.service)
	if from == n {
		return 0
	}
	to := max(from, above(a+g.quantum))
	work := g.sum[to] - g.sum[from] - float64(to-from)*a + float64(n-to)*g.quantum
	return float64(to-from) / work
}

func (g *plainGittins) quanta(v *sim.View, j sim.Job) int64 {
	return int64(v.GPUTime(j) / g.quantum)
}

func (*plainGittins) Submit(*sim.View, sim.Job) {}

func (g *plainGittins) Before(v *sim.View, running []queue.Entry) (until int64) {
	now := int64(v.Now())
	if len(v.Waiting()) == 0 {
		return 0
	}
	for _, e := range running {
		m := queue.Milli(v, e.Job)
		if m == 0 {
			continue
		}
		left := float64(g.quanta(v, e.Job)+1)*g.quantum - v.GPUTime(e.Job)
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

func (*plainGittins) After(*sim.View, []queue.Entry, []queue.Entry) {}

func (g *plainGittins) Learn(v *sim.View, j sim.Job) {
	if !g.learns {
		return
	}
	s := math.Floor(v.GPUTime(j))
	i, _ := slices.BinarySearch(g.service, s)
	g.service = slices.Insert(g.service, i, s)
	g.add()
}
