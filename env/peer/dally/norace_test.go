//go:build !race

package dally

// raced says that the race detector runs, which slows everything down tenfold.
const raced = false
