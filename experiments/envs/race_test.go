//go:build race

package envs

// raceDetector makes everything several times slower and memory larger, so tests of figures leave out what says nothing
// new about goroutines.
const raceDetector = true
