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
// which make unit runs. make alone runs such tests by themselves, with CLUSTERGYM_ALONE set, and there a test fails
// that has started goroutines after all. (After other tests it could not tell, because what these have left running may
// start some at any time.) Subtests are goroutines too, so where there are some, each says it for itself.
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

// own returns how many goroutines the runtime and libraries may start by themselves at some time: for cleanups one for
// every four processors, and a few for reading compressed files.
func own() int { return runtime.GOMAXPROCS(0)/4 + 3 }

// created returns how many goroutines have been started since the program began.
func created() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
