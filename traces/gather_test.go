package traces

import (
	"slices"
	"testing"
)

func TestGatherKeepsEverythingInOrder(t *testing.T) {
	var g Gather[int]
	for _, n := range []int{0, 1, 63, 64, 65, 128, 1000, 1 << 13, 1<<14 + 1, 50000} {
		var want []int
		for i := range n {
			x := i * 7
			want = append(want, x)
			g.Add(&x)
		}
		if g.Len() != n {
			t.Errorf("%d elements, want %d", g.Len(), n)
		}
		if got := g.Take(); !slices.Equal(got, want) || n == 0 && got != nil {
			t.Errorf("%d elements come back as %d others", n, len(got))
		}
		if g.Len() != 0 {
			t.Errorf("%d elements after they were taken", g.Len())
		}
	}
}

func TestGatherAllocatesLittle(t *testing.T) {
	const n = 100_000
	var j Job
	if allocs := testing.AllocsPerRun(2, func() {
		var g Gather[Job]
		for range n {
			g.Add(&j)
		}
		g.Take()
	}); allocs > 40 {
		t.Errorf("%v allocations for %d jobs", allocs, n)
	}
}
