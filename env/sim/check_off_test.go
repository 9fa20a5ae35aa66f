//go:build !invariants

package sim_test

// checked says that the books are checked after every change, which takes memory.
const checked = false
