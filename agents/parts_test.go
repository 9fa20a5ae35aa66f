package agents

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

type counters struct {
	Steps int64   `json:"steps"`
	Mean  float64 `json:"mean"`
}

func TestJSONPartGoesThroughItsBytes(t *testing.T) {
	state := counters{Steps: 7, Mean: 0.1 + 0.2}
	p := NewJSONPart("agent.json", func() (counters, error) { return state, nil }, func(c counters) error {
		if c.Steps < 0 {
			return errors.New("steps are negative")
		}
		state = c
		return nil
	})
	if p.Name() != "agent.json" {
		t.Errorf("name is %q", p.Name())
	}
	var w bytes.Buffer
	if _, err := p.WriteTo(&w); err != nil {
		t.Fatal(err)
	}
	state = counters{}
	if _, err := p.ReadFrom(bytes.NewReader(w.Bytes())); err != nil {
		t.Fatal(err)
	}
	want := counters{Steps: 7, Mean: 0.1 + 0.2}
	if state != want {
		t.Errorf("got %+v, want %+v", state, want)
	}
	for name, text := range map[string]string{
		"cut short":     w.String()[:10],
		"unknown field": `{"steps": 1, "speed": 2}`,
		"more after it": `{"steps": 1} {}`,
		"wrong type":    `{"steps": "one"}`,
		"refused":       `{"steps": -1}`,
		"empty":         ``,
	} {
		_, err := p.ReadFrom(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), "agent.json") {
			t.Errorf("%s: got %v, want an error that names the part", name, err)
		}
		if state != want {
			t.Errorf("%s: the state has changed", name)
		}
	}
}
