package optim_test

import (
	"slices"
	"testing"

	"clustergym/nets"
	"clustergym/nets/optim"
)

// The sum has the same bits whether one worker puts the shards in order or several put them in any order.
func TestShardsAreSummedInTheirOrder(t *testing.T) {
	shape := []nets.View{{Name: "w", Shape: []int{3}}}
	values := [][]float32{{1e8, 1, 3}, {-1e8, 2, 1e-8}, {0.3, 4, 5}, {1, 1, 1}}
	shard := func(i int) *nets.Params {
		p := nets.NewParams(shape)
		copy(p.Data, values[i])
		return p
	}
	sum := func(workers int, order ...int) (sum []float32) {
		s := optim.NewShardSum(nets.NewParams(shape), len(values), workers)
		for range 2 { // the second minibatch knows nothing of the first
			s.Begin()
			for _, i := range order {
				s.Put(i, shard(i))
			}
			got := s.Sum()
			sum = slices.Clone(got.Data)
			got.Data[0] = 77 // the caller may change it
		}
		return sum
	}
	want := []float32{1e8, 1, 3}
	for _, v := range values[1:3] { // shard 3 is empty
		for k := range want {
			want[k] += v[k]
		}
	}
	for _, c := range []struct {
		workers int
		order   []int
	}{{1, []int{0, 1, 2}}, {3, []int{0, 1, 2}}, {3, []int{2, 0, 1}}, {2, []int{1, 2, 0}}} {
		if got := sum(c.workers, c.order...); !slices.Equal(got, want) {
			t.Errorf("%d workers, order %v: %v, want %v", c.workers, c.order, got, want)
		}
	}
	for _, workers := range []int{1, 3} {
		if got := sum(workers); !slices.Equal(got, []float32{0, 0, 0}) {
			t.Errorf("%d workers, no shards: %v, want zeros", workers, got)
		}
	}
}

// With a single shard nothing is copied: the program's own gradient is the sum.
func TestASingleShardIsItsOwnSum(t *testing.T) {
	g := nets.NewParams([]nets.View{{Name: "w", Shape: []int{2}}})
	s := optim.NewShardSum(g, 1, 1)
	s.Begin()
	copy(g.Data, []float32{1, 2})
	s.Put(0, g)
	if got := s.Sum(); got != g || got.Data[1] != 2 {
		t.Errorf("the sum is %v, want the gradient itself", got.Data)
	}
	s.Begin()
	if got := s.Sum().Data; got[0] != 0 || got[1] != 0 {
		t.Errorf("without the shard the sum is %v, want zeros", got)
	}
}
