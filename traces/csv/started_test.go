package csv

import (
	"testing"
	"time"

	"clustergym/traces"
)

// unstarted clears the recorded starts of jobs.
func unstarted(jobs []traces.Job) []traces.Job {
	for i := range jobs {
		jobs[i].Started, jobs[i].Waited = false, 0
	}
	return jobs
}

// A column of starts says how long jobs waited, with a duration or an end beside it, in any clock; a start before the
// submit, or none, says nothing.
func TestRecordedStarts(t *testing.T) {
	for _, text := range []string{
		"submit_time,start_time,end_time,num_gpu\n1000,1010,1110,1\n1020,1020,1030,1\n",
		"submit_time,start_time,duration,num_gpu\n1000,1010,100,1\n1020,1020,10,1\n",
		"submit_time,start_time,end_time,num_gpu\n2024-03-01 12:00:00,2024-03-01 12:00:10,2024-03-01 12:01:50,1\n" +
			"2024-03-01 12:00:20,2024-03-01 12:00:20,2024-03-01 12:00:30,1\n",
	} {
		jobs, err := read(t, text, Options{})
		if err != nil || len(jobs) != 2 || !jobs[0].Started || jobs[0].Waited != 10*time.Second || !jobs[1].Started ||
			jobs[1].Waited != 0 {
			t.Errorf("%s: %+v, %v", text, jobs, err)
		}
	}
	for _, text := range []string{
		"submit_time,start_time,duration,num_gpu\n1000,900,100,1\n", "submit_time,start_time,duration,num_gpu\n1000,,100,1\n",
		"submit_time,duration,num_gpu\n1000,100,1\n",
	} {
		if jobs, err := read(t, text, Options{}); err != nil || len(jobs) != 1 || jobs[0].Started {
			t.Errorf("%s: %+v, %v", text, jobs, err)
		}
	}
}
