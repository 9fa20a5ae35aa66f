//go:build !race

package maml_test

// raced says that the race detector runs, which slows everything down tenfold.
const raced = false
