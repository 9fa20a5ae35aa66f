//go:build !race

package improper

const raced = false
