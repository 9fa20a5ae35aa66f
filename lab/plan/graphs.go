package plan

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"clustergym/internal/fault"
	"clustergym/lab/workload"
	"clustergym/simulator/dag"
	daglibaba "clustergym/simulator/dag/alibaba"
	"clustergym/simulator/dag/dagjson"
	"clustergym/simulator/dag/wfformat"
	"clustergym/traces"
	"clustergym/traces/alibaba"
)

// The formats of task graphs.
const (
	formatDAG      = "dag-json"
	formatWorkflow = "wfformat"
	formatAlibaba  = "alibaba"
)

// GraphFormats returns the values that Config.Format takes.
func GraphFormats() []string {
	return []string{workload.FormatAuto, formatDAG, formatWorkflow, formatAlibaba}
}

// graphSource reads the graphs of a file one after the other. next returns io.EOF after the last one; own is nil if the
// graph has no processors of its own, and at says in messages where the graph is.
type graphSource struct {
	io.Closer
	next func() (g *dag.Graph, own *dag.Platform, at string, err error)
}

// headBytes is the size of the beginning of a file by which sniffGraph recognises its format. The first key of a
// dag-json graph may be a list longer than that, so the beginning need not contain the keys that tell the two JSON
// formats apart.
const headBytes = 1 << 16

// openGraphs opens a file, compressed or not.
func openGraphs(ctx context.Context, path, format string) (*graphSource, error) {
	if err := existing("graph", path); err != nil {
		return nil, err
	}
	f, err := (*traces.Files)(nil).Open(ctx, path) // decompresses
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	r := bufio.NewReaderSize(workload.NewCtxReader(ctx, f), headBytes)
	if format == workload.FormatAuto {
		head, err := r.Peek(headBytes)
		if err != nil && err != io.EOF {
			_ = f.Close() // the fault is the one to tell
			return nil, &fault.Mistake{Err: err}
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
			g, notes, err := wfformat.ReadNoted(r, path, wfformat.Options{})
			if err != nil {
				return nil, nil, "", err
			}
			for _, n := range notes {
				workload.Note(ctx, n)
			}
			return g, nil, path + " (" + g.Name + ")", nil
		}
	case formatAlibaba:
		d, err := alibaba.NewReader(r, path, alibaba.Options{})
		if err != nil {
			_ = f.Close() // the fault is the one to tell
			return nil, &fault.Mistake{Err: err}
		}
		s.next = func() (*dag.Graph, *dag.Platform, string, error) {
			var j traces.Job
			if err := d.Next(&j); err != nil {
				if err == io.EOF {
					for _, k := range d.Skipped() {
						workload.Note(ctx, fmt.Sprintf("graphs %s: %d left out (%s)", path, k.Count, k.Reason))
					}
				}
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

// sniffGraph recognises a format by the first bytes of a file: an Alibaba table by a column of its header, a workflow
// by its JSON keys. Everything else counts as dag-json, whose reader reports what is missing.
func sniffGraph(head []byte) string {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	if len(head) > 0 && head[0] != '{' && head[0] != '[' && bytes.Contains(traces.HeaderLine(head), []byte("task_name")) {
		return formatAlibaba
	}
	if wfformat.Sniff(head) && !bytes.Contains(head, []byte(`"edges"`)) {
		return formatWorkflow
	}
	return formatDAG
}

// readPlatform reads the processors and bandwidths of the file that --platform names.
func readPlatform(ctx context.Context, path string) (*dag.Platform, error) {
	if err := existing("platform", path); err != nil {
		return nil, err
	}
	f, err := traces.OrdinaryFiles().Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return dagjson.ReadPlatform(workload.NewCtxReader(ctx, f), path)
}
