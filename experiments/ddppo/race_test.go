//go:build race

package ddppo

const raced = true
