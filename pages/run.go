package pages

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/jsonl"
	"clustergym/internal/ordinary"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
)

// runData is what a server has read of a run. It can be read again at any time.
type runData struct {
	path string

	mu      sync.Mutex // guards the fields below
	tail    *jsonl.Tail
	whole   bool // columns are whole: a page shows the run's curves. Lists of a thousand runs need the last values alone
	columns map[string]*column
	events  []event
	last    rundir.Line    // the last record
	best    *rundir.Line   // the last validation that was the best
	valid   *rundir.Line   // the last validation
	written time.Time      // when progress.jsonl was changed last
	cfg     *config.Config // nil = not read yet
	cfgAt   time.Time
	params  [][2]string
	cut     int       // how often the file was cut or replaced
	asked   time.Time // when somebody asked for curves
}

// event is something that happened in a run, for people.
type event struct {
	Step  int64    `json:"step"`
	Kind  string   `json:"kind"` // validation, best, resumed, note
	Text  string   `json:"text"`
	Value *float64 `json:"value,omitempty"` // of a validation
}

func newRunData(path string) *runData {
	r := &runData{path: path, tail: jsonl.New(filepath.Join(path, rundir.ProgressFile))}
	r.forget()
	return r
}

// forget drops what was read of progress.jsonl.
func (r *runData) forget() {
	r.columns, r.events, r.last, r.best, r.valid = map[string]*column{}, nil, rundir.Line{}, nil, nil
}

// keepCurves is how long curves are kept that nobody asks for. Those of 100,000 lines take some 50 MB.
const keepCurves = 10 * time.Minute

// rest drops curves that nobody has asked for. Whoever asks again waits until the file is read again.
func (r *runData) rest(now time.Time) {
	if !r.mu.TryLock() {
		return // somebody asks now
	}
	defer r.mu.Unlock()
	if !r.whole || now.Sub(r.asked) < keepCurves {
		return
	}
	r.whole = false
	for _, c := range r.columns {
		c.shorten()
	}
}

// curved reads the run again, with its curves, unless it was read so.
func (r *runData) curved(now time.Time) {
	r.asked = now
	if !r.whole {
		r.whole, r.cut, r.tail = true, 0, jsonl.New(r.tail.Path())
		r.forget()
	}
}

// expect reads a run with its curves at the first reading: somebody will ask for them.
func (r *runData) expect(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tail.Lines() == 0 {
		r.curved(now)
	}
}

// column returns the column called key, which is made if need be.
func (r *runData) column(key []byte) *column {
	c := r.columns[string(key)]
	if c == nil {
		c = &column{last: !r.whole}
		r.columns[string(key)] = c
	}
	return c
}

var isEval = []byte(`"eval":{`)

// refresh reads what is new. The caller holds r.mu.
func (r *runData) refresh() error {
	if err := r.configure(); err != nil {
		return err
	}
	r.written = time.Time{}
	if i, err := os.Stat(filepath.Join(r.path, rundir.ProgressFile)); err == nil {
		r.written = i.ModTime()
	}
	anew := func() {
		if r.tail.Resets() != r.cut {
			r.forget()
			r.cut = r.tail.Resets()
		}
	}
	_, err := r.tail.Next(func(_ int, line []byte) error {
		anew()
		r.line(line)
		return nil
	})
	anew()
	return err
}

// configure reads config.yaml if it has changed.
func (r *runData) configure() error {
	i, err := os.Stat(filepath.Join(r.path, rundir.ConfigFile))
	if err != nil {
		return fault.Mistakef("%s: %v", filepath.Join(r.path, rundir.ConfigFile), ordinary.Reason(err))
	}
	if r.cfg != nil && i.ModTime().Equal(r.cfgAt) {
		return nil
	}
	cfg, err := rundir.ReadConfig(r.path)
	if err != nil {
		return err
	}
	params, err := paramsOf(&cfg)
	if err != nil {
		return err
	}
	r.cfg, r.cfgAt, r.params = &cfg, i.ModTime(), params
	return nil
}

// paramsOf returns the names and values of a run's settings.
func paramsOf(cfg *config.Config) ([][2]string, error) {
	params, err := rundir.Params(cfg)
	var out [][2]string
	for _, p := range params {
		out = append(out, [2]string{p.Name, rundir.ParamText(p)})
	}
	return out, err
}

// line takes in a line.
func (r *runData) line(line []byte) {
	if bytes.Contains(line, isEval) {
		r.validation(line)
		return
	}
	step, steps := math.NaN(), false
	type found struct {
		c *column
		v float64
	}
	some := make([]found, 0, 32)
	wall := math.NaN()
	ok := numbers(line, func(key []byte, v float64) {
		if !steps && string(key) == "step" {
			step, steps = v, true
			return
		}
		c := r.column(key)
		if string(key) == "timing/wall_s" {
			wall = v
		}
		some = append(some, found{c, v})
	})
	if !ok || !steps {
		return
	}
	if t := r.columns["timing/wall_s"]; t != nil && len(t.y) > 0 && wall < t.y[len(t.y)-1] {
		r.happened(event{Step: int64(t.x[len(t.x)-1]), Kind: "resumed", Text: "resumed by another process"})
	}
	for _, s := range some {
		s.c.add(step, s.v)
	}
	r.last = rundir.Line{Step: int64(step)}
}

// validation takes in the line of a validation.
func (r *runData) validation(line []byte) {
	var l rundir.Line
	if json.Unmarshal(line, &l) != nil || l.Eval == nil {
		return
	}
	at := l.Eval.At(l.Step)
	r.column([]byte("validation")).add(float64(l.Step), at.Value)
	r.valid = &l
	e := event{Step: l.Step, Kind: "validation", Text: "validation", Value: &at.Value}
	if l.Eval.Best {
		e.Kind, r.best = "best", &l
	}
	r.happened(e)
}

// happened keeps an event, of a long run the last ones.
func (r *runData) happened(e event) {
	if len(r.events) >= 2*mostEvents {
		r.events = append(r.events[:0], r.events[mostEvents:]...)
	}
	r.events = append(r.events, e)
}

// value returns the last value of a column.
func (r *runData) value(key string) (v float64, ok bool) {
	c := r.columns[key]
	if c == nil || len(c.y) == 0 {
		return 0, false
	}
	return c.y[len(c.y)-1], true
}

// summary is what lists show of a run.
type summary struct {
	entry
	Agent    string            `json:"agent,omitempty"`
	Env      string            `json:"env,omitempty"`
	Step     int64             `json:"step"`
	Steps    int64             `json:"steps"`
	Lines    int               `json:"lines"`
	Return   *float64          `json:"return,omitempty"`
	Rate     *float64          `json:"rate,omitempty"`
	Left     *float64          `json:"left_s,omitempty"`
	Wall     *float64          `json:"wall_s,omitempty"`
	State    string            `json:"state"` // coming, running, silent, done
	Seen     *float64          `json:"seen_s,omitempty"`
	Valid    *float64          `json:"validation,omitempty"`
	Metric   string            `json:"metric,omitempty"`
	Lower    bool              `json:"lower,omitempty"`
	Best     *float64          `json:"best,omitempty"`
	BestStep *int64            `json:"best_step,omitempty"`
	Params   map[string]string `json:"params,omitempty"`
	Fault    string            `json:"fault,omitempty"`
	// For /metrics:
	Losses            map[string]float64 `json:"-"`
	Length            *float64           `json:"-"`
	Episodes, Updates *float64           `json:"-"`
}

// quiet is how long a run may write nothing and still counts as running, at least; a line can take much longer where a
// step does.
const quiet = 2 * time.Minute

func pointer[T any](v T) *T { return &v }

// summarise reads what is new and returns what lists show.
func (r *runData) summarise(e entry, now time.Time, params bool) summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := summary{entry: e, State: "coming"}
	if e.away != nil {
		s.Fault = e.away.Error()
		return s
	}
	if err := r.refresh(); err != nil {
		s.Fault = err.Error()
		return s
	}
	s.Agent, s.Env, s.Steps, s.Step, s.Lines = r.cfg.Agent, r.cfg.Env.ID, r.cfg.Train.Steps, r.last.Step, r.tail.Lines()
	number := func(key string) *float64 {
		if v, ok := r.value(key); ok {
			return &v
		}
		return nil
	}
	s.Return, s.Rate, s.Wall = number("return_mean"), number("timing/steps_per_s"), number("timing/wall_s")
	s.Length, s.Episodes, s.Updates = number("length_mean"), number("episodes"), number("updates")
	s.Losses = map[string]float64{}
	for key, c := range r.columns {
		if name, ok := bytes.CutPrefix([]byte(key), []byte("train/")); ok && len(c.y) > 0 {
			s.Losses[string(name)] = c.y[len(c.y)-1]
		}
	}
	if r.valid != nil {
		s.Step = max(s.Step, r.valid.Step)
		at := r.valid.Eval.At(r.valid.Step)
		s.Valid, s.Metric, s.Lower = &at.Value, at.Metric, !rundir.HigherIsBetter(at.Metric)
	}
	if r.best != nil {
		at := r.best.Eval.At(r.best.Step)
		s.Best, s.BestStep = &at.Value, &at.Step
	}
	if params {
		s.Params = map[string]string{}
		for _, p := range r.params {
			s.Params[p[0]] = p[1]
		}
	}
	if !r.written.IsZero() {
		silent := max(0, now.Sub(r.written))
		s.Seen = pointer(silent.Seconds())
		s.State = "running"
		if silent > max(quiet, 4*r.pace()) {
			s.State = "silent"
		}
	}
	if s.Step >= s.Steps && s.Steps > 0 {
		s.State = "done"
	} else if s.State == "running" && s.Rate != nil && *s.Rate > 0 {
		s.Left = pointer(float64(s.Steps-s.Step) / *s.Rate)
	}
	return s
}

// pace returns how long the last line took to come.
func (r *runData) pace() time.Duration {
	c := r.columns["timing/wall_s"]
	if c == nil || len(c.y) < 2 {
		return 0
	}
	n := len(c.y)
	return time.Duration(max(0, c.y[n-1]-c.y[n-2]) * float64(time.Second))
}

// detail is the page of a run, beside its curves.
type detail struct {
	summary
	Path     string      `json:"path"`
	Config   [][2]string `json:"config"`
	Keys     []string    `json:"keys"`
	Events   []event     `json:"events"`
	Seconds  bool        `json:"seconds"` // validations are times
	Title    string      `json:"validation_title"`
	Test     *testResult `json:"test,omitempty"`
	Replay   bool        `json:"replay"` // there is a checkpoint and the environment can show its decisions
	NoReplay string      `json:"no_replay,omitempty"`
}

// mostEvents is how many of a run's events a page shows: the last ones.
const mostEvents = 400

func (r *runData) detail(e entry, now time.Time) detail {
	d := detail{summary: r.summarise(e, now, false), Path: e.path, Config: [][2]string{}, Keys: []string{},
		Events: []event{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cfg == nil {
		return d
	}
	d.Config = r.params
	d.Keys = slices.AppendSeq(d.Keys, maps.Keys(r.columns))
	slices.Sort(d.Keys)
	d.Events = append(d.Events, r.events[max(0, len(r.events)-mostEvents):]...)
	if note := r.cfg.Note(); note != "" {
		d.Events = append(d.Events, event{Kind: "note", Text: "this run " + note})
	}
	d.Title = "mean return"
	if m, ok := rundir.MetricOf(d.Metric); ok {
		d.Title, d.Seconds = m.Title, m.Unit == envs.JCT.Unit
	} else if d.Metric == rundir.BestMetric {
		d.Title, d.Seconds = "mean JCT", true
	}
	d.Test = readTest(r.path)
	d.Replay, d.NoReplay = canReplay(r.path, r.cfg)
	return d
}

// curves are columns of a run in buckets.
type curves struct {
	ID    string              `json:"id"`
	Lines int                 `json:"lines"` // that they are of: events go on after it
	Head  string              `json:"head"`  // of the file that they are of
	Step  int64               `json:"step"`
	Keys  map[string]bucketed `json:"curves"`
}

func (r *runData) curves(id string, now time.Time, keys []string, from, to float64, n int) (curves, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.curved(now)
	if err := r.refresh(); err != nil {
		return curves{}, err
	}
	out := curves{ID: id, Lines: r.tail.Lines(), Head: r.tail.Head(), Step: r.last.Step, Keys: map[string]bucketed{}}
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(r.columns))
	}
	for _, k := range keys {
		if c := r.columns[k]; c != nil {
			b := c.reduce(from, to, n)
			b.X, b.Y = slices.Clone(b.X), slices.Clone(b.Y)
			out.Keys[k] = b
		}
	}
	return out, nil
}

// follow returns a tail of progress.jsonl that goes on near line n.
func (r *runData) follow(n int) *jsonl.Tail {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tail.After(n)
}

// testResult is what eval/test.json says: the comparison on test windows or streams at the end of a training.
type testResult struct {
	Metric   string       `json:"metric"`
	Title    string       `json:"title"` // of the metric
	Seconds  bool         `json:"seconds"`
	Higher   bool         `json:"higher,omitempty"` // values are better
	Windows  int          `json:"windows"`
	Streams  string       `json:"streams,omitempty"` // what was played in place of windows, in words
	Policies []testPolicy `json:"policies"`
	Paired   any          `json:"paired"` // []statistic.Paired, or []statistic.Replicated of streams
}

type testPolicy struct {
	Name string   `json:"name"`
	Kind string   `json:"kind"`
	Mean *float64 `json:"mean"`
	IQM  *float64 `json:"iqm"`
	Low  *float64 `json:"low"` // ends of the interval of the IQM, or of the mean over streams
	High *float64 `json:"high"`
}

// readTest reads eval/test.json, nil if there is none of that kind.
func readTest(dir string) *testResult {
	b, err := ordinary.Read(filepath.Join(dir, filepath.FromSlash(rundir.EvalFile)), ordinary.Settings)
	if err != nil {
		return nil
	}
	c, err := report.Read(b)
	if err != nil {
		return nil
	}
	if r, ok := c.(*report.StreamReport); ok && len(r.Policies) > 0 {
		return streamResult(r)
	}
	r, ok := c.(*report.Report)
	if !ok || len(r.Policies) == 0 || len(r.Windows) == 0 {
		return nil
	}
	out := &testResult{Metric: "jct_s", Title: "mean JCT", Seconds: true, Windows: len(r.Windows), Paired: r.Paired}
	for _, p := range r.Policies {
		t := testPolicy{Name: p.Name, Kind: p.Kind}
		if p.Metrics != nil {
			s := &p.Metrics.JCT
			t.Mean, t.IQM, t.Low, t.High = &s.Mean, &s.IQM, &s.CI95[0], &s.CI95[1]
		}
		out.Policies = append(out.Policies, t)
	}
	return out
}

// streamResult is readTest of a comparison on streams.
func streamResult(r *report.StreamReport) *testResult {
	m := r.Counts()
	out := &testResult{Metric: m.Key, Title: m.Title, Seconds: strings.HasSuffix(m.Key, "_s"), Higher: m.Higher,
		Streams: r.Units(), Paired: r.Paired}
	for i := range r.Policies {
		p := &r.Policies[i]
		t := testPolicy{Name: p.Name, Kind: p.Kind}
		if p.Metrics != nil {
			s := r.Statistic(p)
			t.Mean, t.Low, t.High = report.Number(float64(s.Mean)), report.Number(s.CI95[0]), report.Number(s.CI95[1])
		}
		out.Policies = append(out.Policies, t)
	}
	return out
}
