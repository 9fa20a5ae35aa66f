// Package raced tells tests whether the race detector is on, which makes everything about ten times slower and does not
// watch other programs, and leaves out under it what it has nothing to find in.
package raced

import (
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
)

// Alone says that a test runs in one goroutine, in which no race can be. With the race detector it skips the test,
// which make unit runs. make alone runs such tests by themselves, with CLUSTERGYM_ALONE set: there a test fails if it has
// started a goroutine after all. (After other tests, what these have left running may start some at any time.) Subtests
// are goroutines too, so where there are some, each says it for itself.
func Alone(t testing.TB) {
	t.Helper()
	if On {
		t.Skip("one goroutine, in which no race can be; make unit runs this test")
	}
	if os.Getenv("CLUSTERGYM_ALONE") == "" {
		return
	}
	settle()
	before := created()
	t.Cleanup(func() {
		if n := int(created() - before); n > own() && !t.Failed() {
			t.Errorf("the test has started %d goroutines: the race detector must see it", n)
		}
	})
}

// settle has the runtime start the goroutines that it starts when they are first needed: those of collections,
// finalizers and cleanups.
func settle() {
	runtime.SetFinalizer(new([64]byte), func(*[64]byte) {})
	runtime.AddCleanup(new([64]byte), func(int) {}, 0)
	runtime.GC()
}

// own returns how many goroutines the runtime may start later by itself: the first cleanup has started one, and there
// is one for every four processors at most.
func own() int { return max(0, runtime.GOMAXPROCS(0)/4-1) }

// created returns how many goroutines have been started since the program began.
func created() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
