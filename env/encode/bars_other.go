//go:build !amd64

package encode

// writeFast writes no column.
func writeFast([]float32, bars) int { return 0 }
