//go:build race

package estimates

const raced = true
