package twin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/live"
	"clustergym/traces"
)

// logName begins the lines of a log of forecasts.
const logName = "clustergym-twin/1"

// StartLine is a start that has been seen.
type StartLine struct {
	ID     string    `json:"id"`
	GPUs   int       `json:"gpus"`
	Submit time.Time `json:"submit"`
	Start  time.Time `json:"start"`
}

// line is a line of the log: a forecast, and what was seen then.
type line struct {
	Log string `json:"log"`
	Report
	// Started are the jobs that run, and those that have ended not long ago.
	Started []StartLine `json:"started,omitempty"`
}

// AppendLog adds a forecast and the starts that its snapshot knows to a file. s may be nil.
func AppendLog(file string, r *Report, s *live.Snapshot) error {
	x := line{Log: logName, Report: *r}
	x.WhatIfs, x.Room = nil, nil
	if s != nil {
		x.Started = startsOf(s)
	}
	b, err := json.Marshal(&x)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // others may read it
	if err != nil {
		return &fault.Mistake{Err: fault.Errorf("%s: %w", fault.Key("log"), err)}
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

func startsOf(s *live.Snapshot) (list []StartLine) {
	for _, jobs := range [][]live.Job{s.Jobs, s.Ended} {
		for i := range jobs {
			if j := &jobs[i]; j.GPUs > 0 && j.State != live.Waiting && !j.Start.IsZero() {
				list = append(list, StartLine{j.ID, j.GPUs, j.Submit, j.Start})
			}
		}
	}
	return list
}

// Truth is what has happened.
type Truth struct {
	starts map[string][]StartLine // by job, in order of start
	until  time.Time              // up to when it is known
	waits  map[string]time.Time   // when a job was last seen to wait
	whole  bool                   // all that will ever start is known
}

// NewTruth returns a truth of which nothing is known.
func NewTruth() *Truth {
	return &Truth{starts: map[string][]StartLine{}, waits: map[string]time.Time{}}
}

// add takes in a start.
func (t *Truth) add(s StartLine) {
	list := t.starts[s.ID]
	if i, found := slices.BinarySearchFunc(list, s, func(a, b StartLine) int { return a.Start.Compare(b.Start) }); !found {
		t.starts[s.ID] = slices.Insert(list, i, s)
	}
	t.know(s.Start)
}

func (t *Truth) know(at time.Time) {
	if at.After(t.until) {
		t.until = at
	}
}

// waiting notes that a job waited at a time.
func (t *Truth) waiting(id string, at time.Time) {
	if at.After(t.waits[id]) {
		t.waits[id] = at
	}
}

// of returns the first start of a job that is not before at.
func (t *Truth) of(id string, at time.Time) (time.Time, bool) {
	for _, s := range t.starts[id] {
		if !s.Start.Before(at.Truncate(time.Second)) {
			return s.Start, true
		}
	}
	return time.Time{}, false
}

// Look takes in what a cluster says now.
func (t *Truth) Look(s *live.Snapshot) {
	for _, x := range startsOf(s) {
		t.add(x)
	}
	t.know(s.At)
	for i := range s.Jobs {
		if s.Jobs[i].State == live.Waiting {
			t.waiting(s.Jobs[i].ID, s.At)
		}
	}
}

// lines takes in the starts of a log of forecasts, and who waited when.
func (t *Truth) lines(all []line) {
	for i := range all {
		x := &all[i]
		for _, s := range x.Started {
			t.add(s)
		}
		t.know(x.At)
		for k := range x.Waiting {
			t.waiting(x.Waiting[k].ID, x.At)
		}
		for k := range x.Blocked {
			t.waiting(x.Blocked[k].ID, x.At)
		}
	}
}

// Read takes in the starts of a file: a log of steer or of twin, or what sacct has printed, as trace get slurm writes
// it.
func (t *Truth) Read(file string) error {
	r, err := traces.OrdinaryFiles().Open(context.Background(), file)
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	defer func() { _ = r.Close() }() // nothing is written
	b := bufio.NewReaderSize(r, 1<<16)
	head, _ := b.Peek(1) // an empty file has no lines either
	if len(head) == 1 && head[0] == '{' {
		return t.readLog(b, file)
	}
	list, err := recorded(b, file)
	if err != nil {
		return err
	}
	for _, s := range list {
		if !s.Start.IsZero() {
			t.add(s)
		}
	}
	return nil
}

// readLog reads a log of steer or of twin. A log of steer tells what has changed since the line before.
func (t *Truth) readLog(r io.Reader, file string) error {
	type job struct {
		ID     string    `json:"id"`
		GPUs   int       `json:"gpus"`
		Submit time.Time `json:"submit"`
		Start  time.Time `json:"start"`
	}
	d := json.NewDecoder(r)
	open, at := map[string]bool{}, time.Time{} // jobs that wait as of a line of steer, and its time
	defer func() {
		for id := range open {
			t.waiting(id, at)
		}
	}()
	for n := 1; ; n++ {
		var x struct {
			At       time.Time `json:"at"`
			Observed time.Time `json:"observed"`
			Jobs     []job     `json:"jobs"`
			Arrived  []job     `json:"arrived"`
			Started  []job     `json:"started"`
			Ended    []job     `json:"ended"`
			Waiting  any       `json:"waiting"` // of twin: jobs; of steer: how many
			Blocked  any       `json:"blocked"`
		}
		switch err := d.Decode(&x); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF): // the last line is being written
			return nil
		case err != nil:
			return fault.Mistakef("%s, line %d: %w; want a log of gymctl steer or twin, or what trace get slurm writes", file, n,
				err)
		}
		if len(x.Jobs) > 0 { // all that there are
			for id := range open {
				t.waiting(id, at)
			}
			clear(open)
		}
		for _, jobs := range [][]job{x.Jobs, x.Arrived, x.Started, x.Ended} {
			for _, j := range jobs {
				if j.GPUs > 0 && !j.Start.IsZero() {
					t.add(StartLine(j))
				}
				if open[j.ID] {
					delete(open, j.ID)
					t.waiting(j.ID, at)
				}
			}
		}
		if x.Observed.IsZero() {
			x.Observed = x.At
		}
		at = x.Observed
		t.know(at)
		for _, jobs := range [][]job{x.Jobs, x.Arrived} {
			for _, j := range jobs {
				if j.Start.IsZero() {
					open[j.ID] = true
				}
			}
		}
		for _, list := range []any{x.Waiting, x.Blocked} {
			jobs, _ := list.([]any) // a number in a log of steer
			for _, j := range jobs {
				if f, ok := j.(map[string]any); ok {
					if id, ok := f["id"].(string); ok {
						t.waiting(id, at)
					}
				}
			}
		}
	}
}

// recorded reads the starts of a trace that has them: of sacct, or in the standard workload format, whose times count
// from its beginning.
func recorded(r io.Reader, file string) (list []StartLine, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<22)
	var columns map[string]int
	swf := false
	for n := 1; s.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(s.Text(), "\ufeff"))
		if text == "" {
			continue
		}
		if text[0] == ';' {
			swf = true
			continue
		}
		if columns == nil && !swf && strings.Contains(text, "|") {
			columns = map[string]int{}
			for i, c := range strings.Split(text, "|") {
				columns[strings.ToLower(c)] = i
			}
			if _, ok := columns["start"]; !ok {
				return nil, fault.Mistakef("%s has no column Start; want what gymctl trace get slurm writes", file)
			}
			continue
		}
		var x StartLine
		var ok bool
		if columns != nil {
			x, ok = ofSacct(strings.Split(text, "|"), columns)
		} else if x, ok = ofSWF(strings.Fields(text)); !ok && n == 1 {
			return nil,
				fault.Mistakef(
					"%s: nothing in it says when jobs started; want a log of gymctl steer or twin, what trace get slurm writes, or "+
						"a file in the standard workload format", file)
		}
		if ok {
			list = append(list, x)
		}
	}
	return list, s.Err()
}

func ofSacct(f []string, columns map[string]int) (x StartLine, ok bool) {
	get := func(name string) string {
		if i, ok := columns[name]; ok && i < len(f) {
			return f[i]
		}
		return ""
	}
	when := func(text string) time.Time {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			return time.Unix(n, 0).UTC()
		}
		t, err := time.ParseInLocation("2006-01-02T15:04:05", text, time.Local)
		if err != nil {
			return time.Time{}
		}
		return t
	}
	x = StartLine{ID: get("jobid"), Submit: when(get("submit")), Start: when(get("start"))}
	if strings.Contains(x.ID, ".") || x.ID == "" { // a step
		return x, false
	}
	for _, name := range []string{"alloctres", "reqtres"} {
		for part := range strings.SplitSeq(get(name), ",") {
			if v, found := strings.CutPrefix(part, "gres/gpu="); found && x.GPUs == 0 {
				x.GPUs, _ = strconv.Atoi(v) // 0 where it is no number
			}
		}
	}
	return x, true
}

func ofSWF(f []string) (x StartLine, ok bool) {
	if len(f) != 18 {
		return x, false
	}
	submit, e1 := strconv.ParseFloat(f[1], 64)
	wait, e2 := strconv.ParseFloat(f[2], 64)
	if e1 != nil || e2 != nil || math.Abs(submit) > 1e10 || math.Abs(wait) > 1e10 {
		return x, false
	}
	x = StartLine{ID: f[0], Submit: time.Unix(int64(submit), 0).UTC()}
	for _, i := range []int{7, 4} { // asked for, else held
		if n, err := strconv.Atoi(f[i]); err == nil && n > 0 && x.GPUs == 0 {
			x.GPUs = n
		}
	}
	if wait >= 0 {
		x.Start = x.Submit.Add(time.Duration(wait) * time.Second)
	}
	return x, true
}

// mostLog bounds a log of forecasts: one of a year has less.
const mostLog = 4 << 30

// ReadLog reads a log of forecasts. A last line that is not whole is left out.
func ReadLog(file string) (lines []line, err error) { //nolint:revive // only this package looks into lines
	b, err := ordinary.Read(file, mostLog)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	for n := 1; len(b) > 0; n++ {
		text, rest, whole := bytes.Cut(b, []byte("\n"))
		if b = rest; len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var x line
		err := json.Unmarshal(text, &x)
		if err == nil && x.Log != logName {
			err = errors.New("it is no forecast")
		}
		if err != nil {
			if !whole {
				break
			}
			return nil, fault.Mistakef("%s, line %d: %w; want a log of gymctl twin %s", file, n, err, fault.Key("log"))
		}
		lines = append(lines, x)
	}
	if len(lines) == 0 {
		return nil, fault.Mistakef("%s has no forecast; want a log of gymctl twin %s", file, fault.Key("log"))
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.At.Compare(b.At) })
	return lines, nil
}
