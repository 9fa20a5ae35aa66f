package sacct

import (
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
