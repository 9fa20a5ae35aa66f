//go:build race

package ppo

// raceDetector says that the race detector runs, which allocates.
const raceDetector = true
