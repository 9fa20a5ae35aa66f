package htmlpage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const second = time.Second

// script is a scheduler that makes prepared decisions by time.
type script map[time.Duration][]sim.Decision

func (script) Reset(*sim.View) {}

func (s script) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	if todo := s[v.Now()]; len(todo) > 0 {
		*d = todo[0]
		s[v.Now()] = todo[1:]
	}
	return nil
}

// read is the data of a page as the page's program reads it.
type read struct {
	Title  string
	Facts  [][2]string
	Tables []struct {
		Title, Text string
		Header      []string
		Rows        [][]string
	}
	Charts  []readChart
	Forests []readForest
	Notes   []string
	End     int64
	GPUs    int
	Pool    bool
	Nodes   int
	Node0   []int
	Sizes   []string
	Jobs    *struct {
		ID     []string
		Submit []int64
		Work   []int64
		GPUs   []int
		User   *struct {
			Names []string
			Of    []int
		}
	}
	Runs []readRun
}

type readChart struct {
	Name, Title, X, Y, Text string
	Seconds, Lower, Log     bool
	Curves                  []struct {
		Name string
		X, Y []float64
		Best int
	}
	Levels []struct {
		Name  string
		Value float64
	}
}

type readForest struct {
	Name, Title, X, Text string
	Lower                bool
	Rows                 []struct {
		Name, Text string
		At         [3]float64
	}
}

type readRun struct {
	Name   string
	From   int64
	To     int64
	Starts int
	JCT    struct {
		Jobs  int
		At    []int64
		Share []float64
	}
	Ended  []int
	Series struct {
		At          []int64
		From, Width int64
		Values      [][]float64
		Low, Top    [][]float64
	}
	Heat *struct {
		From, Width int64
		Nodes       int
		GPU0        []int
		Rows        []string
	}
	Downs *struct {
		All      int
		Node     []int
		From, To []int64
	}
	Stints *struct {
		Job, Start, Length, Spans []int64
		GPU, N, Off, Milli        []int64
		Kind                      string
	}
	CoreOnly int
}

const dataTag = `<script type="application/json" id="data">`

func written(t testing.TB, p *Page) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(t testing.TB, p *Page) read {
	t.Helper()
	_, rest, ok := strings.Cut(string(written(t, p)), dataTag)
	block, _, end := strings.Cut(rest, "</script>")
	if !ok || !end {
		t.Fatal("the page has no data")
	}
	var d read
	if err := json.Unmarshal([]byte(block), &d); err != nil {
		t.Fatalf("%v in %.200s", err, block)
	}
	return d
}

func job(id string, submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: id, Submit: submit * second, Work: work * second, GPUs: gpus, GPUMilli: 1000}
}

func short(t testing.TB, name string) cluster.Spec {
	t.Helper()
	spec, ok, err := cluster.Parse(name)
	if !ok || err != nil {
		t.Fatal(name, ok, err)
	}
	return spec
}

func policy(t testing.TB, order string) sim.Scheduler {
	t.Helper()
	cfg := schedulers.DefaultConfig()
	cfg.Order = order
	s, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func simulate(t testing.TB, cfg sim.Config, spec cluster.Spec, jobs []traces.Job, sch sim.Scheduler,
	observers ...sim.Observer) {
	t.Helper()
	s, err := sim.New(cfg, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if err := sim.Run(context.Background(), s, sch, observers...); err != nil {
		t.Fatal(err)
	}
}

// mixed returns a workload of n jobs with many preemptions under srtf: large long jobs, and small short ones after
// them.
func mixed(n int) []traces.Job {
	var jobs []traces.Job
	for i := range n {
		j := job(fmt.Sprint("j", i), time.Duration(7*i), time.Duration(30+i*7919%400), 1+i*31%4)
		j.User, j.Model = fmt.Sprint("u", i%5), fmt.Sprint("m", i%3)
		jobs = append(jobs, j)
	}
	return jobs
}
