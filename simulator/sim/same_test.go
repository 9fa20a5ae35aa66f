package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Equal nodes are interchangeable: the same decisions on other nodes give the same run except for the names.
func TestPermutingEqualNodesChangesOnlyNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 41))
		racks, nodes, gpus := 1+r.IntN(3), 1+r.IntN(3), 1+r.IntN(3)
		spec := cluster.Spec{Racks: []cluster.RackSpec{{
			Count: cluster.Count(racks), Nodes: []cluster.NodeSpec{{Count: cluster.Count(nodes), GPUs: gpus, CPUs: 16}},
		}}}
		cfg := richConfig(r, second/3)
		cfg.Failures.MTBF = 0 // every node has its own failures
		jobs := rich(r, rapid.IntRange(1, 25).Draw(t, "jobs"), 4, second/3)
		one, two := start(t, cfg, spec, jobs), start(t, cfg, spec, jobs)
		// Permute the racks, and the nodes within each.
		rename := make([]int, 0, racks*nodes)
		for _, rack := range r.Perm(racks) {
			for _, node := range r.Perm(nodes) {
				rename = append(rename, rack*nodes+node)
			}
		}
		c, v := newChaos(t, r), one.View()
		c.legal, c.moves, c.scale = true, true, second/3
		var d sim.Decision
		for {
			p, err := one.Advance(ctx)
			q, err2 := two.Advance(ctx)
			if a, b := nameless(v, p), nameless(two.View(), q); a != b || (err == nil) != (err2 == nil) {
				t.Fatalf("got %s (%v), want %s (%v)", b, err2, a, err)
			}
			if ended(t, err) {
				return
			}
			for !v.Over() {
				c.one(v, &d)
				other := d
				other.GPUs = nil
				for _, g := range d.GPUs {
					if g < 0 {
						g = cluster.Slot(rename[v.Cluster().NodeOf(g)])
					} else {
						g = cluster.GPU(rename[int(g)/gpus]*gpus + int(g)%gpus)
					}
					other.GPUs = append(other.GPUs, g)
				}
				err, err2 := one.Apply(&d), two.Apply(&other)
				if (err == nil) != (err2 == nil) {
					t.Fatalf("%+v: %v, %+v: %v", d, err, other, err2)
				}
				if err == nil && d.Op == sim.Wait {
					break
				}
			}
		}
	})
}

// nameless describes p without the names of GPUs, and the rates of all running jobs.
func nameless(v *sim.View, p *sim.Point) (s string) {
	if p == nil {
		return ""
	}
	for _, e := range p.Events {
		s += fmt.Sprint(e.At, e.Kind, e.Job, e.N, " ")
	}
	for _, j := range v.Running() {
		s += fmt.Sprint(j, v.Rate(j), v.Left(j), v.Lost(j), " ")
	}
	return fmt.Sprint(p.Now, s)
}
