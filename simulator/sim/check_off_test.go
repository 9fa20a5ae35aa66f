//go:build !invariants

package sim_test

// checked reports whether the books are checked after every change, which allocates.
const checked = false
