package raced

import (
	"strings"
	"testing"
)

// heard is a test that another test looks at.
type heard struct {
	testing.TB
	cleanup func()
	said    string
	skipped bool
}

func (h *heard) Helper()                   {}
func (h *heard) Failed() bool              { return false }
func (h *heard) Cleanup(f func())          { h.cleanup = f }
func (h *heard) Errorf(f string, _ ...any) { h.said += f }
func (h *heard) Skip(...any)               { h.skipped = true }

func TestATestThatStartsGoroutinesIsNotAlone(t *testing.T) {
	t.Setenv("CLUSTERGYM_ALONE", "1")
	for _, starts := range []int{0, 200} {
		var h heard
		Alone(&h)
		if h.skipped != On {
			t.Fatalf("skipped: %v, with the race detector: %v", h.skipped, On)
		}
		if On {
			return
		}
		done := make(chan bool)
		for range starts {
			go func() { done <- true }()
			<-done
		}
		h.cleanup()
		if strings.Contains(h.said, "has started") != (starts > 0) {
			t.Errorf("%d goroutines: it says %q", starts, h.said)
		}
	}
}
