//go:build !race

package asrpt

const raced = false
