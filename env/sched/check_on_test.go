//go:build invariants

package sched_test

// checked reports whether the simulator's books are checked after every change, which allocates.
const checked = true
