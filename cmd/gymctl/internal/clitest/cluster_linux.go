package clitest

import (
	"testing"
	"time"
)

// Eventually waits for something that happens in other processes.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Since(begun) > 6*Patience {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}
