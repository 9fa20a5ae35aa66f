//go:build !race

package lwf

const raced = false
