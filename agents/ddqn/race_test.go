//go:build race

package ddqn

// raceDetector makes arithmetic many times slower; tests that are long on one goroutine leave it out.
const raceDetector = true
