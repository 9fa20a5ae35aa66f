//go:build race

package client_test

// raceDetector makes everything several times slower; what is long then leaves out what adds nothing about goroutines.
const raceDetector = true
