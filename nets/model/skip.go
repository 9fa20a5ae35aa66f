package model

import (
	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// packed adds the rows of field f, the columns [from, to) of the observation, that hold something. Actor and critic
// share the list of them. The rows of a sequence begin with one that is always there (kernel.ListLive), here a copy of
// the first slot that nobody reads.
func (b *builder) packed(f Field, from, to int) slotTable {
	rows, columns := f.Shape[0], f.Shape[1]
	t := 1 + rows
	if b.live == 0 {
		tables := []kernel.Table{{At: from, Rows: rows, Columns: columns, Filled: f.Filled}}
		b.live = b.value(1+t, &LiveRows{tables, t})
	}
	in := []int{b.columns(from, from+columns), b.columns(from, to)}
	v := b.value(t*columns, &Pack{b.live, in, []int{1, rows}, t, columns})
	return slotTable{v, rows, b.live}
}

// rowsDense adds a dense layer of n outputs with a bias over the rows of t.
func (b *builder) rowsDense(name string, t slotTable, n int, gain float64, act op.Act) int {
	if t.live == 0 {
		return b.dense(name, t.v, t.rows, n, gain, true, act)
	}
	return b.denseLive(name, t.v, t.live, 1+t.rows, n, gain, act)
}

// unpacked adds the numbers of all slots from those of the rows that hold something: 0 where a row does not.
func (b *builder) unpacked(t slotTable, v int) int {
	if t.live == 0 {
		return v
	}
	return b.value(t.rows, &Unpack{In: v, Live: t.live, From: 1, Rows: t.rows, All: 1 + t.rows, Columns: 1})
}
