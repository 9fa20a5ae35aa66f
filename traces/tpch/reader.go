package tpch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"clustergym/traces"
)

// Options changes how a document is read.
type Options struct{ Rule Rule }

// Reader is a traces.Stream over the queries. Not safe for concurrent use.
type Reader struct{ stream traces.Slice }

var _ traces.Stream = (*Reader)(nil)

// maxBytes bounds a document; the largest published one has two million bytes.
const maxBytes = 1 << 28

// NewReader reads r to its end. file is the name used in messages. A fault is a *traces.RowError whose Column names the
// query and the faulty part of it.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(data) > maxBytes {
		return nil, &traces.RowError{File: file, Line: 1, Value: strconv.Itoa(len(data)) + " bytes",
			Want: fmt.Sprintf("at most %d", maxBytes)}
	}
	p := &parser{file: file, data: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), rule: o.Rule}
	jobs, err := p.jobs()
	if err != nil {
		return nil, err
	}
	return &Reader{traces.Slice{Jobs: jobs}}, nil
}

// Next implements traces.Stream.
func (d *Reader) Next(j *traces.Job) error { return d.stream.Next(j) }

// Sniff reports whether head, the first bytes of an unpacked file, is of this format: a JSON object with edges and
// fresh_durations.
func Sniff(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	return len(head) > 0 && head[0] == '{' && bytes.Contains(head, []byte(`"edges"`)) &&
		bytes.Contains(head, []byte(`"fresh_durations"`))
}

type parser struct {
	file string
	data []byte
	rule Rule
	at   int64  // offset of the query being read
	key  string // of that query
}

// query is one query as written.
type query struct {
	Edges  [][]int32      `json:"edges"`
	Spark  map[string]int `json:"spark_stage_id"`
	Stages []struct {
		Fresh map[string][]float64 `json:"fresh_durations"`
		First map[string][]float64 `json:"first_wave"`
		Rest  map[string][]float64 `json:"rest_wave"`
	} `json:"stages"`
}

// stage holds one stage's run times by number of executors.
type stage struct{ fresh, first, rest waves }

func (p *parser) jobs() ([]traces.Job, error) {
	d := json.NewDecoder(bytes.NewReader(p.data))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return nil, p.fault("", "", "a JSON object of queries")
	}
	var jobs []traces.Job
	seen := map[string]bool{}
	for d.More() {
		tok, err := d.Token()
		if err != nil {
			return nil, p.broken(err, d)
		}
		p.key, _ = tok.(string) // the keys of an object are strings
		p.at = d.InputOffset()
		if seen[p.key] {
			return nil, p.fault("", p.key, "each query once")
		}
		seen[p.key] = true
		var q query
		if err := d.Decode(&q); err != nil {
			return nil, p.broken(err, d)
		}
		j, err := p.job(&q)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if _, err := d.Token(); err != nil {
		return nil, p.broken(err, d)
	}
	if _, err := d.Token(); err != io.EOF {
		p.at = d.InputOffset()
		return nil, p.fault("", "", "nothing after the object of queries")
	}
	slices.SortFunc(jobs, func(a, b traces.Job) int {
		return cmp.Or(cmp.Compare(number(a.ID), number(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return jobs, nil
}

// number returns a query's key as a number; keys that are not numbers sort last.
func number(key string) int {
	if n, err := strconv.Atoi(key); err == nil {
		return n
	}
	return math.MaxInt
}

// broken describes a fault that encoding/json found.
func (p *parser) broken(err error, d *json.Decoder) error {
	p.at = d.InputOffset()
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		p.at = s.Offset
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return p.fault(t.Field, t.Value, "what JSON reads as "+t.Type.String())
	}
	return p.fault("", err.Error(), "a JSON document that is whole")
}

func (p *parser) fault(what, value, want string) error {
	column := "query " + p.key
	if p.key == "" {
		column = ""
	}
	if what != "" {
		column += " " + what
	}
	at := min(int(p.at), len(p.data))
	return &traces.RowError{File: p.file, Line: 1 + bytes.Count(p.data[:at], []byte{'\n'}), Column: column, Value: value,
		Want: want}
}

const (
	maxMs        = 1e10 // four months; no task runs longer
	maxInstances = 1 << 24
)

func (p *parser) job(q *query) (traces.Job, error) {
	g := &traces.Graph{}
	total := 0.0 // ns
	for i := range q.Stages {
		at := fmt.Sprintf("stages[%d]", i)
		var st stage
		for _, w := range [...]struct {
			name string
			from map[string][]float64
			to   *waves
		}{{"fresh_durations", q.Stages[i].Fresh, &st.fresh}, {"first_wave", q.Stages[i].First, &st.first},
			{"rest_wave", q.Stages[i].Rest, &st.rest}} {
			var err error
			if *w.to, err = p.waves(at+"."+w.name, w.from); err != nil {
				return traces.Job{}, err
			}
		}
		executors := slices.AppendSeq(slices.Collect(maps.Keys(st.first)), maps.Keys(st.rest))
		slices.Sort(executors)
		executors = slices.Compact(executors)
		n := 0
		if len(executors) > 0 {
			n = len(st.first[executors[0]]) + len(st.rest[executors[0]])
		}
		if n == 0 || n > maxInstances {
			return traces.Job{}, p.fault(at, strconv.Itoa(n)+" tasks",
				fmt.Sprintf("1 to %d in first_wave and rest_wave, at the smallest number of executors", maxInstances))
		}
		ns := math.Round(p.rule.duration(&st, executors) * 1e6)
		total += ns * float64(n)
		name := strconv.Itoa(i)
		if id, ok := q.Spark[name]; ok {
			name = strconv.Itoa(id)
		}
		g.Tasks = append(g.Tasks, traces.Task{Name: "stage " + name, Instances: n, Work: time.Duration(ns)})
	}
	if len(g.Tasks) == 0 {
		return traces.Job{}, p.fault("stages", "none", "one or more")
	}
	if total > math.MaxInt64/2 {
		return traces.Job{}, p.fault("stages", fmt.Sprintf("%g s of work", total/1e9), "less than 146 years")
	}
	for i, e := range q.Edges {
		at := fmt.Sprintf("edges[%d]", i)
		if len(e) != 2 || e[0] < 0 || e[1] < 0 || int(e[0]) >= len(g.Tasks) || int(e[1]) >= len(g.Tasks) || e[0] == e[1] {
			return traces.Job{}, p.fault(at, fmt.Sprint(e),
				fmt.Sprintf("[parent, child], two of the %d stages, counted from 0", len(g.Tasks)))
		}
		k := traces.Edge{Parent: e[0], Child: e[1]}
		if slices.Contains(g.Edges, k) {
			return traces.Job{}, p.fault(at, fmt.Sprint(e), "each edge once")
		}
		g.Edges = append(g.Edges, k)
	}
	if _, ok := g.Order(nil); !ok {
		return traces.Job{}, p.fault("edges", "a cycle", "stages that do not need themselves, by way of their parents")
	}
	work := time.Duration(0)
	for _, k := range g.Tasks {
		work += k.Work * time.Duration(k.Instances)
	}
	return traces.Job{ID: p.key, Work: work, GPUs: 1, GPUMilli: 1000, Graph: g}, nil
}

// waves reads the numbers of executors and checks the run times.
func (p *parser) waves(at string, from map[string][]float64) (waves, error) {
	w := waves{}
	for _, k := range slices.Sorted(maps.Keys(from)) { // so that the reported fault is the first by key
		e, err := strconv.Atoi(k)
		if err != nil || e < 1 || w[e] != nil {
			return nil, p.fault(at, k, "a number of executors, each once")
		}
		for i, d := range from[k] {
			if !(d >= 0 && d <= maxMs) {
				return nil, p.fault(fmt.Sprintf("%s[%s][%d]", at, k, i), strconv.FormatFloat(d, 'g', -1, 64),
					"milliseconds, 0 or more")
			}
		}
		w[e] = append([]float64{}, from[k]...)
	}
	return w, nil
}
