//go:build !race

package rlscheduler

const raced = false
