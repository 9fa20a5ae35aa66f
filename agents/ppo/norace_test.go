//go:build !race

package ppo

const raceDetector = false
