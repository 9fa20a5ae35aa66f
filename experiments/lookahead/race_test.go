//go:build race

package lookahead

const raced = true
