package workload

import (
	"bufio"
	"io"

	"clustergym/traces"
	"clustergym/traces/csv"
)

// heliosColumns are the columns that the logs of Helios and of Acme share.
var heliosColumns = []string{"job_id", "user", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "start_time",
	"end_time", "duration", "queue"}

// openHelios reads such a log as a table of the native format whose columns have other names. duration is not read: it
// is end_time less start_time in all of them but Kalos, where it is end_time less submit_time.
func openHelios(r io.Reader, c *TraceConfig) (traces.Stream, error) {
	b := bufio.NewReaderSize(r, sniffed)
	head, _ := b.Peek(sniffed) // an error comes again
	o := csv.Options{Unsorted: c.Sort, Delimiter: ',', WholeJobs: true,
		Columns: map[string]string{"num_gpu": "gpu_num", "num_cpu": "cpu_num", "status": "state",
			"start_time": "start_time", "end_time": "end_time"}}
	if traces.HasColumns(head, "type") {
		o.Columns["name"] = "type"
	}
	return csv.NewReader(b, c.File, o)
}
