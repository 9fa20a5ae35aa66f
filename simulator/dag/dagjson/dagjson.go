// Package dagjson reads and writes task graphs with their platforms as JSON, one object for each instance:
//
//	{"name": "diamond",
//	 "tasks": [{"id": 0, "work": 4.0}, {"id": "b", "cost": [3.0, 1.0]}],
//	 "edges": [[0, "b", 10.0]],
//	 "processors": [{"id": 0, "speed": 1.0}, {"id": 1, "speed": 2.0}],
//	 "bandwidth": [[0, 5.0], [5.0, 0]]}
//
// Several instances may follow each other, one to a line (JSON lines) or in any other layout.
//
// An id is a whole number or a string; 1 and "1" are the same. The index of a task or a processor is its place in the
// list. A task takes work / speed seconds (speed defaults to 1). If cost is given, it replaces work: it lists the
// seconds on each processor, and null means that the task cannot run there. types lists the types of processors
// ("type") on which a task can run. An edge is [from, to, bytes], with at most one edge for a pair. bandwidth, in
// bytes per second, is one number or a matrix (row = sender), whose diagonal is ignored. Other keys are ignored.
//
// A platform alone is an object with processors and bandwidth. A graph without processors needs such a platform.
package dagjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/fault"
	"clustergym/simulator/dag"
)

// id is a whole number or a string.
type id string

// UnmarshalJSON implements json.Unmarshaler.
func (i *id) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*i = id(s)
		return nil
	}
	if !whole(b) {
		return fmt.Errorf("id: got %.40s, want a whole number or a string", b)
	}
	*i = id(b)
	return nil
}

func whole(b []byte) bool {
	if len(b) > 1 && b[0] == '-' {
		b = b[1:]
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// number is a number, or null, which is NaN. Other values are kept, so that the reader can say where they are.
type number struct {
	v   float64
	bad string
}

// UnmarshalJSON implements json.Unmarshaler.
func (x *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		x.v = math.NaN()
		return nil
	}
	var err error
	if x.v, err = strconv.ParseFloat(string(b), 64); err != nil { // out of range, or no number
		x.bad = fmt.Sprintf("%.40s", b)
	}
	return nil
}

// at returns the number, or an error that names the key.
func (x *number) at(format string, args ...any) (float64, error) {
	if x.bad != "" {
		return 0, fmt.Errorf("%s: got %s, want a number", fmt.Sprintf(format, args...), x.bad)
	}
	return x.v, nil
}

// edge is [from, to, bytes].
type edge struct {
	from, to id
	bytes    number
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *edge) UnmarshalJSON(b []byte) error {
	var parts [4][]byte
	n, quoted, deep, from := 0, false, 0, 1
	if b[0] != '[' {
		return fmt.Errorf("edge: got %.40s, want [from, to, bytes]", b)
	}
	for k := 1; k < len(b); k++ {
		switch c := b[k]; {
		case quoted:
			if c == '\\' {
				k++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			deep++
		case deep > 0 && (c == ']' || c == '}'):
			deep--
		case deep == 0 && (c == ',' || c == ']'):
			if p := bytes.TrimSpace(b[from:k]); len(p) > 0 && n < len(parts) {
				parts[n] = p
				n++
			}
			from = k + 1
		}
	}
	if n != 3 {
		return fmt.Errorf("edge %.60s: want three elements, [from, to, bytes]", b)
	}
	for k, into := range []*id{&e.from, &e.to} {
		if string(parts[k]) == "null" {
			return fmt.Errorf("edge %.60s: an end is null, want [from, to, bytes]", b)
		}
		if err := into.UnmarshalJSON(parts[k]); err != nil {
			return fmt.Errorf("edge %.60s: %w", b, err)
		}
	}
	if err := e.bytes.UnmarshalJSON(parts[2]); err != nil || e.bytes.bad != "" || math.IsNaN(e.bytes.v) {
		return fmt.Errorf("edge %.60s: bytes: got %.40s, want a number, 0 or more", b, parts[2])
	}
	return nil
}

type task struct {
	ID    *id       `json:"id"`
	Work  *number   `json:"work"`
	Cost  *[]number `json:"cost"`
	Types []string  `json:"types"`
}

type processor struct {
	ID    *id     `json:"id"`
	Speed *number `json:"speed"`
	Type  string  `json:"type"`
}

type document struct {
	Name       *string         `json:"name"`
	Tasks      *[]task         `json:"tasks"`
	Edges      *[]edge         `json:"edges"`
	Processors *[]processor    `json:"processors"`
	Bandwidth  json.RawMessage `json:"bandwidth"`
	Workflow   json.RawMessage `json:"workflow"` // the key of another format, for the error message
}

// Instance is one graph of a file.
type Instance struct {
	Graph    *dag.Graph
	Platform *dag.Platform // nil if the instance has none
	Line     int           // on which the instance begins
}

// Reader reads instances one after the other. Not safe for concurrent use.
type Reader struct {
	d    *json.Decoder
	src  *lineCounter
	file string
	n    int
	err  error
}

// NewReader returns a Reader of r. file is the name in error messages.
func NewReader(r io.Reader, file string) *Reader {
	src := &lineCounter{r: r}
	return &Reader{d: json.NewDecoder(src), src: src, file: file}
}

// Next returns the next instance, and io.EOF after the last. A file without any instance is an error. The error for a
// bad instance is one sentence that names file, line and instance. After an error Next returns the same error again.
func (r *Reader) Next() (*Instance, error) {
	if r.err != nil {
		return nil, r.err
	}
	in, err := r.next()
	if err != nil {
		r.err = err
		return nil, err
	}
	r.n++
	return in, nil
}

// value returns the next JSON value of the file, and io.EOF after the last; what says in words which the first is to
// be.
func (r *Reader) value(what string) (raw json.RawMessage, err error) {
	err = r.d.Decode(&raw)
	var syntax *json.SyntaxError
	switch {
	case err == io.EOF && r.n == 0:
		return nil, fmt.Errorf("%s: the file is empty, want %s", r.file, what)
	case err == nil || err == io.EOF:
		return raw, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%s: the file ends in the middle of a JSON object (it began on line %d)", r.file,
			r.src.line(r.d.InputOffset()+1))
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("%s, line %d: this is no JSON: %w", r.file, r.src.line(syntax.Offset-1), err)
	}
	return nil, fmt.Errorf("%s: %w", r.file, err)
}

func (r *Reader) next() (*Instance, error) {
	raw, err := r.value("a graph as a JSON object")
	if err != nil {
		return nil, err
	}
	line := r.src.line(r.d.InputOffset() - int64(len(raw)))
	in, err := decode(raw)
	if err != nil {
		var name struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(raw, &name) // if even that is unreadable, the line number has to do
		at := fmt.Sprintf("%s, line %d", r.file, line)
		if name.Name != "" {
			at += fmt.Sprintf(" (%s)", name.Name)
		}
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	in.Line = line
	return in, nil
}

// ReadPlatform reads one platform from in. Anything after it is an error.
func ReadPlatform(in io.Reader, file string) (*dag.Platform, error) {
	r := NewReader(in, file)
	raw, err := r.value("a JSON object of processors and bandwidth")
	if err != nil {
		return nil, err
	}
	r.n++
	var doc document
	if err := unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if doc.Processors == nil {
		return nil, fmt.Errorf("%s: processors is missing, want a list of {\"id\": …, \"speed\": …}", file)
	}
	p, err := platform(&doc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if _, err := r.value(""); err != io.EOF {
		return nil, fmt.Errorf("%s: something follows the platform, want one JSON object", file)
	}
	return p, nil
}

// unmarshal decodes one value and rewrites the decoder's type errors in this package's words.
func unmarshal(raw []byte, doc *document) error {
	err := json.Unmarshal(raw, doc)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		where := wrong.Field
		if where == "" {
			return fmt.Errorf("got a JSON %s, want an object", wrong.Value)
		}
		article := "a"
		if wrong.Value[0] == 'o' || wrong.Value[0] == 'a' { // object, array
			article = "an"
		}
		return fmt.Errorf("%s: got %s %s, want %s", where, article, wrong.Value,
			kinds[where[strings.LastIndexByte(where, '.')+1:]])
	}
	return err
}

var kinds = map[string]string{
	"name": "a string", "tasks": `a list of {"id": …, "work": …}`, "edges": "a list of [from, to, bytes]",
	"cost":       "a list of seconds, one for each processor",
	"processors": `a list of {"id": …, "speed": …}`, "types": "a list of strings", "type": "a string",
}

func decode(raw []byte) (*Instance, error) {
	var doc document
	if err := unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	if doc.Tasks == nil {
		if doc.Workflow != nil {
			return nil, fault.Errorf("this is WfFormat; want %s wfformat", fault.Key("format"))
		}
		return nil, errors.New(`tasks is missing, want a list of {"id": …, "work": …}`)
	}
	if doc.Edges == nil {
		return nil, errors.New("edges is missing, want a list of [from, to, bytes], which may be empty")
	}
	in := &Instance{}
	name := ""
	if doc.Name != nil {
		name = *doc.Name
	}
	tasks := make([]dag.Task, len(*doc.Tasks))
	index := make(map[id]int32, len(tasks))
	for k, t := range *doc.Tasks {
		if t.ID == nil {
			return nil, fmt.Errorf("tasks[%d]: id is missing, want a whole number or a string", k)
		}
		tasks[k] = dag.Task{ID: string(*t.ID), Work: math.NaN(), Types: t.Types}
		index[*t.ID] = int32(k)
		if t.Work != nil {
			w, err := t.Work.at("tasks[%d] (%s): work", k, *t.ID)
			if err != nil {
				return nil, err
			}
			tasks[k].Work = w
		}
		if t.Cost != nil {
			tasks[k].Cost = make([]float64, len(*t.Cost))
			for g := range *t.Cost {
				c, err := (*t.Cost)[g].at("tasks[%d] (%s): cost[%d]", k, *t.ID, g)
				if err != nil {
					return nil, err
				}
				tasks[k].Cost[g] = c
			}
		}
	}
	edges := make([]dag.Edge, len(*doc.Edges))
	for k, e := range *doc.Edges {
		from, ok := index[e.from]
		if !ok {
			return nil, fmt.Errorf("edges[%d]: from: got %q, which is no task's id", k, string(e.from))
		}
		to, ok := index[e.to]
		if !ok {
			return nil, fmt.Errorf("edges[%d]: to: got %q, which is no task's id", k, string(e.to))
		}
		edges[k] = dag.Edge{From: from, To: to, Bytes: e.bytes.v}
	}
	var err error
	if in.Graph, err = dag.NewGraph(name, tasks, edges); err != nil {
		return nil, err
	}
	if doc.Processors == nil {
		if present(doc.Bandwidth) {
			return nil, errors.New("bandwidth is given without processors; want both or none")
		}
		return in, nil
	}
	in.Platform, err = platform(&doc)
	return in, err
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func platform(doc *document) (*dag.Platform, error) {
	procs := make([]dag.Processor, len(*doc.Processors))
	for g, p := range *doc.Processors {
		if p.ID == nil {
			return nil, fmt.Errorf("processors[%d]: id is missing, want a whole number or a string", g)
		}
		procs[g] = dag.Processor{ID: string(*p.ID), Speed: 1, Type: p.Type}
		if p.Speed != nil {
			v, err := p.Speed.at("processors[%d] (%s): speed", g, *p.ID)
			if err != nil {
				return nil, err
			}
			procs[g].Speed = v
		}
	}
	raw := bytes.TrimSpace(doc.Bandwidth)
	switch {
	case !present(raw):
		return dag.NewPlatform(procs, 0)
	case raw[0] != '[':
		var b number
		if err := json.Unmarshal(raw, &b); err != nil || b.bad != "" {
			return nil, fmt.Errorf("bandwidth: got %.40s, want a number or a matrix", raw)
		}
		if len(procs) > 1 && !(b.v > 0) {
			return nil, fmt.Errorf("bandwidth: got %v, want a number of bytes per second above 0", b.v)
		}
		return dag.NewPlatform(procs, b.v)
	}
	var rows [][]number
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, errors.New("bandwidth: want a number, or a matrix of numbers with a row for each processor")
	}
	matrix := make([][]float64, len(rows))
	for g, row := range rows {
		for h := range row {
			b, err := row[h].at("bandwidth[%d][%d]", g, h)
			if err != nil && g != h {
				return nil, err
			}
			matrix[g] = append(matrix[g], b)
		}
	}
	return dag.NewLinkedPlatform(procs, matrix)
}

// lineCounter finds the line of a byte that was read.
type lineCounter struct {
	r    io.Reader
	read int64
	ends []int64 // offsets of line feeds
	bom  bool    // checked for
}

// Read implements io.Reader. It replaces a byte order mark at the beginning with spaces.
func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if !c.bom && n >= 3 {
		c.bom = true
		if bytes.HasPrefix(p[:n], []byte("\xef\xbb\xbf")) {
			p[0], p[1], p[2] = ' ', ' ', ' '
		}
	}
	for k, b := range p[:n] {
		if b == '\n' {
			c.ends = append(c.ends, c.read+int64(k))
		}
	}
	c.read += int64(n)
	return n, err
}

func (c *lineCounter) line(offset int64) int {
	k, _ := slices.BinarySearch(c.ends, max(offset, 0))
	return k + 1
}
