// Package wfformat reads task graphs in WfFormat, the JSON of WfCommons, schema versions 1.5 and 1.6.
//
// A task's index is its place in workflow.specification.tasks. Edges follow from the tasks' parents; the children
// lists must agree with them. An edge carries the distinct files that its first task writes and its second reads. A
// task's work is its runtimeInSeconds in workflow.execution. Files that no task writes cost nothing. The format has
// no processors or bandwidths: the platform comes from elsewhere. Other keys are ignored.
package wfformat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/simulator/dag"
)

// Options changes how a file is read.
type Options struct {
	// Work is the work of tasks that workflow.execution does not list; 0 = reject such files.
	Work float64
}

type document struct {
	Name     string `json:"name"`
	Version  string `json:"schemaVersion"`
	Workflow *struct {
		Specification *struct {
			Tasks []task `json:"tasks"`
			Files []struct {
				ID   string   `json:"id"`
				Size *float64 `json:"sizeInBytes"`
			} `json:"files"`
		} `json:"specification"`
		Execution *struct {
			Tasks []struct {
				ID      string   `json:"id"`
				Runtime *float64 `json:"runtimeInSeconds"`
			} `json:"tasks"`
		} `json:"execution"`
	} `json:"workflow"`

	free struct { // edges whose tasks share no file
		n        int
		from, to string // of the first
	}
}

type task struct {
	ID       string   `json:"id"`
	Parents  []string `json:"parents"`
	Children []string `json:"children"`
	Inputs   []string `json:"inputFiles"`
	Outputs  []string `json:"outputFiles"`
}

// ReadNoted reads one workflow from r, and returns sentences about what it lacks that its user should know of. file is
// the name in error messages.
func ReadNoted(r io.Reader, file string, o Options) (g *dag.Graph, notes []string, err error) {
	var doc document
	if g, err = doc.read(r, file, o); err != nil {
		return nil, nil, err
	}
	if free := doc.free; free.n > 0 {
		verb := "carry"
		if free.n == 1 {
			verb = "carries"
		}
		notes = append(notes,
			fmt.Sprintf(
				"%s (%s): %d of %d edges %s no bytes, because no file among outputFiles of the parent is among inputFiles of the "+
					"child (first %s to %s); plans take such data to move for free",
				file, doc.Name, free.n, g.Edges(), verb, free.from, free.to))
	}
	return g, notes, nil
}

func (d *document) read(r io.Reader, file string, o Options) (*dag.Graph, error) {
	in := json.NewDecoder(r)
	if err := in.Decode(d); err != nil {
		var wrong *json.UnmarshalTypeError
		switch {
		case err == io.EOF:
			return nil, fmt.Errorf("%s: the file is empty, want a workflow as a JSON object", file)
		case errors.As(err, &wrong):
			return nil, fmt.Errorf("%s: %s: got a %s, which WfFormat does not have there", file, wrong.Field, wrong.Value)
		}
		return nil, fmt.Errorf("%s: this is no JSON: %w", file, err)
	}
	g, err := d.graph(o)
	if err != nil {
		if d.Name != "" {
			return nil, fmt.Errorf("%s (%s): %w", file, d.Name, err)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := in.Decode(&json.RawMessage{}); err != io.EOF {
		return nil, fmt.Errorf("%s: something follows the workflow, want one JSON object", file)
	}
	return g, nil
}

func (d *document) graph(o Options) (*dag.Graph, error) {
	if d.Version != "1.5" && d.Version != "1.6" {
		return nil, fmt.Errorf("schemaVersion: got %q, want 1.5 or 1.6", d.Version)
	}
	if d.Name == "" {
		return nil, errors.New("name is missing, want the workflow's")
	}
	if d.Workflow == nil || d.Workflow.Specification == nil {
		return nil, errors.New("workflow.specification is missing, want the tasks and files")
	}
	spec := d.Workflow.Specification
	sizes := make(map[string]float64, len(spec.Files))
	for k, f := range spec.Files {
		if f.Size == nil || !(*f.Size >= 0) {
			return nil, fmt.Errorf("workflow.specification.files[%d] (%s): sizeInBytes is missing or negative, want 0 or more",
				k, f.ID)
		}
		sizes[f.ID] = *f.Size
	}
	work, err := d.runtimes(o)
	if err != nil {
		return nil, err
	}
	tasks, index := make([]dag.Task, len(spec.Tasks)), make(map[string]int32, len(spec.Tasks))
	for k, t := range spec.Tasks {
		if _, twice := index[t.ID]; t.ID == "" || twice {
			return nil, fmt.Errorf("workflow.specification.tasks[%d].id: got %q, want an id of its own", k, t.ID)
		}
		index[t.ID] = int32(k)
		w, ok := work[t.ID]
		if !ok && o.Work == 0 {
			return nil, fmt.Errorf("workflow.execution has no runtimeInSeconds of task %s; want one for every task", t.ID)
		} else if !ok {
			w = o.Work
		}
		tasks[k] = dag.Task{ID: t.ID, Work: w}
	}
	var edges []dag.Edge
	for k, t := range spec.Tasks {
		for at, p := range t.Parents {
			from, ok := index[p]
			if !ok {
				return nil, fmt.Errorf("task %s: parents: got %q, which is no task's id", t.ID, p)
			}
			if slices.Contains(t.Parents[:at], p) {
				return nil, fmt.Errorf("task %s: parents: %s stands there twice, want it once", t.ID, p)
			}
			if !slices.Contains(spec.Tasks[from].Children, t.ID) {
				return nil,
					fmt.Errorf("task %s names %s as a parent, but %s does not name it among its children; want both to agree", t.ID, p,
						p)
			}
			bytes, files, err := carried(&spec.Tasks[from], &t, sizes)
			if err != nil {
				return nil, err
			}
			if files == 0 {
				if d.free.n++; d.free.n == 1 {
					d.free.from, d.free.to = p, t.ID
				}
			}
			edges = append(edges, dag.Edge{From: from, To: int32(k), Bytes: bytes})
		}
		for _, c := range t.Children {
			to, ok := index[c]
			if !ok {
				return nil, fmt.Errorf("task %s: children: got %q, which is no task's id", t.ID, c)
			}
			if !slices.Contains(spec.Tasks[to].Parents, t.ID) {
				return nil, fmt.Errorf("task %s names %s as a child, but %s does not name it among its parents; want both to agree",
					t.ID, c, c)
			}
		}
	}
	return dag.NewGraph(d.Name, tasks, edges)
}

// runtimes returns the run times by task.
func (d *document) runtimes(o Options) (map[string]float64, error) {
	x := d.Workflow.Execution
	if x == nil {
		if o.Work == 0 {
			return nil,
				errors.New("workflow.execution is missing, and with it what the tasks take; want runtimeInSeconds of every task")
		}
		return nil, nil
	}
	work := make(map[string]float64, len(x.Tasks))
	for _, t := range x.Tasks {
		if t.Runtime == nil {
			continue
		}
		if !(*t.Runtime >= 0) {
			return nil, fmt.Errorf("workflow.execution: task %s: runtimeInSeconds: got %v, want 0 or more", t.ID, *t.Runtime)
		}
		work[t.ID] = *t.Runtime
	}
	return work, nil
}

// carried returns the total size and the number of the distinct files that one task writes and another reads.
func carried(from, to *task, sizes map[string]float64) (sum float64, files int, err error) {
	for k, f := range to.Inputs {
		if slices.Contains(to.Inputs[:k], f) || !slices.Contains(from.Outputs, f) {
			continue
		}
		size, ok := sizes[f]
		if !ok {
			return 0, 0, fmt.Errorf("task %s: inputFiles: got %q, which workflow.specification.files does not have", to.ID, f)
		}
		sum += size
		files++
	}
	return sum, files, nil
}

// Sniff reports whether a file that begins with head seems to be a workflow.
func Sniff(head []byte) bool {
	s := string(head)
	return strings.Contains(s, `"workflow"`) || strings.Contains(s, `"schemaVersion"`)
}
