package csv

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

// workerNames are what people call the column of how many workers, nodes or replicas a job has, as plain returns them.
var workerNames = plains([]string{"worker_num", "workers", "num_workers", "worker", "num_worker", "worker_count",
	"n_workers", "gpu_workers", "replicas", "replica", "num_replica", "num_replicas", "replica_count", "replica_num",
	"nodes", "num_node", "num_nodes", "node_num", "n_nodes", "nnodes", "node_count", "instances", "num_instance",
	"num_instances", "instance_num", "inst_num", "instance_count",
	"tasks", "num_task", "num_tasks", "n_tasks", "task_num", "ntasks", "task_count", "pods", "num_pod", "num_pods",
	"pod_num", "pod_count", "parallelism", "completions", "gang_size", "processes", "num_processes", "num_ranks",
	"num_hosts", "hosts", "host_num",
	"num_machines", "machines", "alloc_nodes", "req_nodes"})

// notes counts what a file has that its user should look at, although it can be read.
type notes struct {
	workers  []worker
	check    bool // durations are compared with start and end
	queued   odd  // durations that contain the wait
	differs  odd  // durations that differ from end less start in another way
	latin    odd  // names that are not UTF-8
	latinCol string
	jobs     int
	short    int // jobs that ran, for less than a second
}

// odd counts rows; line is the first.
type odd struct{ n, line int }

func (o *odd) add(line int) {
	if o.n++; o.n == 1 {
		o.line = line
	}
}

// worker is a column of numbers of workers that is not read.
type worker struct {
	at   int
	name string
	most int64
	line int // of the first that is above 1
}

// begin looks at the header. given says that the user chose the column of durations.
func (n *notes) begin(d *Reader, given bool) {
	n.check = d.at[colDuration] >= 0 && !given && !d.between && d.at[colStart] >= 0 && d.at[colEnd] >= 0
	if d.at[colWorkers] >= 0 || d.o.WholeJobs {
		return
	}
	for i, name := range d.rows.Columns() {
		if slices.Contains(workerNames, plain(name)) && !slices.Contains(d.at[:colNodes], i) {
			n.workers = append(n.workers, worker{at: i, name: name})
		}
	}
}

// job looks at a row that is a job.
func (n *notes) job(d *Reader, j *traces.Job) {
	for i := range n.workers {
		w := &n.workers[i]
		if v, _, err := d.rows.Decimal(w.at, 0); err == nil && v > 1 {
			if w.line == 0 {
				w.line = d.rows.Line()
			}
			w.most = max(w.most, v)
		}
	}
	n.jobs++
	if j.Work > 0 && j.Work < time.Second {
		n.short++
	}
}

func (n *notes) foreign(d *Reader, col int) {
	if n.latin.add(d.rows.Line()); n.latin.n == 1 {
		n.latinCol = d.rows.Columns()[d.at[col]]
	}
}

// compare returns the run time of a row whose column of durations says work. If start and end of the job differ from
// that, and work is the time from submit to end, it contains the wait: the run time is end less start.
func (n *notes) compare(d *Reader, work time.Duration) time.Duration {
	if !n.check {
		return work
	}
	start, ok := d.soft(colStart)
	end, ok2 := d.soft(colEnd)
	if !ok || !ok2 {
		return work
	}
	run, ok := traces.Between(start, end, d.clock == dated)
	whole := start + run - d.last // last is the submit of the row
	const slack = 2 * time.Second // of clocks that are rounded
	switch {
	case !ok || run == work:
		return work
	case whole == work, (run-work).Abs() >= slack && (whole-work).Abs() < slack:
		n.queued.add(d.rows.Line())
		return run
	case (run - work).Abs() >= slack:
		n.differs.add(d.rows.Line())
	}
	return work
}

// soft reads a time of the file's kind; ok is false if the cell holds none.
func (d *Reader) soft(col int) (at time.Duration, ok bool) {
	if d.clock == counted {
		v, _, err := d.rows.Decimal(d.at[col], 9)
		return time.Duration(v), err == nil && v >= 0
	}
	at, zone, ok := traces.ParseDate(d.rows.Text(d.at[col]))
	return at, ok && zone == (d.clock == zoned)
}

// Notes returns sentences about what the file has that its user should look at, as far as it has been read.
func (d *Reader) Notes() []string {
	n, names := &d.notes, d.rows.Columns()
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	col := func(i int) string { return names[d.at[i]] }
	if q := n.queued; q.n > 0 {
		say("%s contains the wait in %s (first in line %d): their run time is %s less %s; --columns %s takes the column as "+
			"it is", col(colDuration), rowsWord(q.n), q.line,
			col(colEnd), col(colStart), argument(colDuration, col(colDuration)))
	}
	if q := n.differs; q.n > 0 {
		say("%s is not %s less %s in %s (first in line %d); the column counts, and --columns %s takes the difference",
			col(colDuration), col(colEnd), col(colStart), rowsWord(q.n), q.line,
			argument(colStart, col(colStart), colEnd, col(colEnd)))
	}
	for _, w := range n.workers {
		if w.line > 0 {
			say("column %s is not used (up to %d, above 1 first in line %d): if %s counts the GPUs of one worker, --columns "+
				"%s multiplies by it", w.name, w.most, w.line, col(colGPU),
				argument(colWorkers, w.name))
		}
	}
	if n.latin.n > 0 {
		say("%s (first %s in line %d) are not UTF-8 and were read as Windows-1252, which holds Latin-1; save the file as "+
			"CSV UTF-8 if that is not its code",
			strings.Replace(rowsWord(n.latin.n), "row", "name", 1), n.latinCol, n.latin.line)
	}
	if n.short > 0 && n.short == n.jobs {
		say("every run time is below a second; the file should have seconds, not days or hours")
	}
	return all
}

func rowsWord(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

// argument returns the value of --columns that maps names of the format, given by index, to those of the file.
func argument(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		parts = append(parts, names[pairs[i].(int)]+"="+pairs[i+1].(string))
	}
	arg := strings.Join(parts, ",")
	if strings.ContainsAny(arg, " |;&()\"") {
		arg = "'" + arg + "'"
	}
	return arg
}
