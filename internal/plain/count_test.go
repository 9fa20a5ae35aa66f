package plain

import "testing"

func TestOneThingIsNoMany(t *testing.T) {
	for n, want := range map[int]string{0: "0 jobs wait", 1: "1 job waits", 2: "2 jobs wait", -1: "-1 jobs wait"} {
		if got := Count(n, "job waits", "jobs wait"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
