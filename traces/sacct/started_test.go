package sacct

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

// unstarted clears the recorded starts of jobs.
func unstarted(jobs []traces.Job) []traces.Job {
	for i := range jobs {
		jobs[i].Started, jobs[i].Waited = false, 0
		jobs[i].Nodes, jobs[i].Hosts, jobs[i].Eligible = 0, "", 0
	}
	return jobs
}

// A job waited until its first run, also if others follow after a requeue.
func TestRecordedStarts(t *testing.T) {
	jobs, _, err := read(t, "JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES\n"+
		"1|2024-03-01T12:00:00|2024-03-01T12:10:00|2024-03-01T12:11:00|60|REQUEUED|gres/gpu=1\n"+
		"1|2024-03-01T12:00:00|2024-03-01T13:00:00|2024-03-01T13:01:00|60|COMPLETED|gres/gpu=1\n"+
		"2|2024-03-01T12:30:00|2024-03-01T12:30:00|2024-03-01T12:31:00|60|COMPLETED|gres/gpu=1\n")
	if err != nil || len(jobs) != 2 || !jobs[0].Started || jobs[0].Waited != 10*time.Minute || !jobs[1].Started ||
		jobs[1].Waited != 0 {
		t.Errorf("%+v, %v", jobs, err)
	}
}

// Runs says how much was done each time that a job was requeued; a run that did nothing is none.
func TestRunsOfRequeuedJobs(t *testing.T) {
	const text = "JobID|Submit|Start|End|ElapsedRaw|State|AllocTRES\n" +
		"1|2024-03-01T12:00:00|2024-03-01T12:10:00|2024-03-01T12:11:00|60|REQUEUED|gres/gpu=1\n" +
		"1|2024-03-01T12:11:00|Unknown|2024-03-01T12:20:00|0|REQUEUED|gres/gpu=1\n" +
		"1|2024-03-01T12:20:00|2024-03-01T13:00:00|2024-03-01T13:02:00|120|NODE_FAIL|gres/gpu=1\n" +
		"1|2024-03-01T13:02:00|2024-03-01T14:00:00|2024-03-01T14:03:00|180|COMPLETED|gres/gpu=1\n" +
		"2|2024-03-01T12:30:00|2024-03-01T12:30:00|2024-03-01T12:31:00|60|COMPLETED|gres/gpu=1\n"
	for _, runs := range []bool{false, true} {
		d, err := NewReader(strings.NewReader(text), "jobs.txt", Options{Runs: runs})
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := traces.ReadAll(d)
		if err != nil || len(jobs) != 2 {
			t.Fatalf("%+v, %v", jobs, err)
		}
		var want []time.Duration
		if runs {
			want = []time.Duration{time.Minute, 3 * time.Minute}
		}
		if j := jobs[0]; j.Work != 6*time.Minute || j.Waited != 10*time.Minute || !slices.Equal(j.Stops, want) {
			t.Errorf("runs %v: %+v, want 6m of work, stops at %v", runs, j, want)
		}
		if jobs[1].Stops != nil {
			t.Errorf("%+v was requeued", jobs[1])
		}
	}
}
