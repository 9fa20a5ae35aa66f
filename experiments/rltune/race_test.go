//go:build race

package rltune

const raced = true
