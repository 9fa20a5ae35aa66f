package topdrl

import (
	"clustergym/nets/model"
)

// networks are the networks that agents can have, by name.
var networks = map[string]func() model.Config{
	// The one of the preset quickstart-exact: small layers that all slots, and all machines, share.
	"shipped": func() model.Config {
		c := base()
		c.Kind, c.Head, c.SlotHidden, c.Hidden = "cnn", "slots", 64, []int{128}
		c.Branches = []model.Branch{
			{Field: "jobs", Slots: true, Dense: []int{32}},
			{Field: "queue", Slots: true, Convs: []model.Conv{{Filters: 16}}},
			{Field: "cluster", Convs: []model.Conv{{Filters: 16}}, Dense: []int{32}},
		}
		return c
	},
	// The precursor's: three convolutions over the images, and a dense layer of 512. Its two images lie side by side in
	// one, here each has its convolutions. The numbers that are in no image go to the dense layer.
	"precursor": func() model.Config {
		c := base()
		convs := []model.Conv{
			{Filters: 32, Kernel: [2]int{3, 3}, Stride: [2]int{2, 2}}, {Filters: 64, Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}},
			{Filters: 64, Kernel: [2]int{2, 2}, Stride: [2]int{2, 2}},
		}
		c.Kind, c.Head, c.Hidden = "cnn", "dense", []int{512}
		c.Branches = []model.Branch{{Field: "cluster", Convs: convs}, {Field: "queue", Convs: convs}}
		return c
	},
	"mlp": func() model.Config {
		c := base()
		c.Kind, c.Head, c.Hidden = "mlp", "dense", []int{256, 256}
		return c
	},
	// The one of the preset jobselect-preempt: no images, and the running gangs are a table too.
	"tables": func() model.Config {
		c := base()
		c.Kind, c.Head, c.SlotHidden, c.Hidden = "cnn", "slots", 64, []int{128}
		c.Branches = []model.Branch{{Field: "jobs", Slots: true, Dense: []int{32}},
			{Field: "running", Slots: true, Dense: []int{32}}}
		return c
	},
}

func base() model.Config {
	c := model.DefaultConfig()
	c.Activation, c.Separate = "relu", false
	return c
}
