package snap

import "golang.org/x/exp/constraints"

// Codec appends numbers to a snapshot or reads them from one, in the same order, so that one function describes both. A
// Codec that appends changes nothing of what it is given.
type Codec struct {
	dst  []byte
	read *Reader // nil = it appends
}

// Appender returns a Codec that appends to dst.
func Appender(dst []byte) *Codec { return &Codec{dst: dst} }

// Codec returns a Codec that reads from r.
func (r *Reader) Codec() *Codec { return &Codec{read: r} }

// Appended returns dst with all that has been appended.
func (c *Codec) Appended() []byte { return c.dst }

// Reads reports whether c reads.
func (c *Codec) Reads() bool { return c.read != nil }

// U64 appends or reads what the function U64 writes; so do the other methods.
func (c *Codec) U64(all ...*uint64) { each(c, U64, (*Reader).U64, all) }

// F64 is for floats.
func (c *Codec) F64(all ...*float64) { each(c, F64, (*Reader).F64, all) }

// Bool is for booleans.
func (c *Codec) Bool(all ...*bool) { each(c, Bool, (*Reader).Bool, all) }

// Bytes is for a list of bytes.
func (c *Codec) Bytes(b *[]byte) { each(c, Bytes, (*Reader).Bytes, []*[]byte{b}) }

// F32 is for the elements of a list, whose length it neither appends nor reads.
func (c *Codec) F32(list []float32) {
	for i := range list {
		each(c, F32, (*Reader).F32, []*float32{&list[i]})
	}
}

func each[T any](c *Codec, write func(dst []byte, v T) []byte, read func(*Reader) T, all []*T) {
	for _, v := range all {
		if c.Reads() {
			*v = read(c.read)
		} else {
			c.dst = write(c.dst, *v)
		}
	}
}

// Ints is for whole numbers of one type, as Int writes them. A number that the type cannot hold is a failure.
func Ints[T constraints.Integer](c *Codec, all ...*T) {
	for _, v := range all {
		if !c.Reads() {
			c.dst = Int(c.dst, int(*v))
			continue
		}
		n := c.read.Int()
		if *v = T(n); int(*v) != n {
			c.read.bad = true
		}
	}
}

// List is for the length of list and its elements, each of which element appends or reads in at least size bytes.
func List[T any](c *Codec, list *[]T, size int, element func(i int, v *T)) {
	if c.Reads() {
		*list = make([]T, c.read.Count(size))
	} else {
		c.dst = Int(c.dst, len(*list))
	}
	for i := range *list {
		element(i, &(*list)[i])
	}
}
