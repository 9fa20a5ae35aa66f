//go:build race

package run

const raced = true
