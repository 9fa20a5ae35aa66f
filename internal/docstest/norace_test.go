//go:build !race

package docstest

// raced reports that the race detector is on. Recipes run other programs, which it does not watch.
const raced = false
