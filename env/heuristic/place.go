package heuristic

import (
	"fmt"
	"strconv"
	"strings"

	"clustergym/env/cluster"
	"clustergym/env/sim"
	spelling "clustergym/internal/nearest"
)

// placer chooses the GPUs of a job among the free ones of c, which is the run's cluster or a copy for planning. It
// otherwise behaves like cluster.Placement.
type placer interface {
	// Reset begins a run. It forgets everything seen in earlier runs.
	Reset()
	Place(v *sim.View, j sim.Job, c *cluster.Cluster, dst []cluster.GPU) ([]cluster.GPU, bool)
	// PlaceAs is Place with another request than the job's own: of another size, or for fewer types.
	PlaceAs(v *sim.View, j sim.Job, r *cluster.Request, c *cluster.Cluster, dst []cluster.GPU) ([]cluster.GPU, bool)
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

// PlacementNames returns the placements that a Config may name: those of package cluster and those that look at the
// running jobs. lwf-K is accepted for every K from 1, not only those listed.
func PlacementNames() []string {
	return append(cluster.PlacementNames(), rackSkewed, "least-interference", "lwf-1", "lwf-2", "lwf-4")
}

// newPlacement returns the placement that cfg names.
func newPlacement(cfg Config) (placer, error) {
	switch name := cfg.Placement; {
	case name == rackSkewed:
		return newSkewed(), nil
	case name == "least-interference":
		return newLeastInterference(cfg.Given), nil
	case strings.HasPrefix(name, lwfPrefix):
		if k, err := strconv.Atoi(name[len(lwfPrefix):]); err == nil && k >= 1 && name == lwfPrefix+strconv.Itoa(k) {
			return newLWF(k, cfg), nil
		}
	default:
		p, err := cluster.NewPlacement(name)
		if err != nil {
			break
		}
		b := &blind{p}
		b.Reseed(cfg.Seed)
		if p, ok := p.(*cluster.FGD); ok {
			p.SetClasses(cfg.Given.Classes)
		}
		return b, nil
	}
	return nil, fmt.Errorf("placement %q is unknown, want %s", cfg.Placement, spelling.OneOf(cfg.Placement, PlacementNames()))
}

// constrained reports whether p may refuse a gang although enough GPUs are free for it.
func constrained(p placer) bool {
	switch p := p.(type) {
	case *skewed:
		return true
	case *blind:
		return cluster.Constrained(p.rule)
	}
	return false
}

// stays reports whether p chooses the same GPUs for a request as long as no job starts or ends. Of the others, lwf looks at the
// clock, random draws, and fgd learns from the requests that it places.
func stays(p placer) bool {
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

func (b *blind) Place(v *sim.View, j sim.Job, c *cluster.Cluster, dst []cluster.GPU) ([]cluster.GPU, bool) {
	return b.rule.Place(c, v.Request(j), dst)
}

func (b *blind) PlaceAs(_ *sim.View, _ sim.Job, r *cluster.Request, c *cluster.Cluster, dst []cluster.GPU) ([]cluster.GPU, bool) {
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
