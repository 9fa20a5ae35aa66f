package graphs

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/dag"
	dagalibaba "clustergym/simulator/dag/alibaba"
	"clustergym/simulator/dag/dagjson"
	"clustergym/simulator/dag/wfformat"
	"clustergym/traces"
	"clustergym/traces/alibaba"
	"clustergym/traces/tpch"
)

// The formats of task graphs.
const (
	DAGJSON  = "dag-json"
	WfFormat = "wfformat"
	Alibaba  = "alibaba"
	TPCH     = "tpch"
)

// Formats returns the names of the formats.
func Formats() []string { return []string{DAGJSON, WfFormat, Alibaba, TPCH} }

// Options changes how files are read. The zero value finds the format by content and takes graphs as they are.
type Options struct {
	Format string // one of Formats; "" = found by content
	// For names the program part that takes the graphs, for the message about a file that holds none: "DAGPlace-v1".
	For string
	// MinTasks leaves out graphs of fewer tasks.
	MinTasks int
	// Instances turns each task of an Alibaba or TPC-H graph into at most this many tasks, one for each of the instances
	// that ran side by side; 0 = one task, which takes as long as one instance.
	Instances int
	// MinWork is the least work of a task of an Alibaba or TPC-H graph, in seconds. Alibaba's clock ticks in seconds, and
	// many of its tasks take 0.
	MinWork float64
	// From opens the files; nil = any path.
	From *traces.Files
}

// Validate reports every fault.
func (o *Options) Validate() error {
	var l fault.List
	l.Add(o.Format == "" || slices.Contains(Formats(), o.Format), "format", o.Format, nearest.OneOf(o.Format, Formats()))
	l.Add(o.MinTasks >= 0, "min_tasks", o.MinTasks, "0 or more")
	l.Add(o.Instances >= 0 && o.Instances <= 1<<20, "instances", o.Instances, "0 to 1048576")
	l.Add(o.MinWork >= 0 && o.MinWork <= 1e9, "min_work", o.MinWork, "seconds, 0 to 1e9")
	return l.Err()
}

// Graph is one graph of a file.
type Graph struct {
	*dag.Graph
	Platform *dag.Platform // nil where the file has no processors for it
	At       string        // file and place in it, for messages
}

// NoGraphsError says that a file is of none of the formats: most often it is a trace of jobs.
type NoGraphsError struct{ File, For string }

func (e *NoGraphsError) Error() string {
	wants := "want"
	if e.For != "" {
		wants = e.For + " takes"
	}
	return fmt.Sprintf("%s task graphs (WfCommons, Alibaba, TPC-H, dag JSON); %s holds jobs without graphs", wants,
		filepath.Base(e.File))
}

// Reader gives the graphs of one file in their order. Not safe for concurrent use.
type Reader struct {
	ctx    context.Context
	file   io.Closer
	format string
	next   func() (*Graph, error)
	notes  func() []string
}

// headBytes is how much of a file is looked at to find its format. The first key of a graph may be a list longer than
// this, so it need not be enough to tell the two kinds of JSON apart; see Sniff.
const headBytes = 1 << 16

// Open opens a file. The caller closes the reader. Errors name the file; where it is of no known format, the error is a
// *NoGraphsError.
func Open(ctx context.Context, path string, o Options) (*Reader, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f, err := o.From.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	r := &Reader{ctx: ctx, file: f, format: o.Format}
	if err := r.open(bufio.NewReaderSize(f, headBytes), path, o); err != nil {
		_ = f.Close() // the fault is the one to tell
		return nil, err
	}
	return r, nil
}

func (r *Reader) open(in *bufio.Reader, path string, o Options) error {
	if r.format == "" {
		head, err := in.Peek(headBytes)
		if err != nil && err != io.EOF {
			return err
		}
		if r.format = Sniff(head); r.format == "" {
			return &NoGraphsError{path, o.For}
		}
	}
	r.notes = func() []string { return nil }
	skipped := func(d interface{ Skipped() []traces.Skip }) func() []string {
		return func() (all []string) {
			for _, k := range d.Skipped() {
				all = append(all, fmt.Sprintf("graphs %s: %d left out (%s)", path, k.Count, k.Reason))
			}
			return all
		}
	}
	switch r.format {
	case DAGJSON:
		d := dagjson.NewReader(in, path)
		r.next = func() (*Graph, error) {
			g, err := d.Next()
			if err != nil {
				return nil, err
			}
			at := fmt.Sprintf("%s, line %d", path, g.Line)
			if g.Graph.Name != "" {
				at += " (" + g.Graph.Name + ")"
			}
			return &Graph{g.Graph, g.Platform, at}, nil
		}
	case WfFormat:
		done := false
		r.next = func() (*Graph, error) {
			if done {
				return nil, io.EOF
			}
			done = true
			g, notes, err := wfformat.ReadNoted(in, path, wfformat.Options{})
			if err != nil {
				return nil, err
			}
			r.notes = func() []string { return notes }
			return &Graph{g, nil, path + " (" + g.Name + ")"}, nil
		}
	case Alibaba:
		d, err := alibaba.NewReader(in, path, alibaba.Options{})
		if err != nil {
			return err
		}
		r.next, r.notes = jobs(d, path, "job", o), skipped(d)
	case TPCH:
		d, err := tpch.NewReader(in, path, tpch.Options{})
		if err != nil {
			return err
		}
		r.next = jobs(d, path, "query", o)
	}
	return nil
}

// jobs makes graphs of the jobs of a trace.
func jobs(d traces.Stream, path, word string, o Options) func() (*Graph, error) {
	return func() (*Graph, error) {
		var j traces.Job
		if err := d.Next(&j); err != nil {
			return nil, err
		}
		at := fmt.Sprintf("%s (%s %s)", path, word, j.ID)
		g, err := dagalibaba.Graph(&j, dagalibaba.Options{Instances: o.Instances, Work: o.MinWork})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		return &Graph{g, nil, at}, nil
	}
}

// Next returns the next graph, io.EOF after the last. An error names the file and the place in it.
func (r *Reader) Next() (*Graph, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	return r.next()
}

// Notes returns sentences about what the file has that its user should know of, as far as it has been read: jobs that
// were left out, edges that carry nothing.
func (r *Reader) Notes() []string { return r.notes() }

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

// Sniff returns the format of a file that begins with head, "" where it is none of Formats. JSON that is neither a
// workflow nor TPC-H's counts as dag-json, whose reader says what is missing; so does an empty file.
func Sniff(head []byte) string {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	switch {
	case len(head) > 0 && head[0] != '{' && head[0] != '[':
		if bytes.Contains(traces.HeaderLine(head), []byte("task_name")) {
			return Alibaba
		}
		return ""
	case tpch.Sniff(head):
		return TPCH
	case wfformat.Sniff(head) && !bytes.Contains(head, []byte(`"edges"`)):
		return WfFormat
	}
	return DAGJSON
}
