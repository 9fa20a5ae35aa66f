//go:build !race

package envs

const raceDetector = false
