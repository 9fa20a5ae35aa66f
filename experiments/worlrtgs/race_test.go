//go:build race

package worlrtgs

const raced = true
