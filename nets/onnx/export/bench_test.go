package export_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"clustergym/nets/model"
	"clustergym/nets/onnx/export"
	"clustergym/nets/onnx/run"
)

// networks are those of presets, over observations as they have them.
func networks() map[string]plan {
	image := model.Field{Name: "cluster", Shape: []int{20, 32}}
	queue := model.Field{Name: "queue", Shape: []int{20, 80}, Group: 8}
	jobs, global := model.Field{Name: "jobs", Shape: []int{10, 24}, Filled: 1},
		model.Field{Name: "global", Shape: []int{8}}
	slots := model.Config{
		Kind: "cnn", Hidden: []int{128}, Activation: "tanh", Head: "slots", SlotHidden: 64,
		Branches: []model.Branch{
			{Field: "cluster", Convs: []model.Conv{{Filters: 16, Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}, Pad: [2]int{1, 1}}},
				Dense: []int{64}},
			{Field: "queue", Convs: []model.Conv{{Filters: 16}}, Slots: true}, {Field: "jobs", Dense: []int{32}, Slots: true},
		},
	}
	return map[string]plan{
		"mlp": {model.Config{Kind: "mlp", Hidden: []int{64, 64}, Activation: "tanh", Separate: true, Head: "dense"},
			model.Input{{Name: "x", Shape: []int{100}}}, 10},
		"slots": {slots, model.Input{image, global, jobs, queue}, 11},
		"attention": {model.Config{Kind: "attention", Hidden: []int{64}, Activation: "relu", Head: "slots", SlotHidden: 64},
			model.Input{global, jobs, queue}, 11},
	}
}

// BenchmarkForward is a network's own forward pass beside that of its export, per row.
func BenchmarkForward(b *testing.B) {
	for _, name := range []string{"mlp", "slots", "attention"} {
		p := networks()[name]
		r := rand.New(rand.NewPCG(1, 1))
		net, err := model.NewActorCritic(p.cfg, p.in, p.actions, r)
		if err != nil {
			b.Fatal(err)
		}
		m, err := (&export.Policy{Net: net.Describe(), Sizes: []int{p.actions}, NoOp: -1}).Model()
		if err != nil {
			b.Fatal(err)
		}
		prog, err := run.NewContext(context.Background(), m)
		if err != nil {
			b.Fatal(err)
		}
		for _, rows := range []int{1, 64} {
			obs, mask := observations(&p, rows, r)
			b.Run(fmt.Sprintf("%s/%d/own", name, rows), func(b *testing.B) {
				f := net.Forward(rows)
				b.ReportAllocs()
				for b.Loop() {
					f.Run(obs, rows)
				}
			})
			b.Run(fmt.Sprintf("%s/%d/onnx", name, rows), func(b *testing.B) {
				i, err := prog.For(rows)
				if err != nil {
					b.Fatal(err)
				}
				in, _ := i.Input(export.Observation)
				legal, _ := i.Input(export.Mask)
				copy(in.Floats, obs)
				for k := range mask {
					legal.Ints[k] = 1
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := i.Run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
