package dagjson

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"clustergym/simulator/dag"
)

const procs = `"processors":[{"id":0,"speed":1},{"id":"g","speed":2}],"bandwidth":4`

func one(t *testing.T, text string) *Instance {
	t.Helper()
	in, err := NewReader(strings.NewReader(text), "f").Next()
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestInstancesAreReadAsWritten(t *testing.T) {
	in := one(t, "\xef\xbb\xbf"+`{"comment": {"x": [1]}, "bandwidth": [[null, 3], [5, 7]],
		"processors": [{"id": "a", "type": "V100"}, {"id": -7, "speed": 2.5}],
		"edges": [ [ "x,]" , 3 , 1e3 ], [3, "3x", 0]],
		"tasks": [{"id": 3, "work": 4}, {"id": "x,]", "work": 1, "cost": [2, null]}, {"cost": [0.5, 1], "id": "3x"}], "name": "n"}`)
	g, p := in.Graph, in.Platform
	if g.Name != "n" || g.Len() != 3 || g.Edges() != 2 || p.Len() != 2 || !p.Linked() || in.Line != 1 {
		t.Fatalf("%+v", in)
	}
	if a := g.Preds(0); len(a) != 1 || a[0] != (dag.Link{Task: 1, Bytes: 1000}) {
		t.Errorf("parents %v", a)
	}
	if p.Processor(0).Speed != 1 || p.Processor(0).Type != "V100" || p.Processor(1).ID != "-7" || p.Bandwidth(0, 1) != 3 ||
		p.Bandwidth(1, 0) != 5 {
		t.Errorf("%+v", p)
	}
	q, err := dag.NewProblem(g, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		task, proc int32
		want       float64
	}{{0, 0, 4}, {0, 1, 1.6}, {1, 0, 2}, {1, 1, math.Inf(1)}, {2, 0, 0.5}, {2, 1, 1}} {
		if got := q.Exec(c.task, c.proc); got != c.want {
			t.Errorf("task %d on %d: %v, want %v", c.task, c.proc, got, c.want)
		}
	}
}

func TestWholeNumbersAndStringsNameTheSameTask(t *testing.T) {
	in := one(t, `{"tasks":[{"id":0,"work":1},{"id":"1","work":1}],"edges":[["0",1,5]],`+procs+`}`)
	if s := in.Graph.Succs(0); len(s) != 1 || s[0].Task != 1 || in.Graph.Task(0).ID != "0" {
		t.Errorf("%v", s)
	}
}

func TestGraphsMayDoWithoutPlatformOrBandwidth(t *testing.T) {
	if in := one(t, `{"tasks":[{"id":0,"work":1}],"edges":[]}`); in.Platform != nil {
		t.Error("a platform out of nothing")
	}
	for _, rest := range []string{`"processors":[{"id":0}]`, `"processors":[{"id":0}],"bandwidth":0`,
		`"processors":[{"id":0}],"bandwidth":[[0]]`, `"processors":[{"id":0},{"id":1}],"bandwidth":null`} {
		in := one(t, `{"tasks":[{"id":0,"work":1},{"id":1,"work":1}],"edges":[[0,1,0]],`+rest+`}`)
		if _, err := dag.NewProblem(in.Graph, in.Platform); err != nil {
			t.Errorf("%s: %v", rest, err)
		}
	}
}

func TestWhatIsWrongIsOneSentence(t *testing.T) {
	two := `"tasks":[{"id":0,"work":1},{"id":1,"work":1}]`
	for _, c := range []struct{ text, want string }{
		{``, "f: the file is empty, want a graph as a JSON object"},
		{`{"tasks":`, "f: the file ends in the middle of a JSON object (it began on line 1)"},
		{"{\n\"tasks\": [,]}", "f, line 2: this is no JSON: invalid character ',' looking for beginning of value"},
		{`[1]`, "f, line 1: got a JSON array, want an object"},
		{`null`, `f, line 1: tasks is missing, want a list of {"id": …, "work": …}`},
		{`{"name":"n"}`, `f, line 1 (n): tasks is missing, want a list of {"id": …, "work": …}`},
		{`{"name":"n","workflow":{}}`, "f, line 1 (n): this is WfFormat; want format wfformat"},
		{`{"tasks":[]}`, "f, line 1: edges is missing, want a list of [from, to, bytes], which may be empty"},
		{`{"tasks":[],"edges":[]}`, "f, line 1: tasks: got none, want at least one"},
		{`{"tasks":[{"work":1}],"edges":[]}`, "f, line 1: tasks[0]: id is missing, want a whole number or a string"},
		{`{"tasks":[{"id":1.5,"work":1}],"edges":[]}`, "f, line 1: id: got 1.5, want a whole number or a string"},
		{`{"tasks":[{"id":true,"work":1}],"edges":[]}`, "f, line 1: id: got true, want a whole number or a string"},
		{`{"tasks":[{"id":1}],"edges":[]}`, "f, line 1: tasks[0] (1): it has neither work nor cost, want one of them"},
		{`{"tasks":[{"id":1,"work":"2"}],"edges":[]}`, `f, line 1: tasks[0] (1): work: got "2", want a number`},
		{`{"tasks":[{"id":1,"cost":[1,{}]}],"edges":[]}`, `f, line 1: tasks[0] (1): cost[1]: got {}, want a number`},
		{`{"tasks":[{"id":1,"work":1e999}],"edges":[]}`, `f, line 1: tasks[0] (1): work: got 1e999, want a number`},
		{`{` + two + `,"edges":[[0,1]]}`, "f, line 1: edge [0,1]: want three elements, [from, to, bytes]"},
		{`{` + two + `,"edges":[[0,1,2,3]]}`, "f, line 1: edge [0,1,2,3]: want three elements, [from, to, bytes]"},
		{`{` + two + `,"edges":[[0,1,null]]}`, "f, line 1: edge [0,1,null]: bytes: got null, want a number, 0 or more"},
		{`{` + two + `,"edges":[[0,null,1]]}`, "f, line 1: edge [0,null,1]: an end is null, want [from, to, bytes]"},
		{`{` + two + `,"edges":["x"]}`, `f, line 1: edge: got "x", want [from, to, bytes]`},
		{`{` + two + `,"edges":[[0,1,-2]]}`, "f, line 1: edges[0] (0 to 1): got -2 bytes, want 0 or more"},
		{`{` + two + `,"edges":[[0,"x",2]]}`, `f, line 1: edges[0]: to: got "x", which is no task's id`},
		{`{` + two + `,"edges":[[7,1,2]]}`, `f, line 1: edges[0]: from: got "7", which is no task's id`},
		{`{` + two + `,"edges":[[0,1,2],[1,0,2]]}`, "f, line 1: tasks 0 → 1 → 0 form a cycle; want a graph without cycles"},
		{`{` + two + `,"edges":{}}`, "f, line 1: edges: got an object, want a list of [from, to, bytes]"},
		{`{` + two + `,"edges":[],"bandwidth":4}`, "f, line 1: bandwidth is given without processors; want both or none"},
		{`{` + two + `,"edges":[],"processors":[]}`, "f, line 1: processors: got none, want at least one"},
		{`{` + two + `,"edges":[],"processors":[{}]}`,
			"f, line 1: processors[0]: id is missing, want a whole number or a string"},
		{`{` + two + `,"edges":[],"processors":[{"id":0,"speed":"x"}]}`,
			`f, line 1: processors[0] (0): speed: got "x", want a number`},
		{`{` + two + `,"edges":[],"processors":[{"id":0},{"id":"0"}]}`,
			`f, line 1: processors[1].id: got "0", which is that of processors[0], want an id of its own`},
		{`{` + two + `,"edges":[],"processors":[{"id":0},{"id":1}],"bandwidth":0}`,
			"f, line 1: bandwidth: got 0, want a number of bytes per second above 0"},
		{`{` + two + `,"edges":[],"processors":[{"id":0},{"id":1}],"bandwidth":"x"}`,
			`f, line 1: bandwidth: got "x", want a number or a matrix`},
		{`{` + two + `,"edges":[],"processors":[{"id":0},{"id":1}],"bandwidth":[[0,"x"],[1,0]]}`,
			`f, line 1: bandwidth[0][1]: got "x", want a number`},
		{`{` + two + `,"edges":[],"processors":[{"id":0},{"id":1}],"bandwidth":[1,2]}`,
			"f, line 1: bandwidth: want a number, or a matrix of numbers with a row for each processor"},
	} {
		r := NewReader(strings.NewReader(c.text), "f")
		_, err := r.Next()
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, c.want)
		}
		if _, again := r.Next(); again == nil || err == nil || again.Error() != err.Error() {
			t.Errorf("%s: then %v", c.text, again)
		}
	}
}

func TestTheLineOfAnInstanceIsNamed(t *testing.T) {
	good := `{"tasks":[{"id":0,"work":1}],"edges":[],` + procs + `}`
	r := NewReader(strings.NewReader(good+"\n\n{\n\"tasks\":[{\"id\":0,\"work\":1}],\n\"edges\":[]}\n"+good+
		` {"name":"last","tasks":[{"id":0,"work":-1}],"edges":[]}`), "f")
	for _, want := range []int{1, 3, 6} {
		in, err := r.Next()
		if err != nil || in.Line != want {
			t.Fatalf("%+v, %v; want line %d", in, err, want)
		}
	}
	if _, err := r.Next(); err == nil || err.Error() != "f, line 6 (last): tasks[0] (0): work: got -1, want 0 or more" {
		t.Errorf("%v", err)
	}
	r = NewReader(strings.NewReader(good+"\n"), "f")
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("behind the last: %v", err)
	}
}

func TestPlatformsStandAlone(t *testing.T) {
	p, err := ReadPlatform(strings.NewReader(`{`+procs+`}`), "p")
	if err != nil || p.Len() != 2 || p.Bandwidth(1, 0) != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, c := range []struct{ text, want string }{
		{``, "p: the file is empty"}, {`{}`, "p: processors is missing"},
		{`{` + procs + `}{}`, "something follows the platform"}, {`{"processors":[{"id":1,"speed":-1}]}`, "speed: got -1"},
		{"{\n,", "p, line 2: this is no JSON"},
	} {
		if _, err := ReadPlatform(strings.NewReader(c.text), "p"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for _, text := range []string{
		`{"name":"a\"b","tasks":[{"id":0,"work":0.1},{"id":"01","work":1,"cost":[2,null],"types":["x"]},{"id":"ü","cost":[1e-300,3]}],"edges":[[0,"ü",0.30000000000000004],["01","ü",0]],"processors":[{"id":0,"speed":0.7,"type":"x"},{"id":"g","speed":2}],"bandwidth":[[0,1.5],[3,0]]}` + "\n",
		`{"name":"","tasks":[{"id":5,"work":1}],"edges":[],"processors":[{"id":1,"speed":1},{"id":2,"speed":1}],"bandwidth":12500000}` + "\n",
		`{"name":"","tasks":[{"id":5,"work":1}],"edges":[]}` + "\n",
	} {
		in := one(t, text)
		var b bytes.Buffer
		if err := Write(&b, in.Graph, in.Platform); err != nil {
			t.Fatal(err)
		}
		if b.String() != text {
			t.Errorf("got\n%swant\n%s", b.String(), text)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"name":"n","tasks":[{"id":0,"work":1},{"id":"b","cost":[1,null]}],"edges":[[0,"b",2]],` + procs + `}`))
	f.Add([]byte(`{"tasks":[{"id":0,"work":1}],"edges":[],"processors":[{"id":0}],"bandwidth":[[0]]}{`))
	f.Add([]byte(`{"edges":[["a\"]",",",1e3]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data), "f")
		for range 5 {
			in, err := r.Next()
			if err != nil {
				if err != io.EOF && strings.Contains(err.Error(), "\n") {
					t.Fatalf("more than one line: %q", err)
				}
				return
			}
			if in.Platform == nil {
				continue
			}
			q, err := dag.NewProblem(in.Graph, in.Platform)
			if err != nil {
				continue
			}
			e := dag.NewEvaluator(q, nil)
			if m := e.Makespan(make([]int32, q.Tasks())); m < 0 {
				t.Fatal(m)
			}
		}
	})
}
