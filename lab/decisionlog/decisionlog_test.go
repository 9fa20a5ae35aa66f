package decisionlog

import (
	"bytes"
	"strings"
	"testing"
)

func TestLogsAreReadAsTheyAreWritten(t *testing.T) {
	var b bytes.Buffer
	half, second := 0.5, 1
	w := NewWriter(&b, Header{Policy: "p", Scores: "probability", Rival: "sjf", Nodes: []int{2}})
	w.Job(&Job{ID: "a", GPUs: 1})
	w.Event(&Event{At: 1, Kind: "submit", Job: "a"})
	w.Decision(&Decision{At: 1, Number: 1, Waiting: 1, Chosen: 0, Rival: &second,
		Options: []Option{{Do: "start", Job: "a", Score: &half}, {Do: "wait", Score: &half}}})
	w.Event(&Event{At: 1, Kind: "start", Job: "a", GPUs: []int32{1}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	var again bytes.Buffer
	var copied *Writer
	err := Read(strings.NewReader(text), func(l *Line) error {
		switch {
		case l.Header != nil:
			copied = NewWriter(&again, *l.Header)
		case l.Job != nil:
			copied.Job(l.Job)
		case l.Event != nil:
			copied.Event(l.Event)
		default:
			copied.Decision(l.Decision)
		}
		return nil
	})
	if err != nil || copied.Flush() != nil || again.String() != text {
		t.Errorf("error %v; read\n%swant\n%s", err, again.String(), text)
	}
}

// The format is what other programs read.
func TestLinesKeepTheirBytes(t *testing.T) {
	var b bytes.Buffer
	half, second := 0.5, 1
	w := NewWriter(&b, Header{Policy: "p", Scores: "probability", Rival: "sjf", Nodes: []int{2}})
	w.Job(&Job{ID: "a", GPUs: 1})
	w.Event(&Event{At: 1, Kind: "submit", Job: "a"})
	w.Decision(&Decision{At: 1, Number: 1, Waiting: 1, Chosen: 0, Rival: &second,
		Options: []Option{{Do: "start", Job: "a", Score: &half}, {Do: "wait", Score: &half}}})
	w.Event(&Event{At: 1, Kind: "start", Job: "a", GPUs: []int32{1}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	const want = `{"log":"clustergym-decisions/1","policy":"p","scores":"probability","rival":"sjf","nodes":[2]}
{"job":"a","submit_s":0,"gpus":1}
{"t_s":1,"event":"submit","job":"a"}
{"t_s":1,"decision":1,"options":[{"do":"start","job":"a","score":0.5},{"do":"wait","score":0.5}],"chosen":0,"rival":1,"waiting":1}
{"t_s":1,"event":"start","job":"a","gpus":[1]}
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestBadLogsAreRefusedByLine(t *testing.T) {
	const head = `{"log":"clustergym-decisions/1","policy":"p","nodes":[2]}` + "\n" + `{"job":"a","gpus":1}` + "\n"
	for text, want := range map[string]string{
		"":      "it is empty",
		"{}\n":  "line 1: it is no log of decisions",
		"[1]\n": "line 1: it is no JSON object",
		`{"log":"clustergym-decisions/1"}` + "\n": "line 1: nodes and pool: got 0 GPUs",
		head + "{}\n":        "line 3: want a job, an event or a decision",
		head + `{"job":"a"}`: `line 3: job "a" was there before`,
		head + `{"event":"start","t_s":1,"job":"b"}`:                              `line 3: job "b" has no line`,
		head + `{"event":"start","t_s":1,"job":"a","gpus":[2]}`:                   "line 3: gpus: got 2 of a cluster with 2",
		head + "{\"event\":\"x\",\"t_s\":2}\n{\"event\":\"x\",\"t_s\":1}\n":       "line 4: t_s: got 1 after 2",
		head + `{"decision":2,"t_s":1,"options":[{"do":"wait"}]}`:                 "line 3: decision: got 2, want 1",
		head + `{"decision":1,"t_s":1,"options":[]}`:                              "line 3: options: got 0",
		head + `{"decision":1,"t_s":1,"options":[{"do":"wait"}],"chosen":1}`:      "line 3: chosen: got 1 of 1",
		head + `{"decision":1,"t_s":1,"options":[{"do":"wait"}],"rival":-1}`:      "line 3: rival: got -1 of 1",
		head + `{"decision":1,"t_s":1,"options":[{"do":"start","job":"nobody"}]}`: `line 3: option 0: job "nobody"`,
		head + `{"job":"b","gpus":1,"milli":2000}`:                                `line 3: milli: got 2000 of job "b"`,
		head + "{\"event\":\n": "line 3: it is no JSON object",
	} {
		err := Read(strings.NewReader(text), func(*Line) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// A log that is being written, or whose program was killed, ends in a part of a line.
func TestAPartOfALineIsLeftOut(t *testing.T) {
	const whole = `{"log":"clustergym-decisions/1","policy":"p","nodes":[2]}` + "\n" + `{"job":"a","gpus":1}` + "\n"
	const last = `{"event":"submit","t_s":1,"job":"a"}`
	for n := range len(last) + 1 {
		text, lines := whole+last[:n], 0
		want, left := 2, whole
		if n == len(last) {
			want, left = 3, text
		}
		if err := Read(strings.NewReader(text), func(*Line) error { lines++; return nil }); err != nil || lines != want {
			t.Errorf("%q: %d lines, error %v, want %d", text, lines, err, want)
		}
		if got := string(Whole([]byte(text))); got != left {
			t.Errorf("whole lines of %q are %q", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"log":"clustergym-decisions/1","policy":"p","pool":2}` + "\n" + `{"job":"a","gpus":1}` + "\n" +
		`{"event":"start","t_s":1,"job":"a","n":1}`)
	f.Fuzz(func(_ *testing.T, text string) {
		_ = Read(strings.NewReader(text), func(*Line) error { return nil }) // it must not panic
	})
}
