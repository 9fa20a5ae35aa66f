//go:build !race

package estimates

const raced = false
