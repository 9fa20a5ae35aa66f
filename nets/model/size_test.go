package model

import (
	"math/rand/v2"
	"testing"
)

func TestSizesAreThoseOfTheNetworks(t *testing.T) {
	in := Input{{Name: "image", Shape: []int{12, 10}}, {Name: "rest", Shape: []int{7}}}
	cnn := Config{Kind: "cnn", Hidden: []int{32, 16}, Activation: "relu", LayerNorm: true, Separate: true, Head: "dense",
		Branches: []Branch{{Field: "image", Convs: []Conv{{Filters: 4, Kernel: [2]int{3, 3}}}, Dense: []int{20}}}}
	rows := Config{Kind: KindAttention, Activation: "relu", Head: "dense", Separate: true,
		Attention: Attention{Width: 8, Heads: 2, Layers: 2, Feed: 12}}
	in[0].Group = 5
	for _, cfg := range []Config{DefaultConfig(), cnn, rows} {
		r := rand.New(rand.NewPCG(1, 2))
		ac, err := NewActorCritic(cfg, in, 5, r)
		if err != nil {
			t.Fatal(err)
		}
		size, err := ActorCriticSize(cfg, in, 5)
		if err != nil || size.Params != float64(len(ac.Params().Data)) {
			t.Errorf("%s: %v parameters (%v), want %d", cfg.Kind, size.Params, err, len(ac.Params().Data))
		}
		row, seen := 0, map[*float32]bool{}
		for _, v := range ac.Forward(1).f.vals {
			if len(v) > 0 && !seen[&v[0]] {
				row += len(v)
				seen[&v[0]] = true
			}
		}
		if size.Row != float64(row) || size.Largest <= 0 || size.Largest >= size.Params {
			t.Errorf("%s: %+v, want %d values for an observation", cfg.Kind, size, row)
		}
		for _, duelling := range []bool{false, true} {
			q, err := NewQNet(cfg, in, 5, duelling, r)
			if err != nil {
				t.Fatal(err)
			}
			if size, err := QNetSize(cfg, in, 5, duelling); err != nil || size.Params != float64(len(q.Params().Data)) {
				t.Errorf("%s, duelling %v: %v parameters (%v), want %d", cfg.Kind, duelling, size.Params, err, len(q.Params().Data))
			}
		}
	}
	huge := DefaultConfig()
	huge.Hidden = []int{65536, 65536, 65536, 65536}
	if size, err := ActorCriticSize(huge, in, 5); err != nil || size.Params < 6*65536*65536 {
		t.Errorf("%v parameters (%v), want more than six square matrices", size.Params, err)
	}
	huge.Hidden = []int{65537}
	if _, err := ActorCriticSize(huge, in, 5); err == nil {
		t.Error("a layer of 65537 was accepted")
	}
}
