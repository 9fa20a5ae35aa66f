package cluster_test

import (
	"fmt"
	"math"
	"testing"

	"clustergym/simulator/cluster"
)

// Each of the 10 pairs of the 5 free GPUs is drawn equally often: χ² with 9 degrees of freedom stays below 27.9
// in 999 of 1000 cases.
func TestRandomDrawsEverySetEquallyOften(t *testing.T) {
	c := mustNew(t, "3x3", cluster.Spec{})
	occupy(t, c, 2, 0, 3)
	count := map[string]int{}
	const n = 20000
	p := cluster.NewRandom(0)
	var gpus []cluster.GPU
	for seed := range uint64(n) {
		p.Reseed(seed)
		gpus, _ = p.Place(c, &cluster.Request{GPUs: 2, Milli: 1000}, gpus)
		count[fmt.Sprint(gpus)]++
	}
	x2 := 0.0
	for _, k := range count {
		x2 += math.Pow(float64(k)-n/10, 2) / (n / 10)
	}
	if len(count) != 10 || x2 > 27.9 {
		t.Errorf("χ² is %v: %v", x2, count)
	}
}

func TestRandomFollowsFromSeedStateAndRequest(t *testing.T) {
	c := mustNew(t, "16x8", cluster.Spec{})
	r := cluster.Request{GPUs: 5, Milli: 1000}
	place := func(seed uint64) string {
		gpus, _ := cluster.NewRandom(seed).Place(c, &r, nil)
		return fmt.Sprint(gpus)
	}
	first := place(1)
	if place(1) != first || place(2) == first {
		t.Error("the seed decides")
	}
	one := cluster.Request{GPUs: 1, Milli: 100}
	if err := c.Allocate(&one, []cluster.GPU{127}); err != nil {
		t.Fatal(err)
	}
	if place(1) == first {
		t.Error("another state gives the same draw")
	}
	c.Release(&one, []cluster.GPU{127})
	if place(1) != first {
		t.Error("the same state gives another draw")
	}
}
