package policyname

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseTakesNamesApart(t *testing.T) {
	for text, want := range map[string]Name{
		"fifo":                      {Base: "fifo"},
		"sjf+skip":                  {Base: "sjf", Admission: "skip"},
		"sjf+easy":                  {Base: "sjf", Backfill: "easy"},
		"fifo+strict+none":          {Base: "fifo", Admission: "strict", Backfill: "none"},
		"rollout:f1+commit":         {Ahead: Rollout, Base: "f1", Admission: "commit"},
		"hindsight:sjf+skip":        {Ahead: Hindsight, Base: "sjf", Admission: "skip"},
		"sjf@slots":                 {Kind: Rule, Base: "sjf"},
		"rollout:las-2d@slots":      {Kind: Rule, Ahead: Rollout, Base: "las-2d"},
		"runs/mine":                 {Kind: Folder, Base: "runs/mine"},
		`runs\a+b@slots`:            {Kind: Folder, Base: `runs\a+b@slots`},
		"models/policy.onnx":        {Kind: Model, Base: "models/policy.onnx"},
		"ppo:mine@500":              {Base: "ppo:mine@500"},
		"ssf-lwf1-srsf-1-true":      {Base: "ssf-lwf1-srsf-1-true"},
		"rollout:runs/mine":         {Kind: Folder, Base: "rollout:runs/mine"},
		"rollouts":                  {Base: "rollouts"},
		"hold@slot":                 {Base: "hold@slot"},
		"rollout:hold@slots@slots":  {Kind: Rule, Ahead: Rollout, Base: "hold@slots"},
		"hindsight:fifo+strict+eas": {},
	} {
		n, err := Parse(text)
		if n != want || (err != nil) != (want == Name{}) {
			t.Errorf("%s is %+v (%v), want %+v", text, n, err, want)
		}
		if err == nil && n.String() != text {
			t.Errorf("%s is written as %s", text, n)
		}
	}
}

func TestParseRefusesWhatNoPolicyIsCalled(t *testing.T) {
	for text, want := range map[string]string{
		"": "names no policy", "rollout:": "names no policy", "@slots": "names no policy", "+skip": "names no policy",
		"sjf+": "an order, then +strict", "sjf+never": "an order, then +strict", "sjf+easy+skip": "an order, then +strict",
		"sjf+skip+skip":       "an order, then +strict",
		"rollout:rollout:sjf": "looks ahead twice", "rollout:hindsight:sjf": "looks ahead twice",
		"hindsight:rollout:sjf@slots": "looks ahead twice",
		"sjf+skip@slots":              "neither admission nor back-filling",
	} {
		if n, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %+v (%v), want %s", text, n, err, want)
		}
	}
}

// Every name with parts that exist is read back as it was written.
func TestNamesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Name{Base: rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`).Draw(t, "base"),
			Ahead: rapid.SampledFrom([]Ahead{None, Rollout, Hindsight}).Draw(t, "ahead")}
		if rapid.Bool().Draw(t, "rule") {
			want.Kind = Rule
		} else {
			want.Admission = rapid.SampledFrom(append(Admissions(), "")).Draw(t, "admission")
			want.Backfill = rapid.SampledFrom(append(Backfills(), "")).Draw(t, "back-filling")
		}
		if got, err := Parse(want.String()); err != nil || got != want {
			t.Fatalf("%s is %+v (%v), want %+v", want, got, err, want)
		}
		if plain := want.Plain(); plain.Looking(want.Ahead) != want || plain.Ahead != None {
			t.Fatalf("%s looks ahead with %s", want, plain)
		}
	})
}

// Whatever is accepted is written as it was read.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "sjf+skip", "rollout:sjf@slots", "hindsight:fifo+strict+easy", "a/b", "x.onnx",
		"sjf+none", "@slots@slots", "rollout:rollout:x", "+", ":", "a = key: max(1, 2) // x\nstart if: 'b;'+skip",
		"rollout:$a: 1; key: $a@slots"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := Parse(text)
		if err == nil && n.String() != text && !IsWritten(text) {
			t.Errorf("%q is written as %q", text, n)
		}
		if again, bad := Parse(n.String()); err == nil && (bad != nil || again != n) {
			t.Errorf("%q is written as %q, which is %+v (%v)", text, n, again, bad)
		}
		Split(text)
		Short(text)
		if err != nil && n != (Name{}) {
			t.Errorf("%q is refused (%v), and is %+v", text, err, n)
		}
		place().near(text)
	})
}
