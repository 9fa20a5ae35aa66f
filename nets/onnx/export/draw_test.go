package export_test

import (
	"fmt"
	"math/rand/v2"

	"pgregory.net/rapid"

	"clustergym/nets/model"
)

// plan is a network that was drawn, with what it is for.
type plan struct {
	cfg     model.Config
	in      model.Input
	actions int
}

// planOf draws a network of any kind that fits its observation.
func planOf(t *rapid.T) plan {
	act := rapid.SampledFrom([]string{"relu", "tanh"}).Draw(t, "act")
	p := plan{cfg: model.Config{
		Kind: rapid.SampledFrom([]string{"mlp", "cnn", "slots", "each", "flat", "attention", "attention"}).Draw(t,
			"kind"), Activation: act,
		Hidden: widths(t, "hidden", 1,
			2), LayerNorm: rapid.Bool().Draw(t, "norm"), Init: rapid.SampledFrom([]string{"orthogonal", "fan-in"}).Draw(t,
			"init"),
		Separate: rapid.Bool().Draw(t, "separate"), Head: "dense", SlotHidden: rapid.IntRange(1, 9).Draw(t, "slot hidden"),
	}}
	kind := p.cfg.Kind
	slots, columns := rapid.IntRange(2, 6).Draw(t, "slots"), rapid.IntRange(2, 5).Draw(t, "columns")
	table := model.Field{Name: "table", Shape: []int{slots, columns}, Filled: rapid.IntRange(0, 1).Draw(t, "filled")}
	other := model.Field{Name: "other", Shape: []int{rapid.IntRange(1, 4).Draw(t, "other")}}
	p.actions = slots + 1
	switch kind {
	case "mlp":
		p.in = model.Input{other, table}
	case "cnn":
		p.cfg.Kind = "cnn"
		image := model.Field{Name: "image",
			Shape: []int{rapid.IntRange(4, 9).Draw(t, "h"), rapid.IntRange(4, 9).Draw(t, "w"),
				rapid.IntRange(1, 3).Draw(t, "c")}}
		p.in = model.Input{image, other}
		var convs []model.Conv
		for range rapid.IntRange(1, 2).Draw(t, "convs") {
			k := [2]int{rapid.IntRange(1, 3).Draw(t, "kh"), rapid.IntRange(1, 3).Draw(t, "kw")}
			convs = append(convs, model.Conv{
				Filters: rapid.IntRange(1,
					9).Draw(t, "filters"), Kernel: k, Stride: [2]int{rapid.IntRange(1, 2).Draw(t, "sh"),
					rapid.IntRange(1, 2).Draw(t, "sw")},
				Pad: [2]int{rapid.IntRange(0, k[0]-1).Draw(t, "ph"), rapid.IntRange(0, k[1]-1).Draw(t, "pw")},
			})
		}
		p.cfg.Branches = []model.Branch{{Field: "image", Convs: convs, Dense: widths(t, "dense", 0, 1)}}
	case "slots", "each", "flat":
		p.cfg.Kind, p.cfg.Head = "cnn", kind
		p.in = model.Input{other, table}
		if rapid.Bool().Draw(t, "groups") {
			rows := rapid.IntRange(1, 3).Draw(t, "group rows")
			table = model.Field{Name: "table", Shape: []int{rows, slots * columns}, Group: columns}
			p.in = model.Input{other, table}
			p.cfg.Branches = []model.Branch{{Field: "table", Convs: []model.Conv{{Filters: 5}}, Dense: widths(t, "dense", 0, 1),
				Slots: true}}
		} else {
			p.cfg.Branches = []model.Branch{{Field: "table", Dense: widths(t, "dense", 0, 2), Slots: true}}
		}
		if kind != "slots" {
			p.actions, p.cfg.Head = slots, "each"
		}
		if kind == "flat" {
			table = model.Field{Name: "table", Shape: []int{slots, columns}, Filled: rapid.IntRange(0, 1).Draw(t, "filled")}
			p.in = model.Input{table}
			p.cfg.Branches = []model.Branch{{Field: "table", Dense: widths(t, "dense", 0, 2), Slots: true}}
			p.cfg.Critic, p.cfg.SkipEmpty = "flat", rapid.Bool().Draw(t, "skip")
		}
	case "attention":
		p.cfg.Head = rapid.SampledFrom([]string{"dense", "slots", "each"}).Draw(t, "head")
		heads := rapid.IntRange(1, 3).Draw(t, "heads")
		p.cfg.Attention = model.Attention{
			Width: heads * rapid.IntRange(4,
				8).Draw(t, "width"), Heads: heads, Layers: rapid.IntRange(1, 2).Draw(t, "layers"), Feed: rapid.IntRange(1,
				9).Draw(t, "feed"),
			Slots: []string{"table"},
		}
		group := rapid.IntRange(1, 3).Draw(t, "group")
		p.in = model.Input{
			{Name: "machines", Shape: []int{rapid.IntRange(1, 3).Draw(t, "rows"),
				group * rapid.IntRange(1, 4).Draw(t, "groups")}, Group: group}, other, table,
			{Name: "running", Shape: []int{rapid.IntRange(1, 4).Draw(t, "running"), 3}, Filled: 2},
		}
		if p.cfg.Head == "each" {
			p.actions = slots
		}
	}
	if kind != "flat" && kind != "cnn" && rapid.Bool().Draw(t, "base") {
		p.cfg.Base = model.Base{Field: "other", Scale: -2, Wait: rapid.Float64Range(-3, 3).Draw(t, "wait")}
		if other.Shape[0] > p.actions {
			p.cfg.Base = model.Base{}
		}
	}
	if rapid.Bool().Draw(t, "truth") {
		p.in = append(p.in, model.Field{Name: "truth", Shape: []int{3}, Critic: true})
	}
	return p
}

func widths(t *rapid.T, name string, low, high int) []int {
	return rapid.SliceOfN(rapid.IntRange(8, 40), low, high).Draw(t, name)
}

// scatter makes parameters that initialisers leave at 0 count.
func scatter(data []float32, r *rand.Rand) {
	for i := range data {
		data[i] += 0.2 * float32(r.NormFloat64())
	}
}

// observations draws n observations with empty rows of tables, and masks with a legal action.
func observations(p *plan, n int, r *rand.Rand) (obs []float32, mask []bool) {
	for range n {
		for _, f := range p.in {
			row := make([]float32, f.Size())
			for k := range row {
				row[k] = float32(r.NormFloat64())
			}
			if len(f.Shape) == 2 && f.Group == 0 {
				for k := range f.Shape[0] {
					full, of := r.IntN(3) > 0, row[k*f.Shape[1]:(k+1)*f.Shape[1]]
					switch {
					case !full && f.Filled > 0:
						of[f.Filled-1] = 0
					case !full:
						clear(of)
					case f.Filled > 0:
						of[f.Filled-1] = 1
					}
				}
			}
			obs = append(obs, row...)
		}
		sure := r.IntN(p.actions)
		for k := range p.actions {
			mask = append(mask, k == sure || r.IntN(2) == 0)
		}
	}
	return obs, mask
}

func (p *plan) String() string {
	return fmt.Sprintf("%+v over %+v, %d actions", p.cfg, p.in, p.actions)
}
