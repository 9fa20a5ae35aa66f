//go:build !invariants

package rltune_test

// checked says that the simulator checks its books after every change, which takes memory.
const checked = false
