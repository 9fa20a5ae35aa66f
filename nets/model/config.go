package model

import (
	"fmt"

	"clustergym/internal/fault"
	"clustergym/nets/kernel"
)

// Field is one named part of an observation.
type Field struct {
	Name  string
	Shape []int
	Group int // columns of an image that belong together, 0 = none; see Conv
	// Filled is 1 + the column of a table [rows, columns] that is above 0 in rows that hold something and 0 in empty rows.
	// 0 = there is none; a row of zeros is then empty.
	Filled int
	// Critic marks a field that only the value of an ActorCritic may depend on. Such fields are behind all others.
	Critic bool
}

// Size returns the number of elements.
func (f Field) Size() int {
	n := 1
	for _, d := range f.Shape {
		n *= d
	}
	return n
}

// Input describes the flat observation [N, sum of sizes]: its fields in order, each row-major.
type Input []Field

// public returns the fields that policies see, which come first; ok is false if one is behind a field for critics.
func (in Input) public() (fields Input, ok bool) {
	n := 0
	for n < len(in) && !in[n].Critic {
		n++
	}
	for _, f := range in[n:] {
		if !f.Critic {
			return in[:n], false
		}
	}
	return in[:n], true
}

// Size returns the number of elements of one observation.
func (in Input) Size() int {
	n := 0
	for _, f := range in {
		n += f.Size()
	}
	return n
}

// Config describes a network.
type Config struct {
	// Kind is "mlp", dense layers over the whole flat observation, "cnn", a branch for each field that Branches names, or
	// "attention", a transformer over the rows of tables (see Attention). With cnn, fields that no branch names enter the
	// trunk directly.
	Kind string `yaml:"kind"`
	// Hidden are the widths of the dense layers (for cnn: of the trunk after the branches; for attention: after pooling).
	Hidden []int `yaml:"hidden"`
	// Activation is "relu" or "tanh", applied after every layer except the heads.
	Activation string `yaml:"activation"`
	// LayerNorm puts a layer norm before the activation of each Hidden layer.
	LayerNorm bool `yaml:"layer_norm"`
	// Init is how weights are initialised: "orthogonal", with biases 0, as is usual in PPO, or "fan-in", with weights
	// and biases uniform within 1/sqrt(inputs), which is PyTorch's default and therefore DQN's in most libraries.
	// Empty means "orthogonal".
	Init string `yaml:"init"`
	// Separate gives actor and critic separate networks; otherwise they share everything except their heads. QNet has
	// one body.
	Separate bool `yaml:"separate"`
	// Branches are the branches of kind cnn.
	Branches []Branch `yaml:"branches"`
	// Attention are the sizes of kind attention.
	Attention Attention `yaml:"attention,flow,omitempty"`
	// Head is "dense", one layer from the trunk to all actions, "slots" or "each". With "slots" the first actions-1
	// actions represent slots of a queue and are scored by one small network with shared weights; the last action
	// ("wait") is scored by the trunk. The order of slots then matters only through what they contain. "each" is like
	// slots, but every action represents a slot and the trunk does not see the slots: an action's value depends only
	// on its slot and the other fields, and the number of weights depends neither on the number of slots nor on that
	// of actions. Without other fields each action is scored from its slot alone (RLScheduler's kernel network), and the
	// trunk, which sees the mean and maximum over the slots (see Critic), gives the state's value only.
	Head string `yaml:"head"`
	// SlotHidden is the width of the hidden layer of heads slots and each.
	SlotHidden int `yaml:"slot_hidden"`
	// Critic is what the trunk sees of the slots where it gives the state's value only (head each without other fields):
	// "" for their mean and maximum, or "flat" for one number of each slot, side by side in the order of the slots. The
	// numbers come from a small network with shared weights, of the shape of the one that scores actions. This is
	// RLScheduler's critic; it depends on the number of slots and on their order.
	Critic string `yaml:"critic,omitempty"`
	// SkipEmpty leaves rows of slots that hold nothing (Field.Filled) out of the computation: they have the score 0, and
	// for critic flat the number 0. It is for kind cnn and head each without other fields, and there for critic flat.
	SkipEmpty bool `yaml:"skip_empty,omitempty"`
	// Base, if it names a field, gives actions a fixed score that the network's own is added to.
	Base Base `yaml:"base,omitempty"`
}

// Base is a fixed score of actions: logits, or action values, are the network's output plus it. The network's output
// begins at 0 in every state (the last layer's weights and biases are 0), so that training begins at the policy of the
// base: with minus the estimated run time of a job as its slot's score, at shortest job first. Silver et al. 2018,
// "Residual Policy Learning" (arXiv 1812.06298), do so with the actions of a controller.
type Base struct {
	// Field names an observation field whose rows are slots: [K] or [K, columns]. Action k < K begins slot k. Empty = no
	// base.
	Field string `yaml:"field"`
	// Column is the column of Field that is the slots' score, from 0.
	Column int `yaml:"column"`
	// Scale multiplies it. A negative one prefers small numbers; the larger, the closer to the greedy choice the policy
	// begins.
	Scale float64 `yaml:"scale"`
	// Wait is the score of the actions after the slots, such as waiting. Below every slot's score they begin unlikely.
	Wait float64 `yaml:"wait"`
}

// Branch describes the layers of one field: convolutions, then dense layers.
type Branch struct {
	// Field names the observation field: an image [H, W] of one channel or [H, W, C].
	Field string `yaml:"field"`
	// Convs are the convolutions in order.
	Convs []Conv `yaml:"convs"`
	// Dense are the widths of the dense layers after the convolutions: over the flattened image, or with Slots over
	// each slot's channels with weights shared by the slots.
	Dense []int `yaml:"dense"`
	// Slots makes the branch end in one position for each slot: the last convolution's positions (row by row), or the
	// first dimension of a field without convolutions. With head slots there must be actions-1 positions, with head
	// each as many as actions. Fields with as many positions, one behind the other in the observation, describe the same
	// slots. Several tables may have so many positions together, as the jobs that can start and those that can be stopped:
	// each is then scored by a small network of its own, in the order of the observation's fields.
	Slots bool `yaml:"slots"`
}

// Conv is one convolutional layer. Kernel, stride and zero padding are [down, across]; a stride left out is 1.
//
// The first layer of a branch may leave its kernel out, if the field has groups of columns. It then sees one group at a
// time, over all rows: kernel and stride are [rows, Group], so that the layer follows the observation's size.
type Conv struct {
	Filters int    `yaml:"filters"`
	Kernel  [2]int `yaml:"kernel,flow,omitempty"`
	Stride  [2]int `yaml:"stride,flow,omitempty"`
	Pad     [2]int `yaml:"pad,flow,omitempty"`
}

// grouped reports whether the kernel is left out.
func (c *Conv) grouped() bool { return c.Kernel == [2]int{} }

// DefaultConfig returns the network of CleanRL's PPO: two hidden layers of 64 with tanh, actor and critic separate.
func DefaultConfig() Config {
	return Config{Kind: "mlp", Hidden: []int{64, 64}, Activation: "tanh", Init: "orthogonal", Separate: true,
		Head: "dense", SlotHidden: 64}
}

// Bounds of a single layer: far above what is useful here, and low enough that a network's size can be counted.
const (
	maxWidth  = 65536 // outputs
	maxKernel = 1024  // of a convolution, in either direction
	wantWidth = "a number from 1 to 65536"
)

// Validate reports every fault that is visible without the observation; the constructors report the others.
func (c Config) Validate() error {
	var l fault.List
	l.Add(c.Kind == "mlp" || c.Kind == "cnn" || c.Kind == KindAttention, "kind", c.Kind, `"mlp", "cnn" or "attention"`)
	l.Add(c.Activation == "relu" || c.Activation == "tanh", "activation", c.Activation, `"relu" or "tanh"`)
	l.Add(c.Init == "orthogonal" || c.Init == fanIn || c.Init == "", "init", c.Init, `"orthogonal" or "fan-in"`)
	l.Add(c.Head == "dense" || c.slotted(), "head", c.Head, `"dense", "slots" or "each"`)
	l.Add(c.Critic == "" || c.Critic == criticFlat, "critic", c.Critic, `"flat" or nothing`)
	l.Add(c.Critic != criticFlat || c.Head == "each", "critic", c.Critic, `nothing, except with head "each"`)
	l.Add(!c.SkipEmpty || c.Kind == "cnn" && c.Critic == criticFlat, "skip_empty", c.SkipEmpty,
		"false, except with kind cnn and critic flat")
	widths(&l, "hidden", c.Hidden)
	l.Join("base", c.Base.validate())
	slots := false
	seen := map[string]bool{}
	for i, b := range c.Branches {
		key := fmt.Sprintf("branches[%d]", i)
		l.Add(b.Field != "" && !seen[b.Field], key+".field", b.Field, "the name of a field that no other branch has")
		seen[b.Field] = true
		slots = slots || b.Slots
		widths(&l, key+".dense", b.Dense)
		for j, v := range b.Convs {
			k := fmt.Sprintf("%s.convs[%d]", key, j)
			l.Add(v.Filters > 0 && v.Filters <= maxWidth, k+".filters", v.Filters, wantWidth)
			if v.grouped() && j == 0 {
				l.Add(v.Stride == [2]int{}, k+".stride", v.Stride,
					"nothing without a kernel: both follow the field's groups of columns")
				l.Add(v.Pad == [2]int{}, k+".pad", v.Pad, "nothing without a kernel: it follows the field's groups of columns")
				continue
			}
			l.Add(v.Kernel[0] > 0 && v.Kernel[1] > 0 && max(v.Kernel[0], v.Kernel[1]) <= maxKernel, k+".kernel", v.Kernel,
				fmt.Sprintf("two numbers from 1 to %d, [down, across]", maxKernel))
			l.Add(v.Stride[0] >= 0 && v.Stride[1] >= 0, k+".stride", v.Stride, "two positive numbers, [down, across]")
			l.Add(v.Pad[0] >= 0 && v.Pad[1] >= 0 && v.Pad[0] < max(v.Kernel[0], 1) && v.Pad[1] < max(v.Kernel[1], 1),
				k+".pad", v.Pad, "two numbers from 0 to less than the kernel")
		}
	}
	switch c.Kind {
	case "mlp":
		l.Add(len(c.Branches) == 0, "branches", len(c.Branches), "none with kind mlp")
		l.Add(!c.slotted(), "head", c.Head, `"dense" with kind mlp`)
	case "cnn":
		l.Add(len(c.Branches) > 0, "branches", len(c.Branches), "at least one with kind cnn")
	case KindAttention:
		l.Add(len(c.Branches) == 0, "branches", len(c.Branches), "none with kind attention")
		c.Attention.check(&l)
	}
	l.Add(c.Kind == KindAttention || c.Attention.IsZero(), "attention", fmt.Sprintf("%+v", c.Attention),
		"nothing, or kind attention")
	if c.slotted() {
		l.Add(slots || c.Kind != "cnn", "head", c.Head, `"dense", or a branch with slots: true`)
		l.Add(c.SlotHidden > 0 && c.SlotHidden <= maxWidth, "slot_hidden", c.SlotHidden, wantWidth)
	}
	return l.Err()
}

// validate reports the faults that are visible without the observation.
func (b Base) validate() error {
	var l fault.List
	if b.Field == "" {
		l.Add(b == Base{}, "field", b.Field, "the name of a field, or nothing in base at all")
		return l.Err()
	}
	l.Add(b.Column >= 0, "column", b.Column, "the number of a column, from 0")
	l.Add(b.Scale != 0 && b.Scale >= -1e6 && b.Scale <= 1e6, "scale", b.Scale,
		"a number in [-1e6, 1e6], not 0; negative prefers small numbers")
	l.Add(b.Wait >= -1e6 && b.Wait <= 1e6, "wait", b.Wait, "a number in [-1e6, 1e6]")
	return l.Err()
}

// slotted reports whether actions are scored slot by slot.
func (c *Config) slotted() bool { return c.Head == "slots" || c.Head == "each" }

func widths(l *fault.List, key string, ws []int) {
	for i, w := range ws {
		l.Add(w > 0 && w <= maxWidth, fmt.Sprintf("%s[%d]", key, i), w, wantWidth)
	}
}

const fanIn = "fan-in"

func (c Config) act() kernel.Act {
	if c.Activation == "relu" {
		return kernel.ReLU
	}
	return kernel.Tanh
}
