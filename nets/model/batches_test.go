package model_test

import (
	"math"
	"slices"
	"testing"

	"clustergym/internal/rng"
	"clustergym/nets/model"
)

// Every worker gets rows of a large network, however few there are, and none of a small one; results are the same bits.
func TestWorkersShareALargeNetworksRows(t *testing.T) {
	const in, actions = 64, 9
	input := model.Input{{Name: "x", Shape: []int{in}}}
	r := rng.Stream(1, "rows")
	for _, c := range []struct {
		hidden  []int
		n, rows int
	}{{[]int{256, 256}, 32, 11}, {[]int{256, 256}, 500, 64}, {[]int{16}, 32, 64}} {
		cfg := model.DefaultConfig()
		cfg.Hidden = c.hidden
		ac, err := model.NewActorCritic(cfg, input, actions, rng.Stream(1, "ac"))
		if err != nil {
			t.Fatal(err)
		}
		q, err := model.NewQNet(cfg, input, actions, true, rng.Stream(1, "q"))
		if err != nil {
			t.Fatal(err)
		}
		obs, mask := make([]float32, c.n*in), make([]bool, c.n*actions)
		for i := range obs {
			obs[i] = float32(r.NormFloat64())
		}
		for i := range mask {
			mask[i] = i%3 != 0
		}
		run := func(workers int) (head, value, q3 []float32, rows [2]int) {
			head, value, q3 = make([]float32, c.n*actions), make([]float32, c.n), make([]float32, c.n*actions)
			acs, qs := ac.Batches(workers), q.Batches(workers)
			if err := acs.Run(t.Context(), obs, c.n, head, value); err != nil {
				t.Fatal(err)
			}
			if err := qs.Run(t.Context(), obs, mask, c.n, q3); err != nil {
				t.Fatal(err)
			}
			return head, value, q3, [2]int{model.RowsOfPiece(acs), model.RowsOfPiece(qs)}
		}
		head1, value1, q1, _ := run(1)
		head3, value3, q3, rows := run(3)
		if rows != [2]int{c.rows, c.rows} {
			t.Errorf("%v, %d rows: pieces of %d for three workers, want %d", c.hidden, c.n, rows, c.rows)
		}
		if !slices.Equal(head1, head3) || !slices.Equal(value1, value3) || !slices.Equal(q1, q3) {
			t.Errorf("%v, %d rows: three workers compute something else", c.hidden, c.n)
		}
		policy := make([]float32, len(head1))
		if err := ac.Batches(3).Run(t.Context(), obs, c.n, policy, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(head1, policy) {
			t.Errorf("%v, %d rows: without values the logits are others", c.hidden, c.n)
		}
		whole, values := ac.Forward(c.n).Run(obs, c.n)
		if !slices.Equal(head1, whole) || !slices.Equal(value1, values) {
			t.Errorf("%v, %d rows: pieces compute something else than the whole batch", c.hidden, c.n)
		}
		if !slices.Equal(q1, q.Forward(c.n).Run(obs, mask, c.n)) {
			t.Errorf("%v, %d rows: pieces compute other action values than the whole batch", c.hidden, c.n)
		}
		if err := ac.Batches(2).Run(t.Context(), obs, c.n, nil, value3); err != nil || !slices.Equal(value3, value1) {
			t.Errorf("values without heads: %v", err)
		}
	}
}

// Logits do not compute what only the value needs: with a critic of NaN they are the same, with a shared trunk and with
// two networks.
func TestLogitsNeedNoCritic(t *testing.T) {
	const in, actions, n = 5, 3, 4
	for _, separate := range []bool{false, true} {
		cfg := model.DefaultConfig()
		cfg.Hidden, cfg.Separate = []int{8}, separate
		ac, err := model.NewActorCritic(cfg, model.Input{{Name: "x", Shape: []int{in}}}, actions, rng.Stream(1, "ac"))
		if err != nil {
			t.Fatal(err)
		}
		obs, r := make([]float32, n*in), rng.Stream(2, "obs")
		for i := range obs {
			obs[i] = float32(r.NormFloat64())
		}
		want, _ := ac.Forward(n).Run(obs, n)
		from, to := ac.Critic()
		for i := range ac.Params().Data[from:to] {
			ac.Params().Data[from+i] = float32(math.NaN())
		}
		f := ac.Forward(n)
		if got := f.Logits(obs, n); !slices.Equal(got, want) {
			t.Errorf("separate %v: logits %v, want %v", separate, got, want)
		}
		if allocs := testing.AllocsPerRun(10, func() { f.Logits(obs, n) }); allocs > 0 {
			t.Errorf("separate %v: %v allocations", separate, allocs)
		}
	}
}
