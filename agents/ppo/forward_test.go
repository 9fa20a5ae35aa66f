package ppo

import (
	"slices"
	"testing"

	"clustergym/env"
	"clustergym/internal/rng"
)

// Every worker gets rows of a large network, however few there are, and none of a small one; results are the same bits.
func TestWorkersShareALargeNetworksRows(t *testing.T) {
	s := env.Spec{ID: "Wide-v1", Obs: []env.Field{{Name: "x", Shape: []int{64}}}, Action: env.ActionSpec{Sizes: []int{9}}}
	r := rng.Stream(1, "rows")
	for _, c := range []struct {
		hidden  []int
		n, rows int
	}{{[]int{256, 256}, 32, 11}, {[]int{256, 256}, 500, piece}, {[]int{16}, 32, piece}} {
		cfg := DefaultConfig()
		cfg.Network.Hidden = c.hidden
		net, err := newNet(cfg, s, 1)
		if err != nil {
			t.Fatal(err)
		}
		obs := make([]float32, c.n*64)
		for i := range obs {
			obs[i] = float32(r.NormFloat64())
		}
		head, value := make([]float32, c.n*9), make([]float32, c.n)
		one, three := newForward(net, 64, 1), newForward(net, 64, 3)
		if err := one.run(t.Context(), obs, c.n, head, value); err != nil {
			t.Fatal(err)
		}
		wantHead, wantValue := slices.Clone(head), slices.Clone(value)
		clear(head)
		if err := three.run(t.Context(), obs, c.n, head, value); err != nil {
			t.Fatal(err)
		}
		if three.rows != c.rows {
			t.Errorf("%v, %d rows: pieces of %d for three workers, want %d", c.hidden, c.n, three.rows, c.rows)
		}
		if !slices.Equal(head, wantHead) || !slices.Equal(value, wantValue) {
			t.Errorf("%v, %d rows: three workers compute something else", c.hidden, c.n)
		}
	}
}
