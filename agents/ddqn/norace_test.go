//go:build !race

package ddqn

const raceDetector = false
