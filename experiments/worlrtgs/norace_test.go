//go:build !race

package worlrtgs

const raced = false
