package config

import (
	"slices"
	"strings"
	"testing"

	"clustergym/configs"
)

// A preset that imitates and lists rivals stays usable where the user's own changes hide run times or switch the
// imitation off: what the user has not said follows, and what he has said is refused.
func TestPresetsAdaptToWhatIsGiven(t *testing.T) {
	var said []string
	set := func(assignments ...string) (Config, error) {
		c, err := Preset("quickstart-v1")
		if err != nil {
			t.Fatal(err)
		}
		g := Given{}
		for _, a := range assignments {
			if err := g.Set(&c, a); err != nil {
				t.Fatal(err)
			}
		}
		said = c.Adapt(g)
		return c, c.Validate()
	}
	if c, err := set(); err != nil || c.Train.Imitate != "hold@slots" ||
		!slices.Contains(c.Eval.Policies, "rollout:sjf+skip") {
		t.Errorf("without changes: imitates %q, compares with %v, %v", c.Train.Imitate, c.Eval.Policies, err)
	}
	c, err := set("env.estimates=none")
	if err != nil || c.Train.Imitate != "" || slices.Contains(c.Eval.Policies, "sjf+skip") ||
		!slices.Contains(c.Eval.Policies, "fifo+skip") {
		t.Errorf("without estimates: imitates %q, compares with %v, %v", c.Train.Imitate, c.Eval.Policies, err)
	}
	if want := `train.imitate "", so the agent imitates nobody: hold ranks by run time, which estimates: none hides; the preset's is hold@slots`; !slices.Equal(said, []string{want}) {
		t.Errorf("without estimates it says %q, want %q", said, want)
	}
	if c, err := set("train.imitate="); len(said) > 0 || err != nil || c.Train.ImitateSteps != 0 ||
		c.Train.ImitateEpochs != 0 {
		t.Errorf("without imitation: %d steps, %d epochs, %v", c.Train.ImitateSteps, c.Train.ImitateEpochs, err)
	}
	for _, want := range []string{"train.imitate=sjf@slots", "eval.policies=[sjf+skip]"} {
		key, _, _ := strings.Cut(want, "=")
		if _, err := set("env.estimates=none", want); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s without estimates: %v, want an error that names %s", want, err, key)
		}
	}
	if _, err := set("train.imitate=", "train.imitate_steps=5"); err == nil ||
		!strings.Contains(err.Error(), "train.imitate_steps: got 5") {
		t.Errorf("steps of no imitation: %v", err)
	}
}

// Nothing of an imitation is left in a preset whose teacher is hidden or switched off.
func TestEveryPresetDoesWithoutItsTeacher(t *testing.T) {
	for _, name := range configs.Runs() {
		c, err := Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if c.Train.Imitate == "" {
			continue
		}
		g := Given{}
		if err := g.Set(&c, "train.imitate="); err != nil {
			t.Fatal(err)
		}
		c.Adapt(g)
		if err := c.Validate(); err != nil || c.Train.ImitateLR != 0 || c.Train.ImitateRounds != 0 {
			t.Errorf("%s without a teacher: rate %g, %d rounds, %v", name, c.Train.ImitateLR, c.Train.ImitateRounds, err)
		}
	}
}
