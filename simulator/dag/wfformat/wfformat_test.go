package wfformat

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/simulator/dag"
	"clustergym/simulator/dag/dagjson"
)

// doc is a workflow of two tasks, whose parts a test can replace.
const doc = `{"name":"w","schemaVersion":"1.6","more":1,"workflow":{"specification":{
 "tasks":[{"name":"x","id":"b","parents":["a"],"children":[],"inputFiles":["f","f","g","in"],"outputFiles":["g"]},
          {"name":"x","id":"a","parents":[],"children":["b"],"outputFiles":["f","g","h"]}],
 "files":[{"id":"f","sizeInBytes":5},{"id":"g","sizeInBytes":7},{"id":"h","sizeInBytes":100},{"id":"in","sizeInBytes":1000}]},
 "execution":{"tasks":[{"id":"a","runtimeInSeconds":2.5,"coreCount":1},{"id":"b","runtimeInSeconds":0}],"makespanInSeconds":0}}}`

func TestAWorkflowByHand(t *testing.T) {
	g, err := Read(strings.NewReader(doc), "f", Options{})
	if err != nil {
		t.Fatal(err)
	}
	// b is first; from a it reads f, once, and g; no task writes in.
	if p := g.Preds(0); g.Name != "w" || g.Len() != 2 || len(p) != 1 || p[0] != (dag.Link{Task: 1, Bytes: 12}) ||
		g.Task(0).Work != 0 || g.Task(1).Work != 2.5 {
		t.Errorf("%+v, parents %v", g, p)
	}
}

func TestEdgesWithoutFilesAreNoted(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"", ""}: "",
		{`"outputFiles":["f","g","h"]`,
			`"outputFiles":[]`}: "f (w): 1 of 1 edges carries no bytes, because no file among outputFiles of the parent is among inputFiles of the child (first a to b); plans take such data to move for free",
		{`,"outputFiles":["f","g","h"]`, ``}:                   "f (w): 1 of 1 edges carries no bytes",
		{`"inputFiles":["f","f","g","in"],`, ``}:               "f (w): 1 of 1 edges carries no bytes",
		{`"outputFiles":["f","g","h"]`, `"outputFiles":["h"]`}: "f (w): 1 of 1 edges carries no bytes",
		// files that are empty
		{`"sizeInBytes":5},{"id":"g","sizeInBytes":7}`, `"sizeInBytes":0},{"id":"g","sizeInBytes":0}`}: "",
	} {
		g, notes, err := ReadNoted(strings.NewReader(strings.Replace(doc, change[0], change[1], 1)), "f", Options{})
		if err != nil || (want == "") != (notes == nil) || notes != nil && !strings.HasPrefix(notes[0], want) ||
			g.Edges() != 1 {
			t.Errorf("%q: %q, %v", change, notes, err)
		}
	}
}

func TestWhatIsWrongIsOneSentence(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"1.6"`, `"1.4"`, `f (w): schemaVersion: got "1.4", want 1.5 or 1.6`},
		{`"name":"w",`, ``, `f: name is missing`},
		{`"specification"`, `"spec"`, `f (w): workflow.specification is missing`},
		{`"execution"`, `"exec"`, `f (w): workflow.execution is missing`},
		{`"runtimeInSeconds":0}`, `"x":0}`, `f (w): workflow.execution has no runtimeInSeconds of task b`},
		{`2.5`, `-1`, `f (w): workflow.execution: task a: runtimeInSeconds: got -1`},
		{`"parents":["a"]`, `"parents":["c"]`, `f (w): task b: parents: got "c", which is no task's id`},
		{`"parents":["a"]`, `"parents":["a","a"]`, `f (w): task b: parents: a stands there twice`},
		{`"parents":["a"]`, `"parents":[]`, `f (w): task a names b as a child, but b does not name it among its parents`},
		{`"children":["b"]`, `"children":[]`, `f (w): task b names a as a parent, but a does not name it among its children`},
		{`"children":["b"]`, `"children":["b","z"]`, `f (w): task a: children: got "z", which is no task's id`},
		{`"id":"b","parents"`, `"id":"a","parents"`, `f (w): workflow.specification.tasks[1].id: got "a"`},
		{`"sizeInBytes":5`, `"sizeInBytes":-5`,
			`f (w): workflow.specification.files[0] (f): sizeInBytes is missing or negative`},
		{`{"id":"g","sizeInBytes":7},`, ``,
			`f (w): task b: inputFiles: got "g", which workflow.specification.files does not have`},
		{`"name":"w"`, `"name":7`, `f: name: got a number`},
		{`{"name":"w"`, `,`, `f: this is no JSON`},
		{doc, ``, `f: the file is empty`},
		{doc, doc + `{}`, `f: something follows the workflow`},
	} {
		if _, err := Read(strings.NewReader(strings.Replace(doc, c.from, c.to, 1)), "f", Options{}); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s for %s:\n got %v\nwant %s", c.to, c.from, err, c.want)
		}
	}
	g, err := Read(strings.NewReader(strings.Replace(doc, `"execution"`, `"exec"`, 1)), "f", Options{Work: 3})
	if err != nil || g.Task(1).Work != 3 {
		t.Errorf("with work on request: %v", err)
	}
}

func TestRecordedWorkflowsMapAsRecorded(t *testing.T) {
	root := "../../../../shared/groundtruth/dag"
	f, err := os.Open(filepath.Join(root, "wfcommons_mapped.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the recorded workflows are not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	r := dagjson.NewReader(f, "mapped")
	n := 0
	for {
		in, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		want := in.Graph
		w, err := os.Open(filepath.Join(root, "wfcommons", strings.TrimPrefix(want.Name, "wf-")+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(w, want.Name, Options{})
		_ = w.Close()
		if err != nil {
			t.Fatal(err)
		}
		if got.Len() != want.Len() || got.Edges() != want.Edges() {
			t.Fatalf("%s: %d tasks, %d edges", want.Name, got.Len(), got.Edges())
		}
		for i := range int32(want.Len()) {
			a, b := got.Preds(i), want.Preds(i)
			if got.Task(i).ID != want.Task(i).ID || got.Task(i).Work != want.Task(i).Work || len(a) != len(b) {
				t.Fatalf("%s: task %d is %+v, want %+v", want.Name, i, got.Task(i), want.Task(i))
			}
			for k := range a {
				if a[k] != b[k] {
					t.Errorf("%s: parent %+v of task %d, want %+v", want.Name, a[k], i, b[k])
				}
			}
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d workflows", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(doc))
	f.Fuzz(func(t *testing.T, data []byte) {
		if g, err := Read(strings.NewReader(string(data)), "f", Options{}); err == nil && len(g.Order()) != g.Len() {
			t.Fatal("a graph without an order")
		}
	})
}

// Read reads one workflow without its notes.
func Read(r io.Reader, file string, o Options) (*dag.Graph, error) {
	g, _, err := ReadNoted(r, file, o)
	return g, err
}
