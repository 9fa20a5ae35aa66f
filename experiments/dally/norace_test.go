//go:build !race

package dally

const raced = false
