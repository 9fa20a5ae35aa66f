//go:build !race

package topdrl

const raced = false
