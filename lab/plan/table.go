package plan

import (
	"fmt"
	"io"
	"slices"

	"clustergym/internal/texttable"
)

// WriteTable writes a text table with a row for each result. If there is a single result of at most 40 tasks, a second
// table lists its placements by start.
func WriteTable(w io.Writer, results []*Result) error {
	var rows [][]string
	for _, r := range results {
		d := &r.Document
		note := ""
		if d.Proven {
			note = "optimal"
		}
		rows = append(rows, []string{
			d.Graph, d.Policy, note, fmt.Sprint(d.Tasks), fmt.Sprint(d.Edges), fmt.Sprint(d.Processors),
			fmt.Sprint(r.Plan.Used()),
			fmt.Sprintf("%.6g", d.Makespan), fmt.Sprintf("%.3g", d.Makespan/bestOf(results, d.Graph)), texttable.Wall(d.Wall),
		})
	}
	header := []string{"graph", "policy", "", "tasks", "edges", "GPUs", "used", "makespan s", "× best", "planning"}
	if err := texttable.Write(w, header, rows, 3, "planning", "edges", "used", "tasks"); err != nil {
		return err
	}
	const shown = 40
	if len(results) != 1 || results[0].Document.Tasks > shown {
		return nil
	}
	places := slices.Clone(results[0].Document.Placements)
	slices.SortStableFunc(places, func(a, b Placement) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
	rows = rows[:0]
	for _, p := range places {
		rows = append(rows, []string{p.Task, p.Processor, fmt.Sprintf("%.6g", p.Start), fmt.Sprintf("%.6g", p.Finish)})
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return texttable.Write(w, []string{"task", "GPU", "start s", "finish s"}, rows, 2)
}

// bestOf returns the least makespan among the results of one graph, or 1 if every makespan is 0: callers divide by it.
func bestOf(results []*Result, graph string) float64 {
	best := 0.0
	for _, r := range results {
		if d := &r.Document; d.Graph == graph && (best == 0 || d.Makespan < best) {
			best = d.Makespan
		}
	}
	if best == 0 {
		return 1
	}
	return best
}
