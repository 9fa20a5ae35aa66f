//go:build race

package conformance

// raceDetector makes everything several times slower, so long tests leave out what says nothing new about goroutines.
const raceDetector = true
