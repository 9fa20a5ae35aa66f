package gpupick_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env/gpupick"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Whatever legal GPUs are picked, a job that says on how many nodes it runs gets equal parts on as many, and there is
// always a legal pick until it has all.
func TestPicksHaveTheShapeOfTheJob(t *testing.T) {
	s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Racks: []cluster.RackSpec{
		{Count: 2, Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 4}}}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := gpupick.DefaultConfig()
	r := rand.New(rand.NewPCG(1, 2))
	for _, nodes := range []int{1, 2, 4} {
		for range 50 {
			jobs := []traces.Job{{Work: time.Second, GPUs: 4, GPUMilli: 1000, Nodes: nodes}}
			if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			v := s.View()
			p, err := gpupick.NewPicks(&cfg, v.Cluster(), 1)
			if err != nil {
				t.Fatal(err)
			}
			p.Begin(v, 0)
			mask := make([]bool, v.Cluster().GPUs()+1)
			for done := false; !done; {
				p.Mask(mask)
				var legal []cluster.GPU
				for g := range v.Cluster().GPUs() {
					if mask[g] != p.Legal(cluster.GPU(g)) {
						t.Fatalf("GPU %d: the mask says %v", g, mask[g])
					}
					if mask[g] {
						legal = append(legal, cluster.GPU(g))
					}
				}
				if len(legal) == 0 {
					t.Fatalf("on %d nodes: nothing is legal after %v", nodes, p.GPUs())
				}
				done = p.Pick(legal[r.IntN(len(legal))])
			}
			if err := s.Apply(&sim.Decision{Op: sim.StartJob, GPUs: p.GPUs()}); err != nil {
				t.Fatal(err)
			}
		}
	}
}
