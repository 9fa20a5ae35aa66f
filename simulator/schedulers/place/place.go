package place

import (
	"fmt"
	"strconv"
	"strings"

	spelling "clustergym/internal/nearest"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Placement chooses the GPUs of a job among the free ones of c, which is the run's cluster or a copy for planning. It
// otherwise behaves like cluster.Placement.
type Placement interface {
	// Reset begins a run. It forgets everything seen in earlier runs.
	Reset()
	// Place finds GPUs for r, which is the job's own request or another: of another size, or for fewer types.
	Place(v *sim.View, j sim.Job, r *cluster.Request, c *cluster.Cluster, dst []cluster.GPU) ([]cluster.GPU, bool)
}

// Reseed changes the seed of p, if it draws or weighs jobs by noisy estimates.
func Reseed(p Placement, seed uint64) {
	if p, ok := p.(interface{ Reseed(seed uint64) }); ok {
		p.Reseed(seed)
	}
}

// Given is what some placements need to know of the workload. They do not change it.
type Given struct {
	// Classes is the distribution of requests for fgd. If it is nil, fgd learns it from the requests that it places.
	Classes []cluster.Class
	// Interference and InterferenceScope have the meaning that they have in sim.Config. least-interference uses them;
	// without them it is best-fit.
	Interference      sim.Interference
	InterferenceScope string
}

// Names returns the placements that a Config may name: those of package cluster and those that look at the
// running jobs. lwf-K is accepted for every K from 1, not only those listed.
func Names() []string {
	return append(cluster.PlacementNames(), RackSkewed, "least-interference", "lwf-1", "lwf-2", "lwf-4")
}

// New returns the placement called name. est are the estimates by which lwf weighs jobs; their seed is also that of
// random.
func New(name string, est sim.Estimates, given Given) (Placement, error) {
	switch {
	case name == RackSkewed:
		return newSkewed(), nil
	case name == "least-interference":
		return newLeastInterference(given), nil
	case strings.HasPrefix(name, LWF):
		if k, err := strconv.Atoi(name[len(LWF):]); err == nil && k >= 1 && name == LWF+strconv.Itoa(k) {
			return newLWF(k, est), nil
		}
	default:
		p, err := cluster.NewPlacement(name)
		if err != nil {
			break
		}
		b := &blind{p}
		b.Reseed(est.Seed)
		if p, ok := p.(*cluster.FGD); ok {
			p.SetClasses(given.Classes)
		}
		return b, nil
	}
	return nil, fmt.Errorf("placement %q is unknown, want %s", name, spelling.OneOf(name, Names()))
}

// Anywhere reports whether p looks at what is free alone and accepts every gang for which enough GPUs are free.
func Anywhere(p Placement) bool {
	b, ok := p.(*blind)
	return ok && !Constrained(b)
}

// Constrained reports whether p may refuse a gang although enough GPUs are free for it.
func Constrained(p Placement) bool {
	switch p := p.(type) {
	case *skewed:
		return true
	case *blind:
		return cluster.Constrained(p.rule)
	}
	return false
}

// Steady reports whether p chooses the same GPUs for a request as long as no job starts or ends. Of the others, lwf
// looks at the clock, random draws, and fgd learns from the requests that it places.
func Steady(p Placement) bool {
	switch p := p.(type) {
	case *lwf:
		return false
	case *blind:
		switch rule := p.rule.(type) {
		case *cluster.FGD:
			return rule.Given()
		case *cluster.Random:
			return false
		}
	}
	return true
}

// blind is a placement that does not look at jobs.
type blind struct{ rule cluster.Placement }

func (b *blind) Place(_ *sim.View, _ sim.Job, r *cluster.Request, c *cluster.Cluster,
	dst []cluster.GPU) ([]cluster.GPU, bool) {
	return b.rule.Place(c, r, dst)
}

func (b *blind) Reset() {
	if p, ok := b.rule.(*cluster.FGD); ok {
		p.Reset()
	}
}

// Reseed changes the seed of a random placement.
func (b *blind) Reseed(seed uint64) {
	if p, ok := b.rule.(*cluster.Random); ok {
		p.Reseed(seed)
	}
}
