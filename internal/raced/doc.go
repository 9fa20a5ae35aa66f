// Package raced tells tests whether the race detector is on, which makes everything about ten times slower and does not
// watch other programs.
package raced
