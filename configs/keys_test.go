package configs

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestKeysAreThoseThatADocumentGives(t *testing.T) {
	cfg := defaults()
	text := "steps: 3\ntrain: &t\n  gamma: 0.5\nlimits: [4, 5]\nracks:\n  - {count: 2}\nwidth: 8\n"
	got, err := Keys("x.yaml", []byte(text), cfg)
	want := strings.Fields("limits limits[0] limits[1] racks racks[0] racks[0].count steps train train.gamma width")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if !reflect.DeepEqual(cfg, defaults()) {
		t.Error("the configuration was changed")
	}
	if got, err := Keys("x.yaml", []byte("# nothing\n"), cfg); err != nil || len(got) != 0 {
		t.Errorf("an empty document: %v, %v", got, err)
	}
	if _, err := Keys("x.yaml", []byte("a: [\n"), cfg); err == nil {
		t.Error("a document that is not YAML has keys")
	}
}

func TestSetKeysReturnsTheKeysThatItChanged(t *testing.T) {
	for set, want := range map[string]string{
		"steps=3": "steps", "train.gamma=0.5": "train.gamma", "width=8": "width", "racks[0].count=7": "racks[0].count",
		"train={gamma: 0.5, inner: {depth: 2}}": "train train.gamma train.inner train.inner.depth",
		"limits=[4]":                            "limits limits[0]",
	} {
		cfg := defaults()
		got, err := SetKeys(cfg, set)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", set, got, err, want)
		}
	}
	if got, err := SetKeys(defaults(), "steps=many"); err == nil || len(got) > 0 {
		t.Errorf("a wrong value: %v, %v", got, err)
	}
}

// terse leaves out the keys of its YAML that are zero; its label is one text.
type terse struct {
	Depth int     `yaml:"depth"`
	Width int     `yaml:"width"`
	Label written `yaml:"label"`
}

func (x terse) MarshalYAML() (any, error) { return map[string]int{"depth": x.Depth}, nil }

type written struct {
	A string `yaml:"a"`
}

func (x written) MarshalText() ([]byte, error) { return []byte(x.A), nil }

type outer struct {
	Steps int   `yaml:"steps"`
	Inner terse `yaml:"inner"`
}

func (*outer) Validate() error { return nil }

// A section that encodes itself is a section, and a struct that is written as one text is one value.
func TestAllKeysGoIntoSections(t *testing.T) {
	if got, want := AllKeys(new(outer)),
		strings.Fields("steps inner.depth inner.width inner.label"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
