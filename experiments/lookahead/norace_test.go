//go:build !race

package lookahead

const raced = false
