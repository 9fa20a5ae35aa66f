// Package decisionlog reads and writes logs of decisions: what happened on a cluster, and at each decision how a policy
// weighed its options beside what a rival would have done. docs/guides/dashboard.md describes the format, which other
// programs may write too; gymctl ui shows it.
package decisionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Format is the value of Header.Log.
const Format = "clustergym-decisions/1"

// The bounds of a log that is read.
const (
	MaxBytes   = 256 << 20
	maxLine    = 4 << 20
	maxGPUs    = 1 << 20
	maxOptions = 1 << 14
)

// Header is the first line. A cluster is Nodes or Pool.
type Header struct {
	Log    string `json:"log"` // Format
	Title  string `json:"title,omitempty"`
	Env    string `json:"env,omitempty"`
	Policy string `json:"policy"`
	// Scores says what Option.Score is: probability, value, or another word in the singular. "" = there are none.
	Scores string `json:"scores,omitempty"`
	Rival  string `json:"rival,omitempty"` // whose choice Decision.Rival is; "" = nobody's
	Nodes  []int  `json:"nodes,omitempty"` // GPUs of each node; they are numbered from 0 on, node by node
	Pool   int    `json:"pool,omitempty"`  // GPUs without identity
	// Names are those of Nodes, if they have any.
	Names []string `json:"names,omitempty"`
	// Zero is when t_s was 0; the zero time = on no clock.
	Zero time.Time `json:"zero,omitzero"`
}

// Job is what is known of a job. It stands before the job's first event.
type Job struct {
	ID       string   `json:"job"`
	Submit   float64  `json:"submit_s"`
	GPUs     int      `json:"gpus"`
	Milli    int      `json:"milli,omitempty"` // of each GPU, of a job that takes a share of one; 0 = all
	User     string   `json:"user,omitempty"`
	Model    string   `json:"model,omitempty"`
	Estimate *float64 `json:"estimate_s,omitempty"` // of its run time
}

// Event is something that happened. Its fields are those of the event files of gymctl sim --events; N is the number of
// GPUs on a pool.
type Event struct {
	At   float64 `json:"t_s"`
	Kind string  `json:"event"` // submit, start, finish, preempt, fail, drop, migrate, resize, node-fail, node-recover
	Job  string  `json:"job,omitempty"`
	GPUs []int32 `json:"gpus,omitempty"`
	N    int32   `json:"n,omitempty"`
	Node *int32  `json:"node,omitempty"`
}

// Decision is a moment at which a policy chose among options.
type Decision struct {
	At      float64  `json:"t_s"`
	Number  int      `json:"decision"` // from 1 on
	Options []Option `json:"options"`
	Chosen  int      `json:"chosen"`          // index of Options
	Rival   *int     `json:"rival,omitempty"` // index of the rival's choice; nil = it has none
	Waiting int      `json:"waiting"`         // jobs in the queue, visible or not
	Notes   []string `json:"notes,omitempty"` // what people should know about it
}

// Option is one thing that the policy could do.
type Option struct {
	Do       string   `json:"do"`            // start, stop, wait, or another word
	Job      string   `json:"job,omitempty"` // what it is done to
	Score    *float64 `json:"score,omitempty"`
	Illegal  bool     `json:"illegal,omitempty"` // it is shown, and could not be chosen
	Estimate *float64 `json:"estimate_s,omitempty"`
}

// Line is one line of a log: the field of its kind is set.
type Line struct {
	Header   *Header
	Job      *Job
	Event    *Event
	Decision *Decision
}

// Writer writes a log. It keeps its first error, which Flush returns. Not safe for concurrent use.
type Writer struct {
	w   *bufio.Writer
	err error
}

// NewWriter writes the header to w.
func NewWriter(w io.Writer, h Header) *Writer {
	h.Log = Format
	l := &Writer{w: bufio.NewWriterSize(w, 1<<16)}
	l.put(h)
	return l
}

// Job writes a job.
func (w *Writer) Job(j *Job) { w.put(j) }

// Event writes an event.
func (w *Writer) Event(e *Event) { w.put(e) }

// Decision writes a decision.
func (w *Writer) Decision(d *Decision) { w.put(d) }

func (w *Writer) put(v any) {
	if w.err != nil {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		_, err = w.w.Write(append(b, '\n'))
	}
	w.err = err
}

// Flush writes what is buffered and returns the first error of all writes.
func (w *Writer) Flush() error {
	if err := w.w.Flush(); w.err == nil {
		w.err = err
	}
	return w.err
}

// Whole returns the lines of a log without a part of a line at its end.
func Whole(b []byte) []byte {
	n := bytes.LastIndexByte(b, '\n') + 1
	if json.Valid(b[n:]) {
		return b
	}
	return b[:n]
}

// IsHeader reports whether a line is the header of a log, whatever its version.
func IsHeader(line []byte) bool {
	var h Header
	return json.Unmarshal(line, &h) == nil && strings.HasPrefix(h.Log, "clustergym-decisions/")
}

// Read calls f for every line of a log. The error names the line of the first fault: a line that is none of the four
// kinds, a time that goes backwards, a job or GPU that is not there, or a choice that is no option. What follows the
// last whole line is left out: a program that still writes the log, or was killed, leaves a part of a line there.
func Read(r io.Reader, f func(l *Line) error) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<16), maxLine)
	in.Split(func(b []byte, end bool) (int, []byte, error) {
		n, line, err := bufio.ScanLines(b, end)
		if end && n == len(b) && n > 0 && b[n-1] != '\n' && !json.Valid(line) {
			return n, nil, err
		}
		return n, line, err
	})
	c := check{jobs: map[string]bool{}}
	for in.Scan() {
		c.n++
		b := bytes.TrimSpace(in.Bytes())
		if len(b) == 0 {
			continue
		}
		l, err := c.line(b)
		if err != nil {
			return fmt.Errorf("line %d: %w", c.n, err)
		}
		if err := f(l); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("line %d: %w", c.n+1, err)
	}
	if c.header == nil {
		return fmt.Errorf("it is empty, want a log of decisions, whose first line has \"log\":%q", Format)
	}
	return nil
}

// check is the state of a log that is read.
type check struct {
	n         int
	header    *Header
	gpus      int
	now       float64
	jobs      map[string]bool
	decisions int
}

func (c *check) line(b []byte) (*Line, error) {
	var kind struct {
		Log      *string `json:"log"`
		Event    *string `json:"event"`
		Decision *int    `json:"decision"`
		Job      *string `json:"job"`
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	if c.header == nil {
		if kind.Log == nil || *kind.Log != Format {
			return nil, fmt.Errorf("it is no log of decisions, whose first line has \"log\":%q", Format)
		}
		h, err := read(b, c.head)
		return &Line{Header: h}, err
	}
	switch {
	case kind.Decision != nil:
		d, err := read(b, c.decision)
		return &Line{Decision: d}, err
	case kind.Event != nil:
		e, err := read(b, c.event)
		return &Line{Event: e}, err
	case kind.Job != nil:
		j, err := read(b, c.job)
		return &Line{Job: j}, err
	}
	return nil, fmt.Errorf("want a job, an event or a decision")
}

// read decodes a line and checks it.
func read[T any](b []byte, check func(v *T) error) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, err
	}
	return v, check(v)
}

func (c *check) job(j *Job) error {
	switch {
	case c.jobs[j.ID]:
		return fmt.Errorf("job %q was there before", j.ID)
	case j.GPUs < 0 || j.GPUs > maxGPUs:
		return fmt.Errorf("job %q has %d GPUs", j.ID, j.GPUs)
	case j.Milli < 0 || j.Milli > 1000:
		return fmt.Errorf("milli: got %d of job %q, want thousandths of a GPU, 1 to 1000", j.Milli, j.ID)
	}
	c.jobs[j.ID] = true
	return nil
}

func (c *check) head(h *Header) error {
	c.header, c.gpus, c.now = h, h.Pool, math.Inf(-1)
	if len(h.Nodes) > 0 {
		c.gpus = 0
		for _, n := range h.Nodes {
			if n < 0 || n > maxGPUs {
				return fmt.Errorf("nodes: got %d GPUs of one", n)
			}
			c.gpus = min(c.gpus+n, maxGPUs+1)
		}
	}
	if len(h.Names) > 0 && len(h.Names) != len(h.Nodes) {
		return fmt.Errorf("names: got %d of %d nodes", len(h.Names), len(h.Nodes))
	}
	if c.gpus < 1 || c.gpus > maxGPUs || len(h.Nodes) > 0 && h.Pool != 0 {
		return fmt.Errorf("nodes and pool: got %d GPUs, want 1 to %d in one of the two", c.gpus, maxGPUs)
	}
	return nil
}

func (c *check) time(t float64) error {
	if !(t >= c.now) || math.IsInf(t, 0) {
		return fmt.Errorf("t_s: got %v after %v, want times that do not go backwards", t, c.now)
	}
	c.now = t
	return nil
}

func (c *check) event(e *Event) error {
	if e.Job != "" && !c.jobs[e.Job] {
		return fmt.Errorf("job %q has no line before its first event", e.Job)
	}
	for _, g := range e.GPUs {
		if int(g) < 0 || int(g) >= c.gpus {
			return fmt.Errorf("gpus: got %d of a cluster with %d", g, c.gpus)
		}
	}
	if e.N < 0 || int(e.N) > c.gpus {
		return fmt.Errorf("n: got %d of a pool with %d GPUs", e.N, c.gpus)
	}
	return c.time(e.At)
}

func (c *check) decision(d *Decision) error {
	c.decisions++
	if d.Number != c.decisions {
		return fmt.Errorf("decision: got %d, want %d", d.Number, c.decisions)
	}
	if len(d.Options) == 0 || len(d.Options) > maxOptions {
		return fmt.Errorf("options: got %d, want 1 to %d", len(d.Options), maxOptions)
	}
	for i := range d.Options {
		if j := d.Options[i].Job; j != "" && !c.jobs[j] {
			return fmt.Errorf("option %d: job %q has no line before", i, j)
		}
	}
	if d.Chosen < 0 || d.Chosen >= len(d.Options) {
		return fmt.Errorf("chosen: got %d of %d options", d.Chosen, len(d.Options))
	}
	if d.Rival != nil && (*d.Rival < 0 || *d.Rival >= len(d.Options)) {
		return fmt.Errorf("rival: got %d of %d options", *d.Rival, len(d.Options))
	}
	return c.time(d.At)
}
