package simulate

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"clustergym/internal/texttable"
	"clustergym/lab/report"
	"clustergym/lab/workload"
	"clustergym/simulator/metrics"
)

// WriteTable writes the runs as a text table: one row for each policy with its admission, with one unit of time in each
// column.
func (r *Report) WriteTable(w io.Writer) error {
	if len(r.Runs) == 0 {
		return nil
	}
	first := &r.Runs[0]
	var b strings.Builder
	fmt.Fprintf(&b, "workload   %s\n", r.Info)
	fmt.Fprintf(&b, "cluster    %s\n", first.Cluster)
	fmt.Fprintf(&b, "placement  %s\n", first.Placement)
	fmt.Fprintf(&b, "%s  %s\n", report.EstimatesKey, r.estimates())
	if s := r.stops(); s != "" {
		fmt.Fprintf(&b, "stops      %s\n", s)
	}
	if t := first.Trace; t.Refused > 0 {
		fmt.Fprintf(&b, "jobs       %d read, %d refused: %s of the GPU time\n", t.Jobs, t.Refused,
			workload.Percent(t.RefusedShare))
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	header, rows := r.table()
	err := texttable.Write(w, header, rows, 1, "first wait", "JCT p50", "JCT p90", "communication", "makespan",
		"migrations", "preemptions",
		"work lost", "failures", "finished", "wait mean", "GPUs used", "bounded slowdown", "JCT p99", "deadlines missed")
	if below := report.Below(first.Estimates, r.knowledge()); err == nil && below != "" {
		_, err = io.WriteString(w, "\n"+below)
	}
	return err
}

// meanJCT is the column by which policies are compared.
const meanJCT = "JCT mean"

// columns are those of the table. Rare ones are usually zero, and appear if one run has another value.
var columns = []struct {
	name   string
	format func(vs []float64) (unit string, cells []string)
	of     func(m *metrics.Summary) float64
	rare   bool
}{
	{meanJCT, timeCells, func(m *metrics.Summary) float64 { return m.JCT.Mean }, false},
	{"JCT p50", timeCells, func(m *metrics.Summary) float64 { return m.JCT.P50 }, false},
	{"JCT p90", timeCells, func(m *metrics.Summary) float64 { return m.JCT.P90 }, false},
	{"JCT p99", timeCells, func(m *metrics.Summary) float64 { return m.JCT.P99 }, false},
	{"wait mean", timeCells, func(m *metrics.Summary) float64 { return m.Wait.Mean }, false},
	{"first wait", timeCells, func(m *metrics.Summary) float64 { return m.FirstWait.Mean }, false},
	{"bounded slowdown", numberCells, func(m *metrics.Summary) float64 { return m.BoundedSlowdown.Mean }, false},
	{"makespan", timeCells, func(m *metrics.Summary) float64 { return m.Makespan }, false},
	{"GPUs used", percentCells, func(m *metrics.Summary) float64 { return m.Utilization }, false},
	{"communication", percentCells, func(m *metrics.Summary) float64 { return m.Communication }, true},
	{"migrations", countCells, func(m *metrics.Summary) float64 { return float64(m.Migrations) }, true},
	{"failures", countCells, func(m *metrics.Summary) float64 { return float64(m.Failures) }, true},
	{"work lost", timeCells, func(m *metrics.Summary) float64 { return m.Lost }, true},
	{"deadlines missed", countCells, func(m *metrics.Summary) float64 { return float64(m.DeadlineMisses) }, true},
	{"preemptions", countCells, func(m *metrics.Summary) float64 { return float64(m.Preemptions) }, false},
	{"finished", countCells, func(m *metrics.Summary) float64 { return float64(m.Finished) }, false},
	{"unfinished", countCells, func(m *metrics.Summary) float64 { return float64(m.Unfinished) }, true},
}

// table returns the cells of WriteTable's table: a row for each run, its name first.
func (r *Report) table() (header []string, rows [][]string) {
	header, rows = []string{"policy"}, make([][]string, len(r.Runs))
	for i := range r.Runs {
		row := r.Runs[i].row()
		rows[i] = []string{row.Shown(r.Runs[i].Estimates)}
	}
	add := func(name string, cells []string) {
		header = append(header, name)
		for i := range rows {
			rows[i] = append(rows[i], cells[i])
		}
	}
	for _, c := range columns {
		vs, none := make([]float64, len(r.Runs)), true
		for i := range r.Runs {
			vs[i] = c.of(&r.Runs[i].Metrics)
			none = none && vs[i] == 0
		}
		if none && c.rare {
			continue
		}
		unit, cells := c.format(vs)
		add(c.name+unit, cells)
		if c.name == meanJCT {
			r.gap(func(cells []string) { add("gap to exact", cells) })
		}
	}
	return header, rows
}

// timeCells formats seconds in the largest unit in which the smallest positive value is at least 2.
func timeCells(seconds []float64) (unit string, cells []string) {
	least := math.Inf(1)
	for _, v := range seconds {
		if v > 0 {
			least = min(least, v)
		}
	}
	size, unit := 1.0, " (s)"
	for _, u := range []struct {
		size float64
		unit string
	}{{60, " (min)"}, {3600, " (h)"}, {86400, " (d)"}} {
		if least >= 2*u.size && !math.IsInf(least, 1) {
			size, unit = u.size, u.unit
		}
	}
	vs := make([]float64, len(seconds))
	for i, v := range seconds {
		vs[i] = v / size
	}
	_, cells = numberCells(vs)
	return unit, cells
}

// numberCells formats numbers with as many decimals as the smallest nonzero value needs for three digits, at most
// three.
func numberCells(vs []float64) (unit string, cells []string) {
	least := math.Inf(1)
	for _, v := range vs {
		if v != 0 {
			least = min(least, math.Abs(v))
		}
	}
	places := 0
	switch {
	case least < 1:
		places = 3
	case least < 10:
		places = 2
	case least < 1000:
		places = 1
	}
	return eachCell(vs, 1, places, "")
}

// percentCells formats shares in percent.
func percentCells(vs []float64) (unit string, cells []string) { return eachCell(vs, 100, 1, " %") }

// countCells formats whole numbers.
func countCells(vs []float64) (unit string, cells []string) { return eachCell(vs, 1, 0, "") }

// eachCell formats numbers, times factor, with so many decimal places and what stands behind them.
func eachCell(vs []float64, factor float64, places int, behind string) (unit string, cells []string) {
	for _, v := range vs {
		cells = append(cells, strconv.FormatFloat(factor*v, 'f', places, 64)+behind)
	}
	return "", cells
}

// gap calls show with how far each mean JCT is above that of a run which searched for the optimum, if there is such a
// run.
func (r *Report) gap(show func(cells []string)) {
	for i := range r.Runs {
		best := &r.Runs[i]
		if best.Proven == nil || best.Metrics.JCT.Mean <= 0 {
			continue
		}
		cells := make([]string, len(r.Runs))
		for k := range r.Runs {
			cells[k] = fmt.Sprintf("%+.2f %%", 100*(r.Runs[k].Metrics.JCT.Mean/best.Metrics.JCT.Mean-1))
		}
		cells[i] = "proven"
		if !*best.Proven {
			cells[i] = "not proven"
		}
		show(cells)
		return
	}
}
