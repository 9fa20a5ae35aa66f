package agenttest

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
)

// State returns what every part writes, by its name.
func State(t testing.TB, parts []agents.Part) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, p := range parts {
		var w bytes.Buffer
		if _, err := p.WriteTo(&w); err != nil {
			t.Fatalf("%s: %v", p.Name(), err)
		}
		out[p.Name()] = w.Bytes()
	}
	return out
}

// SameState fails the test if got is not want, byte for byte, or if there is nothing to compare.
func SameState(t testing.TB, what string, got, want map[string][]byte) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d parts, want %d", what, len(got), len(want))
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// Save writes the agent's parts as a checkpoint and returns its directory.
func (l *Loop[A]) Save(t testing.TB, m checkpoint.Meta) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "checkpoint")
	if err := checkpoint.Save(dir, m, l.Agent.Parts()...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Load reads the checkpoint in dir into the agent and fails the test if it is not one of m.
func (l *Loop[A]) Load(t testing.TB, dir string, m checkpoint.Meta) {
	t.Helper()
	got, err := checkpoint.Load(dir, l.Agent.Parts()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Match(m); err != nil {
		t.Fatal(err)
	}
}

// follow copies what of a run belongs to the trainer: the environments, the batch, the steps and the streams.
func (l *Loop[A]) follow(t testing.TB, from *Loop[A]) {
	t.Helper()
	snap, err := from.Vec.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Vec.RestoreSnapshot(snap, l.Batch); err != nil {
		t.Fatal(err)
	}
	l.Batch.CopyFrom(from.Batch)
	l.Steps = from.Steps
	for i, p := range from.pcg {
		*l.pcg[i] = *p
	}
}

// RefusesState checks that the part of that name returns an error for each of the texts, and that the agent's state
// is then unchanged.
func RefusesState(t testing.TB, a agents.Agent, part string, bad map[string]string) {
	t.Helper()
	before := State(t, a.Parts())
	if _, ok := before[part]; !ok {
		t.Fatalf("no part %s", part)
	}
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		for _, p := range a.Parts() {
			if p.Name() != part {
				continue
			}
			if _, err := p.ReadFrom(strings.NewReader(bad[name])); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		SameState(t, name, State(t, a.Parts()), before)
	}
}
