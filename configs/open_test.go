package configs

import (
	"strings"
	"testing"
	"time"
)

// tool is a configuration whose keys depend on a value.
type tool struct {
	Kind  string    `yaml:"kind"`
	Parts Validator `yaml:",inline"`
	Last  int       `yaml:"last"`
}

func (*tool) Validate() error { return nil }

type saw struct {
	Teeth int           `yaml:"teeth"`
	Pause time.Duration `yaml:"pause"`
	Inner inner         `yaml:"inner"`
}

func (*saw) Validate() error { return nil }

func TestAnOpenSectionHasTheKeysOfItsValue(t *testing.T) {
	c := tool{Kind: "saw", Parts: &saw{Teeth: 3}, Last: 1}
	before := c
	if err := DecodeBytes("t.yaml", []byte("kind: saw\nteeth: 7\ninner: {depth: 4}\nlast: 2\n"), &c); err != nil {
		t.Fatal(err)
	}
	if err := Set(&c, "pause=3s"); err != nil {
		t.Fatal(err)
	}
	if got := *c.Parts.(*saw); got != (saw{7, 3 * time.Second, inner{4}}) || c.Last != 2 {
		t.Errorf("got %+v", got)
	}
	if got := *before.Parts.(*saw); got != (saw{Teeth: 3}) {
		t.Errorf("a copy that was made before is %+v", got)
	}
	text, err := Encode(&c)
	if err != nil || string(text) != "kind: saw\nteeth: 7\npause: 3s\ninner:\n  depth: 4\nlast: 2\n" {
		t.Errorf("%v, %s", err, text)
	}
}

func TestFaultsOfAnOpenSectionNameItsKeys(t *testing.T) {
	for text, want := range map[string]string{
		"teth: 7":      "t.yaml:1: teth: unknown key; did you mean teeth?",
		"depth: 1":     "did you mean inner.depth?",
		"teeth: seven": `t.yaml:1: teeth: got "seven", want a whole number`,
	} {
		c := tool{Parts: &saw{Teeth: 3}}
		err := DecodeBytes("t.yaml", []byte(text), &c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if c.Parts.(*saw).Teeth != 3 {
			t.Errorf("%s: changed what it refused", text)
		}
	}
	for _, c := range []tool{{}, {Parts: (*saw)(nil)}} {
		if err := DecodeBytes("t.yaml", []byte("teeth: 1"), &c); err == nil ||
			!strings.Contains(err.Error(), "teeth: unknown key") {
			t.Errorf("without a section: %v", err)
		}
	}
}

func TestTextLooksAtOneValueOnly(t *testing.T) {
	doc := "a: &x {id: one, bad: [}\n"
	if _, err := TextBytes("f.yaml", []byte(doc), "a", "id"); err == nil || !strings.Contains(err.Error(), "f.yaml") {
		t.Errorf("a broken document: %v", err)
	}
	doc = "base: &b {id: one}\nenv: {<<: *b, window: many}\nrun: *b\nlist: [1]\nnone:\n"
	for path, want := range map[string]string{"env.id": "one", "run.id": "one", "env.window": "many", "env": "",
		"list": "", "none": "", "x.y": ""} {
		got, err := TextBytes("f.yaml", []byte(doc), strings.Split(path, ".")...)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}
