package config

import (
	"slices"
	"testing"

	"clustergym/simulator/sim"
)

func TestOnRungChangesTheEstimatesAlone(t *testing.T) {
	c := For("JobSelect-v1")
	for _, set := range []string{"env.relative=sjf", "env.contested=true", "env.horizon=9h", "env.estimates=noisy:2",
		"eval.policies=[fifo,sjf+skip,sjf@slots,fifo+strict+easy]"} {
		if err := c.Set(set); err != nil {
			t.Fatal(err)
		}
	}
	for est, want := range map[string][]string{
		"none": {"fifo"}, "history": {"fifo", "sjf+skip", "sjf@slots", "fifo+strict+easy"},
		"gbdt:m.bin": {"fifo", "sjf+skip", "sjf@slots", "fifo+strict+easy"},
	} {
		on, err := c.OnRung(sim.MustEstimates(est))
		if err != nil {
			t.Fatal(err)
		}
		e := on.Env.JobSelect()
		if err := on.Validate(); err != nil || on.Estimates().String() != est || !slices.Equal(on.Policies(), want) ||
			e.Contested || e.Relative != "" || e.Horizon != 0 {
			t.Errorf("%s: %v, estimates %s, policies %v, settings %+v", est, err, on.Estimates(), on.Policies(), *e)
		}
	}
	if e := c.Env.JobSelect(); e.Estimates.String() != "noisy:2" || !e.Contested {
		t.Errorf("the configuration itself has changed: %+v", *e)
	}
	if got := (&Config{}).Estimates(); got.String() != "" {
		t.Errorf("an empty configuration has estimates %q", got)
	}
	cart := For("CartPole-v1")
	if got := cart.Estimates(); got.String() != "" {
		t.Errorf("CartPole-v1 has estimates %q", got)
	}
}

// Observations show on every rung what the agent saw in training, unless the user says otherwise.
func TestObservationsStayAsInTraining(t *testing.T) {
	c := For("JobSelect-v1")
	if c.shows() == "" {
		t.Skip("no environment shows forecasts")
	}
	for _, x := range []struct{ trained, shows, here, want string }{
		{"history", "auto", "auto", "on"}, {"gbdt", "auto", "auto", "on"}, {"exact", "auto", "auto", "off"},
		{"none", "auto", "auto", "off"},
		{"exact", "on", "auto", "on"}, {"history", "off", "auto", "off"}, {"history", "auto", "off", "off"},
		{"exact", "auto", "on", "on"},
	} {
		trained, here := For("JobSelect-v1"), For("JobSelect-v1")
		for _, err := range []error{
			trained.Set("env.estimates=" + x.trained), trained.Set("env.forecast=" + x.shows),
			here.Set("env.forecast=" + x.here), here.ShowAs(&trained),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := here.shows(); got != x.want {
			t.Errorf("trained with estimates %s and forecast %s, here %s: %s, want %s", x.trained, x.shows, x.here, got, x.want)
		}
		if trained.shows() != x.shows {
			t.Errorf("the run's own configuration has changed to %s", trained.shows())
		}
	}
}
