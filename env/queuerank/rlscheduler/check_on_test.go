//go:build invariants

package rlscheduler_test

// checked says that the simulator checks its books after every change, which takes memory.
const checked = true
