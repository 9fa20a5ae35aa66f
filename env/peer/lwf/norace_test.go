//go:build !race

package lwf

// raced reports that the race detector runs, which makes everything ten times slower.
const raced = false
