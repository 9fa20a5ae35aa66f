package steer

import (
	"testing"
	"time"

	"clustergym/live"
	"clustergym/traces"
)

// Priorities grow with a job's age, and forecasts change all the time: a snapshot in which nothing else has changed has
// its digest still.
func TestDigest(t *testing.T) {
	job := func(change func(*live.Job)) *live.Snapshot {
		s := &live.Snapshot{At: time.Unix(5, 0), Jobs: []live.Job{{Job: traces.Job{ID: "a", GPUs: 1, Priority: 4}}}}
		change(&s.Jobs[0])
		return s
	}
	plain := digest(job(func(*live.Job) {}))
	if got := digest(job(func(j *live.Job) { j.Priority, j.Planned = 9, time.Unix(7, 0) })); got != plain {
		t.Errorf("priority and forecast change the digest from %s to %s", plain, got)
	}
	if got := digest(job(func(j *live.Job) { j.Rank = 3 })); got == plain {
		t.Error("a rank does not change the digest")
	}
}
