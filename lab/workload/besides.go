package workload

import (
	"bytes"
	"regexp"
	"strings"

	"clustergym/traces"
)

// besides says what a file is that lies beside published traces, or is one in a form that is not read here; "" if head
// is the beginning of none that is known.
func besides(head []byte) string {
	line := FirstLine(head)
	switch {
	case line[0] == '[' || line[0] == '{':
		if bytes.Contains(head, []byte(`"jobid"`)) && bytes.Contains(head, []byte(`"attempts"`)) {
			return "this is Philly's cluster_job_log, which is JSON; want a table with a row for each of its attempts: " +
				"job_id, vc, num_gpus, submitted_time, attempt, start_time and end_time " +
				"(format philly-attempts; the GPUs of an attempt are those of all its detail)"
		}
	case dailyVCs(head):
		return "this is Helios' list of the GPUs of each virtual cluster day by day, want a table of jobs (cluster_log.csv)"
	case batchTask.Match(line):
		return "this is Alibaba's batch_task.csv of 2018, which has no header; put this line before it: " +
			"task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem"
	case bytes.Count(head, []byte{0}) > len(head)/4:
		return "every other byte is 0, as in UTF-16 text or in a binary file; want text in UTF-8 (spreadsheets call it CSV " +
			"UTF-8)"
	}
	return ""
}

// batchTask is a row of that table.
var batchTask = regexp.MustCompile(`^[^,]+,[0-9]*,j_[0-9]+,[0-9]*,[A-Z][a-z]+,[0-9]+,[0-9]+,[0-9.]*,[0-9.]*$`)

// dailyVCs reports whether head begins with Helios' table of the GPUs of virtual clusters, one row for each day.
func dailyVCs(head []byte) bool {
	line := string(traces.HeaderLine(head))
	return strings.HasPrefix(line,
		"date,") && strings.HasSuffix(strings.TrimSpace(line), ",total") && strings.Contains(line, ",vc")
}
