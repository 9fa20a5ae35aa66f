package policyname

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// place has the orders fifo, sjf and las, of which las never waits for the first in line.
func place() *Resolver {
	return &Resolver{
		Orders: []string{"fifo", "sjf", "las"}, Rules: []string{"random", "sjf"}, Planners: []string{"heft", "cpop"},
		Ahead:  []Ahead{Rollout},
		Folder: func(path string) bool { return path == "mine" },
		Check: func(n Name) error {
			if n.Base == "las" && n.Admission == "commit" {
				return errors.New("las has no commit")
			}
			return nil
		},
	}
}

func TestAPlaceSaysWhatCanPlayThere(t *testing.T) {
	for text, want := range map[string]Name{
		"mine": {Kind: Folder, Base: "mine"}, "heft": {Kind: Planner, Base: "heft"}, "sjf": {Base: "sjf"},
		"sjf@slots":        {Kind: Rule, Base: "sjf"},
		"rollout:las+skip": {Ahead: Rollout, Base: "las", Admission: "skip"},
	} {
		if n, err := place().Resolve(text); err != nil || n != want {
			t.Errorf("%s is %+v (%v), want %+v", text, n, err, want)
		}
	}
	for text, want := range map[string]string{
		"sfj":                `policy "sfj" is unknown; did you mean sjf?`,
		"rollout:sjff+skpi":  "did you mean rollout:sjf+skip?",
		"sjf+nver":           "; use an order, then +strict",
		"sjf+comit":          "did you mean sjf+commit?",
		"las+comit":          "did you mean las?", // commit does not go with it
		"sjff@slots":         `rule "sjff" is unknown; did you mean sjf@slots?`,
		"sjf@slot":           "did you mean sjf@slots?",
		"las@slots":          `rule "las" is unknown; use one of random, sjf`,
		"rollout:sjff@slots": "did you mean rollout:sjf@slots?",
		"heff":               "did you mean heft?",
		"heft+skip":          "did you mean heft?",
		"zzzzzz":             "use one of fifo, sjf, las, heft, cpop",
		"hindsight:sjf":      "looks ahead, which no policy can here; leave hindsight: out",
		"las+commit":         "las has no commit",
		"x.onnx":             "is the file of a model, which is not named among policies",
		"runs/there":         `policy "runs/there" is unknown`,
		"":                   "names no policy",
	} {
		if n, err := place().Resolve(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v (%v), want %s", text, n, err, want)
		}
	}
	// neither has rules
	for _, r := range []*Resolver{{Planners: []string{"random"}}, {Orders: []string{"sjf", "random"}}} {
		if n, err := r.Resolve("sjf@slots"); err == nil ||
			!strings.Contains(err.Error(), `policy "sjf@slots" is unknown; use one of `) {
			t.Errorf("without rules sjf@slots is %+v (%v)", n, err)
		}
	}
}

// Everything that is offered can play, and nothing is offered twice.
func TestWhatIsOfferedCanPlay(t *testing.T) {
	for word, want := range map[string]string{
		"":           "fifo sjf+skip las+strict sjf@slots heft rollout:",
		"sjf":        "sjf sjf+commit sjf+easy sjf+conservative sjf@slots",
		"las+":       "las+skip las+strict+easy",
		"roll":       "rollout:",
		"rollout:":   "rollout:sjf rollout:random@slots rollout:las+skip",
		"rollout:s":  "rollout:sjf@slots",
		"hindsight:": "",
	} {
		got := place().Complete(word)
		for _, w := range strings.Fields(want) {
			if !slices.Contains(got, w) {
				t.Errorf("%q: %s is not offered, but %v", word, w, got)
			}
		}
		if (want == "") != (len(got) == 0) {
			t.Errorf("%q: %v is offered", word, got)
		}
		for i, w := range got {
			if _, err := place().Resolve(w); err != nil && w != Rollout.String() || slices.Contains(got[:i], w) ||
				!strings.HasPrefix(w, word) {
				t.Errorf("%q: %s is offered: %v", word, w, err)
			}
		}
	}
}

func TestForms(t *testing.T) {
	all := place()
	all.Ahead = append(all.Ahead, Hindsight)
	for want, r := range map[string]*Resolver{
		"random":                              {Planners: []string{"random"}},
		"a planner or RULE@slots":             {Planners: []string{"heft", "cpop"}, Rules: []string{"random"}},
		"ORDER or ORDER+ADMISSION (sjf+skip)": {Orders: []string{"fifo"}},
		"a run folder or checkpoint, a planner, ORDER, ORDER+ADMISSION (sjf+skip), RULE@slots, rollout:POLICY or hindsight:ORDER+ADMISSION": all,
		"": {},
	} {
		if got := r.Forms(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
