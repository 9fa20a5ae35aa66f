package encode

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

// writeFast writes as many columns as it can, from the first on, and returns how many. The number of instructions does
// not depend on the bars, so there is no branch to predict: in a batch of environments each call sees other bars than
// the last.
func writeFast(dst []float32, b bars) int {
	cols := len(b.full)
	if !hasAVX2 || cols < 8 || len(b.part) < cols || len(dst) < rowCount*cols {
		return 0
	}
	writeAVX2(&dst[0], cols, &b.full[0], &b.part[0], cols/8)
	return cols &^ 7
}

// writeAVX2 writes the first 8·blocks columns of an image of cols columns and rowCount rows.
//
//go:noescape
func writeAVX2(dst *float32, cols int, full *int32, part *float32, blocks int)
