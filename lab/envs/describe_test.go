package envs

import (
	"testing"

	"clustergym/env"
	"clustergym/env/gpupick"
	"clustergym/traces"
)

// What a description changes of settings is a copy's, and functions that it leaves out are nil in the descriptor, as
// its other methods expect.
func TestADescriptionChangesCopies(t *testing.T) {
	d := describe(Descriptor{ID: "X"}, settings[gpupick.Config]{
		defaults: gpupick.DefaultConfig,
		open:     func(gpupick.Config, *Source, traces.Part) (env.Env, error) { return nil, nil },
		page:     func(c gpupick.Config, _ env.Spec) string { return c.Comm },
		training: func(c *gpupick.Config, gamma float64) { c.Gamma = gamma },
		judged:   func(c *gpupick.Config) { c.MaxSteps = 0 },
	})
	s := d.Settings()
	plain := gpupick.DefaultConfig()
	if got := *d.Training(s, 0.5).(*gpupick.Config); got.Gamma != 0.5 {
		t.Errorf("training has %+v", got)
	}
	if got := *d.Judged(s).(*gpupick.Config); got.MaxSteps != 0 {
		t.Errorf("judged is %+v", got)
	}
	if _, err := d.Open(s, nil, traces.Test); err != nil {
		t.Fatal(err)
	}
	if got := *s.(*gpupick.Config); got != plain {
		t.Errorf("the settings have become %+v", got)
	}
	if d.Page(s, env.Spec{}) != "tree" {
		t.Error("the page has other settings")
	}
	if d.Simulated() || d.Stops(s) || d.Placement(s) != "" || d.MostGPUs != nil || d.lacks != nil || d.memory != nil ||
		d.sha != nil || d.record != nil {
		t.Errorf("functions out of nothing: %+v", d)
	}
}
