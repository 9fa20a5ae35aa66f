package model

import (
	"clustergym/nets/layer"
	"clustergym/nets/op"
)

// criticFlat is the value of Config.Critic whose trunk sees one number of each slot.
const criticFlat = "flat"

// flat adds one number for each slot of y, by a hidden layer and an output like those that score actions, and returns them
// side by side.
func (b *builder) flat(prefix string, y body) int {
	k := b.slots()
	hidden := b.dense(prefix+"value.slot", y.slots, k, b.cfg.SlotHidden, layer.GainHidden, true, b.cfg.act())
	each := b.dense(prefix+"value.each", hidden, k, 1, 1, true, op.Identity)
	return b.value(k, func(out int) layerOf { return &flatten{in: each, out: out, width: k} })
}
