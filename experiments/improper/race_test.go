//go:build race

package improper

const raced = true
