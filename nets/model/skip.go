package model

import (
	"clustergym/nets/kernel"
	"clustergym/nets/op"
)

// packed adds the rows of field f, the columns [from, to) of the observation, that hold something. Actor and critic share the list
// of them. The rows of a sequence begin with one that is always there (kernel.ListLive), here a copy of the first slot that nobody
// reads.
func (b *builder) packed(f Field, from, to int) slotTable {
	rows, columns := f.Shape[0], f.Shape[1]
	t := 1 + rows
	if b.live == 0 {
		tables := []kernel.Table{{At: from, Rows: rows, Columns: columns, Filled: f.Filled}}
		b.live = b.value(1+t, func(out int) layerOf { return &liveRows{out: out, tables: tables, t: t} })
	}
	live := b.live
	in := []int{b.columns(from, from+columns), b.columns(from, to)}
	v := b.value(t*columns, func(out int) layerOf {
		return &packLive{live: live, in: in, out: out, rows: []int{1, rows}, t: t, h: columns}
	})
	return slotTable{v, rows, live}
}

// rowsDense adds a dense layer of n outputs with a bias over the rows of t.
func (b *builder) rowsDense(name string, t slotTable, n int, gain float64, act op.Act) int {
	if t.live == 0 {
		return b.dense(name, t.v, t.rows, n, gain, true, act)
	}
	rows := 1 + t.rows
	k := b.width[t.v] / rows
	w, c := b.linear(name, k, n, gain, true)
	return b.value(rows*n, func(out int) layerOf {
		return &denseLive{in: t.v, live: t.live, out: out, w: w, b: c, t: rows, k: k, h: n, act: act}
	})
}

// unpacked adds the numbers of all slots from those of the rows that hold something: 0 where a row does not.
func (b *builder) unpacked(t slotTable, v int) int {
	if t.live == 0 {
		return v
	}
	return b.value(t.rows, func(out int) layerOf {
		return &unpackLive{in: v, live: t.live, out: out, from: 1, rows: t.rows, t: 1 + t.rows, h: 1}
	})
}
