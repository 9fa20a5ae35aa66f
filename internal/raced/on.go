//go:build race

package raced

// On reports that the race detector is on.
const On = true
