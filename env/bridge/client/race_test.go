//go:build race

package client_test

// raceDetector makes everything several times slower, so long tests leave out what says nothing new about goroutines.
const raceDetector = true
