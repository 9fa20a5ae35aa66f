//go:build race

package ranks

const raced = true
