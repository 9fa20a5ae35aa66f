//go:build race

package rlscheduler

const raced = true
