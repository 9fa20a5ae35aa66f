//go:build race

package experiments

// raced says that the race detector runs, which slows training down tenfold.
const raced = true
