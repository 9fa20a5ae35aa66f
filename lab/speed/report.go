package speed

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"clustergym/internal/plain"
	"clustergym/internal/texttable"
)

// name returns the name of the row in messages of progress.
func (r *Row) name() string {
	parts := []string{r.Group + ": " + r.What}
	for _, p := range []string{r.Cluster, r.Policy} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

// WriteTable writes the measurements as text tables.
func (r *Report) WriteTable(w io.Writer) error { return texttable.WriteSheets(w, r.sheets()) }

// sheets returns what WriteTable writes.
func (r *Report) sheets() []texttable.Sheet {
	m := &r.Machine
	cpu := ""
	if m.CPU != "" {
		cpu = m.CPU + ", "
	}
	var rows [][]string
	for _, list := range [][]Row{r.Calibration, r.Rows} {
		for i := range list {
			rows = append(rows, list[i].cells())
		}
	}
	how := fmt.Sprintf("best of %d rounds of %v or one run, after a run to warm up", rounds, fullRound)
	if r.Quick {
		how = fmt.Sprintf("best of %d rounds of %v, small workloads: for an impression only", rounds, quickRound)
	}
	sheets := []texttable.Sheet{{
		Above: fmt.Sprintf("machine  %s%s, %s/%s, %s, kernels %s\n", cpu,
			plain.Count(m.Processors, "processor", "processors"), m.OS, m.Arch, m.Go, m.Kernels),
		Header: []string{"what", "cluster", "policy", "jobs", "rate", "unit", "mark", "allocs", "loop steps", "walk steps",
			"CPU"},
		Rows: rows, Left: 3, Least: []string{"walk steps", "loop steps", "CPU", "allocs", "mark", "jobs"},
		Below: fmt.Sprintf(`rate: units of work per second of wall time, %s.
allocs, loop steps, walk steps: of one unit; steps are the processor time of a unit in steps of the first two rows,
measured beside it, by which figures of two machines or moments compare. CPU: processor time over wall time; below
100 %% where something else runs on the machine, and the rate is too low by about as much.
mark: the project's own minimum; of 64 environments and one worker %v of the rate of one environment above, and of two
workers %v times that of one worker in the row before.
`, how, markTogether, markWorkers),
	}}
	if len(r.Queues) > 0 {
		sheets = append(sheets, r.queuesSheet())
	}
	if len(r.Bridge) > 0 {
		sheets = append(sheets, r.bridgeSheets()...)
	}
	if len(r.Ranks) > 0 {
		sheets = append(sheets, r.ranksSheet())
	}
	return sheets
}

// cells returns the row as cells of WriteTable's table.
func (r *Row) cells() []string {
	jobs, mark, allocs, loop, walk, share := "", "", "", "", "", ""
	if r.Jobs > 0 {
		jobs = strconv.Itoa(r.Jobs)
	}
	if r.Mark > 0 {
		mark = thousands(r.Mark)
	}
	if r.Group != "calibration" {
		allocs, loop, walk = strconv.FormatFloat(r.Allocs, 'g', 2, 64), threeDigits(r.Loop), threeDigits(r.Walk)
	}
	if r.CPUShare > 0 {
		share = fmt.Sprintf("%.0f %%", 100*r.CPUShare)
	}
	what := r.What
	if r.PeakMiB > 0 {
		what += fmt.Sprintf(" (%.1f s, peak %.0f MiB)", r.WallS, r.PeakMiB)
	}
	return []string{what, r.Cluster, r.Policy, jobs, thousands(r.Rate), r.Unit, mark, allocs, loop, walk, share}
}

// queuesSheet is the table of the cost of a job by the length of the queue.
func (r *Report) queuesSheet() texttable.Sheet {
	header := []string{"µs per job with so many waiting", "cluster"}
	for _, n := range r.Queues[0].Waiting {
		header = append(header, strconv.Itoa(n))
	}
	header = append(header, "growth")
	var rows [][]string
	for i := range r.Queues {
		q := &r.Queues[i]
		row := []string{q.Policy, q.Cluster}
		for _, s := range q.JobS {
			row = append(row, fmt.Sprintf("%.2f", 1e6*s))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f×", q.JobS[len(q.JobS)-1]/q.JobS[0])))
	}
	return texttable.Sheet{Header: header, Rows: rows, Left: 2}
}

// thousands formats a rate: from 1000 on as a whole number in groups of three digits, below with three digits.
func thousands(v float64) string {
	if v < 1000 {
		return threeDigits(v)
	}
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// threeDigits formats numbers below 100 with three digits, others as whole numbers.
func threeDigits(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// processor returns the system's name of its processors, "" if it cannot be read.
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // open for reading only
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
