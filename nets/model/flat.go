package model

import (
	"fmt"

	"clustergym/nets/layer"
	"clustergym/nets/op"
)

// criticFlat is the value of Config.Critic whose trunk sees one number of each slot.
const criticFlat = "flat"

// flat adds one number for each slot of the tables, by a hidden layer and an output like those that score actions, and
// returns them side by side.
func (b *builder) flat(prefix string, tables []slotTable) int {
	var all []int
	for i, t := range tables {
		suffix := ""
		if i > 0 {
			suffix = fmt.Sprint(".", i)
		}
		hidden := b.rowsDense(prefix+"value.slot"+suffix, t, b.cfg.SlotHidden, layer.GainHidden, b.cfg.act())
		each := b.unpacked(t, b.rowsDense(prefix+"value.each"+suffix, slotTable{hidden, t.rows, t.live}, 1, 1, op.Identity))
		all = append(all, b.value(t.rows, &Same{each}))
	}
	return b.concat(1, all)
}
