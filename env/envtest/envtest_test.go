package envtest

import (
	"errors"
	"testing"

	"clustergym/env"
)

func TestAGoodEnvironmentPasses(t *testing.T) {
	Run(t, func() env.Env { return newWalk("") }, NoAllocs(), Sealed(), Cap(walkSteps))
}

// TestEveryFaultIsFound breaks the contract in one way at a time; the claim named must fail.
func TestEveryFaultIsFound(t *testing.T) {
	for _, c := range []struct{ fault, claim string }{
		{"bad id", "spec is sane"},
		{"unsorted fields", "spec is sane"},
		{"empty shape", "spec is sane"},
		{"filled of no table", "spec is sane"},
		{"bounds crossed", "spec is sane"},
		{"info not scalar", "spec is sane"},
		{"instances differ in spec", "spec is sane"},
		{"observation is a metric", "spec is sane"},
		{"metric not declared", "episodes keep to the spec"},
		{"never ends", "episodes keep to the spec"},
		{"limit not kept", "episodes keep to the spec"},
		{"first step pays", "episodes keep to the spec"},
		{"kind First in the middle", "episodes keep to the spec"},
		{"reward NaN", "episodes keep to the spec"},
		{"observation out of bounds", "episodes keep to the spec"},
		{"empty rows differ", "episodes keep to the spec"},
		{"nothing legal", "episodes keep to the spec"},
		{"leaves an element unwritten", "episodes keep to the spec"},
		{"info unwritten", "episodes keep to the spec"},
		{"steps without an episode", "step needs an episode"},
		{"seed ignored", "equal episodes give equal bytes"},
		{"episodes depend on order", "episodes of a stream stand alone"},
		{"reads the caller's buffer", "buffers belong to the caller"},
		{"writes to old buffers", "buffers belong to the caller"},
		{"instances share state", "equal episodes give equal bytes"},
		{"instances share state", "instances share nothing"},
		{"illegal action moves", "illegal actions change nothing"},
		{"illegal action writes", "illegal actions change nothing"},
		{"illegal action has another error", "illegal actions change nothing"},
		{"mask not enforced", "illegal actions change nothing"},
		{"box not enforced", "illegal actions change nothing"},
		{"short action panics not", "illegal actions change nothing"},
		{"step ignores ctx", "a cancelled context changes nothing"},
		{"reset ignores ctx", "a cancelled context changes nothing"},
		{"failed reset keeps the episode", "a cancelled context changes nothing"},
		{"close twice", "closed is closed"},
		{"reset after close", "closed is closed"},
		{"step after close", "closed is closed"},
		{"snapshot after close", "closed is closed"},
		{"snapshot moves", "snapshots continue identically"},
		{"snapshot does not append", "snapshots continue identically"},
		{"generator not saved", "snapshots continue identically"},
		{"checksum not checked", "broken snapshots change nothing"},
		{"hostile length allocates", "broken snapshots change nothing"},
		{"restore has another error", "broken snapshots change nothing"},
		{"restore spoils the state", "broken snapshots change nothing"},
		{"restore spoils the time step", "broken snapshots change nothing"},
		{"task of any length", "tasks are part of the episode"},
		{"task out of bounds", "tasks are part of the episode"},
		{"task from elsewhere", "tasks are part of the episode"},
		{"takes any split", "a split that does not exist is refused"},
		{"renders nothing", "rendering only looks"},
		{"rendering changes", "rendering only looks"},
		{"renders anything", "rendering only looks"},
		{"paints before reset", "painting only looks"},
		{"paints any size", "painting only looks"},
		{"paints one colour", "painting only looks"},
		{"paints one picture", "painting only looks"},
		{"paints through", "painting only looks"},
		{"paints over", "painting only looks"},
		{"painting changes", "painting only looks"},
		{"paints after close", "painting only looks"},
		{"no frame rate", "painting only looks"},
		{"allocates", "steps allocate nothing"},
	} {
		shared.Store(0)
		found := false
		for _, claim := range claims {
			if claim.name != c.claim {
				continue
			}
			found = true
			opts := []Option{NoAllocs(), Sealed()}
			if c.fault == "never ends" {
				opts = append(opts, Cap(200))
			}
			err := verify(func() env.Env { return newWalk(c.fault) }, opts, claim.check)
			var s skip
			if err == nil || errors.As(err, &s) {
				t.Errorf("%s: %q does not fail (%v)", c.fault, c.claim, err)
			} else {
				t.Logf("%s: %v", c.fault, err)
			}
		}
		if !found {
			t.Errorf("no claim %q", c.claim)
		}
	}
}

// TestUnsealedSnapshotsMayRestoreToAnotherLegalState: without a checksum, changed bytes may restore to another state,
// provided that it keeps the contract.
func TestUnsealedSnapshotsMayRestoreToAnotherLegalState(t *testing.T) {
	err := verify(func() env.Env { return newWalk("checksum not checked") }, nil, (*suite).brokenSnapshotsChangeNothing)
	if err != nil {
		t.Error(err)
	}
}
