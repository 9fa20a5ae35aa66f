package model

import (
	"slices"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
)

// grouped is a network for jobSelect whose convolutions follow the groups of columns, or name the same kernels.
func grouped(explicit bool) Config {
	queue, cluster := Conv{Filters: 6}, Conv{Filters: 5}
	if explicit {
		queue.Kernel, queue.Stride = [2]int{20, 8}, [2]int{20, 8}
		cluster.Kernel, cluster.Stride = [2]int{20, 4}, [2]int{20, 4}
	}
	return Config{
		Kind: "cnn", Hidden: []int{16}, Activation: "relu", Head: "slots", SlotHidden: 8,
		Branches: []Branch{
			{Field: "queue", Slots: true, Convs: []Conv{queue}},
			{Field: "cluster", Convs: []Conv{cluster}, Dense: []int{7}},
		},
	}
}

// groups returns jobSelect's observation with k slots of m columns on machines of so many GPUs.
func groups(k, m, machines, gpus int) Input {
	return Input{
		{Name: "cluster", Shape: []int{20, machines * gpus}, Group: gpus}, {Name: "global", Shape: []int{8}},
		{Name: "jobs", Shape: []int{k, 10}}, {Name: "queue", Shape: []int{20, k * m}, Group: m},
	}
}

// A convolution that follows the groups is the one with kernel and stride [rows, group]: same names, shapes and draws.
func TestAConvolutionWithoutKernelIsTheOneOfItsGroup(t *testing.T) {
	in := groups(10, 8, 8, 4)
	for _, separate := range []bool{false, true} {
		a, b := grouped(false), grouped(true)
		a.Separate, b.Separate = separate, separate
		x, err := NewActorCritic(a, in, 11, rng.Stream(3, "groups"))
		if err != nil {
			t.Fatal(err)
		}
		y, err := NewActorCritic(b, in, 11, rng.Stream(3, "groups"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x.Params().Data, y.Params().Data) {
			t.Error("initial weights differ")
		}
		for i, v := range x.Params().Views {
			if w := y.Params().Views[i]; v.Name != w.Name || !slices.Equal(v.Shape, w.Shape) {
				t.Errorf("%s %v, want %s %v", v.Name, v.Shape, w.Name, w.Shape)
			}
		}
	}
}

// The same configuration serves any size of slots, machines and queue, except where the number of slots' positions is
// wrong.
func TestConvolutionsFollowTheObservation(t *testing.T) {
	for _, c := range []struct{ k, m, machines, gpus int }{{10, 8, 8, 4}, {10, 16, 16, 8}, {4, 64, 16, 8}, {2, 1, 1, 1},
		{10, 7, 3, 2}} {
		if _, err := NewActorCritic(grouped(false), groups(c.k, c.m, c.machines, c.gpus), c.k+1,
			rng.Stream(3, "groups")); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := NewQNet(grouped(false), groups(c.k, c.m, c.machines, c.gpus), c.k+1, true,
			rng.Stream(3, "groups")); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestAKernelThatDoesNotFitNamesWhatWould(t *testing.T) {
	with := func(change func(*Config)) Config {
		c := grouped(true)
		c.Branches = slices.Clone(c.Branches)
		for i := range c.Branches {
			c.Branches[i].Convs = slices.Clone(c.Branches[i].Convs)
		}
		change(&c)
		return c
	}
	none := groups(10, 8, 8, 4)
	none[3].Group = 0
	for what, c := range map[string]struct {
		cfg  Config
		in   Input
		want string
	}{
		"slots have other widths": {grouped(true), groups(10, 16, 8, 4),
			"branches[0].convs[0].kernel: got [20 8], want the rows and columns of one slot of field queue, [20 16]; or no kernel, stride and pad"},
		"larger than the image": {with(func(c *Config) { c.Branches[0].Convs[0].Kernel = [2]int{30, 8} }),
			groups(10, 8, 8, 4),
			"branches[0].convs[0].kernel: got [30 8], want at most the image and its padding, [20 80]; or no kernel"},
		"no groups": {grouped(false), none,
			"branches[0].convs[0].kernel: got \"nothing\", want [down, across]: the columns of field queue form no groups"},
		"a stride alone": {with(func(c *Config) { c.Branches[0].Convs[0].Kernel = [2]int{} }), groups(10, 8, 8, 4),
			"branches[0].convs[0].stride: got [20 8], want nothing without a kernel"},
		"half a kernel": {with(func(c *Config) { c.Branches[0].Convs[0].Kernel = [2]int{20, 0} }), groups(10, 8, 8, 4),
			"branches[0].convs[0].kernel: got [20 0], want two numbers from 1 to 1024"},
		"a second layer without": {with(
			func(c *Config) { c.Branches[0].Convs = append(c.Branches[0].Convs, Conv{Filters: 2}) }), groups(10, 8, 8, 4),
			"branches[0].convs[1].kernel: got [0 0], want two numbers"},
	} {
		_, err := NewActorCritic(c.cfg, c.in, 11, rng.Stream(3, "groups"))
		if all := fault.All(err); len(all) != 1 || !strings.HasPrefix(all[0].Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}
