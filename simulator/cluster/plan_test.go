package cluster_test

import (
	"math/rand/v2"
	"testing"

	"clustergym/internal/testseed"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// All counts agree with what a caller declares free on a node, and what fits follows from it. A quota that is lifted
// binds no job.
func TestWhatIsSaidToBeFree(t *testing.T) {
	r := rand.New(rand.NewPCG(testseed.Or(61), 1))
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 4, CPUs: 8, MemGB: 16}}}},
		VCs:   []cluster.VCSpec{{Name: "a", Nodes: 2}, {Name: "b", Quota: 5}, {Name: "c"}},
	}
	c := mustNew(t, "", spec)
	for range 200 {
		node := r.IntN(c.Nodes())
		gpus := make([]int64, 4)
		for i := range gpus {
			gpus[i] = []int64{0, 250, 999, 1000}[r.IntN(4)]
		}
		cpu, mem := int64(r.IntN(9))*1000, int64(r.IntN(17))<<30
		c.SetFree(node, gpus, cpu, mem)
		if err := c.CheckInvariants(); err != nil {
			t.Fatal(err)
		}
		if a, b := c.Left(node); a != cpu || b != mem {
			t.Fatalf("%d milli-cores and %d bytes are free, want %d and %d", a, b, cpu, mem)
		}
	}
	c.Reset()
	five, _ := c.Request(&traces.Job{GPUs: 5, GPUMilli: 1000, VC: "b"})
	place, _ := cluster.NewPlacement("first-fit")
	gpus, ok := place.Place(c, &five, nil)
	if !ok || c.Allocate(&five, gpus) != nil || c.Fits(&five) {
		t.Fatal("the quota does not bind")
	}
	if c.LiftQuotas(); !c.Fits(&five) {
		t.Error("a lifted quota binds")
	}
}
