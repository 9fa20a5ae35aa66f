package model

import (
	"clustergym/internal/rng"
	"clustergym/nets/op"
	"clustergym/nets/tape"
	"fmt"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"testing"
)

func TestZProf(t *testing.T) {
	relu := func(hidden ...int) Config {
		return Config{Kind: "mlp", Hidden: hidden, Activation: "relu", Head: "dense"}
	}
	small, smallIn := image(32, 64, 1)
	large, largeIn := image(64, 64, 3)
	for _, c := range []struct {
		netCase
		rows int
	}{
		{netCase{"mlp 128-64-64-8", relu(64, 64), Input{{"obs", []int{128}}}, 8}, 64},
		{netCase{"mlp 256-256-256-16", relu(256, 256), Input{{"obs", []int{256}}}, 16}, 256},
		{netCase{"mlp 4-64-64-2", relu(64, 64), Input{{"obs", []int{4}}}, 2}, 64},
		{netCase{"cnn 1x32x64", small, smallIn, 8}, 32},
		{netCase{"cnn 3x64x64", large, largeIn, 8}, 64},
	} {
		r := rng.Stream(3, c.name)
		q, _ := NewQNet(c.cfg, c.in, c.actions, false, r)
		p, _ := tape.Build(tensor.Float32, func(g *tape.Builder) (*gorgonia.Node, []*gorgonia.Node) {
			out := q.Graph(g, g.Input("obs", c.rows, c.in.Size()), nil)
			return op.MSE(out, g.Input("target", c.rows, c.actions)), nil
		})
		copy(p.Input("obs"), noise(r, c.rows*c.in.Size()))
		copy(p.Input("target"), noise(r, c.rows*c.actions))
		fmt.Println(c.name)
		p.Profile(50)
	}
	for _, c := range benchCases()[:3] {
		for name, l := range map[string]learner{"td": tdLearner(t, c, 64, false), "ppo": ppoLearner(t, c, 64)} {
			p := l.program(t, tensor.Float32)
			fmt.Println(c.name, name)
			p.Profile(50)
		}
	}
}
