//go:build race

package conformance

// raceDetector makes everything several times slower; what is long then leaves out what adds nothing about goroutines.
const raceDetector = true
