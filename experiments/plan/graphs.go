package plan

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"clustergym/env/dag"
	daglibaba "clustergym/env/dag/alibaba"
	"clustergym/env/dag/dagjson"
	"clustergym/env/dag/wfformat"
	"clustergym/experiments/texttable"
	"clustergym/experiments/workload"
	"clustergym/traces"
	"clustergym/traces/alibaba"
)

// The formats of task graphs.
const (
	formatDAG      = "dag-json"
	formatWorkflow = "wfformat"
	formatAlibaba  = "alibaba"
)

// GraphFormats are the names of formats of task graphs.
func GraphFormats() []string {
	return []string{workload.FormatAuto, formatDAG, formatWorkflow, formatAlibaba}
}

// graphSource gives the graphs of a file one after the other. at is where a graph stands, for messages.
type graphSource struct {
	io.Closer
	next func() (g *dag.Graph, own *dag.Platform, at string, err error)
}

// headBytes is how much of a file is looked at to know its format. The first key of a graph in dag-json may be a long
// list, so it need not be enough to tell the two kinds of JSON apart by what is in them; see sniffGraph.
const headBytes = 1 << 16

// openGraphs opens a file, packed or not.
func openGraphs(ctx context.Context, path, format string) (*graphSource, error) {
	if err := existing("graph", path); err != nil {
		return nil, err
	}
	f, err := traces.OpenFile(path) // it also unpacks
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	r := bufio.NewReaderSize(workload.NewCtxReader(ctx, f), headBytes)
	if format == workload.FormatAuto {
		head, err := r.Peek(headBytes)
		if err != nil && err != io.EOF {
			_ = f.Close() // the fault is the one to tell
			return nil, &workload.InputError{Err: err}
		}
		format = sniffGraph(head)
	}
	s := &graphSource{Closer: f}
	switch format {
	case formatDAG:
		d := dagjson.NewReader(r, path)
		s.next = func() (*dag.Graph, *dag.Platform, string, error) {
			in, err := d.Next()
			if err != nil {
				return nil, nil, "", err
			}
			at := fmt.Sprintf("%s, line %d", path, in.Line)
			if in.Graph.Name != "" {
				at += " (" + in.Graph.Name + ")"
			}
			return in.Graph, in.Platform, at, nil
		}
	case formatWorkflow:
		done := false
		s.next = func() (*dag.Graph, *dag.Platform, string, error) {
			if done {
				return nil, nil, "", io.EOF
			}
			done = true
			g, err := wfformat.Read(r, path, wfformat.Options{})
			if err != nil {
				return nil, nil, "", err
			}
			return g, nil, path + " (" + g.Name + ")", nil
		}
	case formatAlibaba:
		d, err := alibaba.NewReader(r, path, alibaba.Options{})
		if err != nil {
			_ = f.Close() // the fault is the one to tell
			return nil, &workload.InputError{Err: err}
		}
		s.next = func() (*dag.Graph, *dag.Platform, string, error) {
			var j traces.Job
			if err := d.Next(&j); err != nil {
				return nil, nil, "", err
			}
			at := fmt.Sprintf("%s (job %s)", path, j.ID)
			g, err := daglibaba.Graph(&j, daglibaba.Options{})
			if err != nil {
				return nil, nil, "", fmt.Errorf("%s: %w", at, err)
			}
			return g, nil, at, nil
		}
	}
	return s, nil
}

// sniffGraph tells a format by the first bytes: a table's header has columns of Alibaba's; of JSON, a workflow has its
// own keys. What is neither is taken for dag-json, whose reader says what it misses.
func sniffGraph(head []byte) string {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	if len(head) > 0 && head[0] != '{' && head[0] != '[' && bytes.Contains(workload.FirstLine(head), []byte("task_name")) {
		return formatAlibaba
	}
	if wfformat.Sniff(head) && !bytes.Contains(head, []byte(`"edges"`)) {
		return formatWorkflow
	}
	return formatDAG
}

// readPlatform reads the processors of --platform.
func readPlatform(ctx context.Context, path string) (*dag.Platform, error) {
	if err := existing("platform", path); err != nil {
		return nil, err
	}
	f, err := traces.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return dagjson.ReadPlatform(workload.NewCtxReader(ctx, f), path)
}

// WritePlanTable prints results for people: a row for each, and where it is but one of a small graph, its placements.
func WriteTable(w io.Writer, results []*Result) error {
	var rows [][]string
	for _, r := range results {
		d := &r.Document
		note := ""
		if d.Proven {
			note = "optimal"
		}
		rows = append(rows, []string{
			d.Graph, d.Policy, note, fmt.Sprint(d.Tasks), fmt.Sprint(d.Edges), fmt.Sprint(d.Processors), fmt.Sprint(r.Plan.Used()),
			fmt.Sprintf("%.6g", d.Makespan), fmt.Sprintf("%.3g", d.Makespan/bestOf(results, d.Graph)), wallText(d.Wall),
		})
	}
	header := []string{"graph", "policy", "", "tasks", "edges", "GPUs", "used", "makespan s", "× best", "planning"}
	if err := texttable.Write(w, header, rows, 3); err != nil {
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

// bestOf is the least makespan among the results of one graph.
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

func wallText(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.1f ms", s*1e3)
	}
	return fmt.Sprintf("%.1f s", s)
}
