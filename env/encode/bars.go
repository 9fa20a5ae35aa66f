package encode

// bars are the columns of an image. Column c is filled from the first row up: full[c] cells with 1, and the one after
// them with part[c], which is 0 if full[c] is rowCount. Both slices are as long as a row of the image.
type bars struct {
	full []int32
	part []float32
}

const (
	// shortRow is the longest row for which bars are kept on the stack. Longer ones are kept in the Image.
	shortRow = 128
	// longRow is the longest row for which they are kept at all. The queue of an image whose rows are longer is painted
	// job by job: most of its columns are empty.
	longRow = 1024
)

// clear empties all columns.
func (b bars) clear() {
	clear(b.full)
	clear(b.part)
}

// raise draws a bar over column c: of two bars in one column the higher one is seen.
func (b bars) raise(c, full int, part float32) {
	if f := int(b.full[c]); full > f || full == f && part > b.part[c] {
		b.full[c], b.part[c] = int32(full), part
	}
}

// write fills the row-major image dst, of rowCount rows.
func (b bars) write(dst []float32) {
	cols := len(b.full)
	if done := writeFast(dst, b); done < cols {
		b.writeFrom(dst, done)
	}
}

// writeFrom fills the columns from c on. It is the definition of an image; the fast versions are tested against it.
func (b bars) writeFrom(dst []float32, c int) {
	cols := len(b.full)
	if c == 0 {
		clear(dst)
	} else {
		for at := 0; at < len(dst); at += cols {
			clear(dst[at+c : at+cols])
		}
	}
	for ; c < cols; c++ {
		paint(dst, cols, c, b.full[c], b.part[c])
	}
}

// paint draws a bar into an empty column.
func paint(dst []float32, cols, c int, full int32, part float32) {
	at := c
	for range full {
		dst[at] = 1
		at += cols
	}
	if at < len(dst) {
		dst[at] = part
	}
}
