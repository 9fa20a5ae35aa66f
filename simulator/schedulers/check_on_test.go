//go:build invariants

package schedulers_test

// checked reports that the simulator checks its books after every change, which takes memory.
const checked = true
