package config

import (
	"clustergym/env/sched"
	"clustergym/lab/envs"
	"clustergym/simulator/sim"
)

// Estimates returns env.estimates, unset for an environment without run times to know.
func (c *Config) Estimates() sim.Estimates {
	d := c.Descriptor()
	if d == nil || !d.Simulated() || !c.ownSettings(d) {
		return sim.Estimates{}
	}
	return d.Cut(c.Env.Settings).Estimates
}

// OnRung returns c, which must be of an environment on the simulator, for comparisons with other estimates:
// without the settings that make training easier, and with those of its policies that can play with them.
func (c *Config) OnRung(e sim.Estimates) (Config, error) {
	on := *c
	if d := c.Descriptor(); d.Judged != nil {
		on.Env.Settings = d.Judged(c.Env.Settings)
	}
	on.Edit()
	if err := on.Set("env.estimates=" + e.String()); err != nil {
		return on, err
	}
	on.ForPlay()
	on.Eval.Policies = on.Seeing(c.AllPolicies())
	return on, nil
}

// keyForecast is the setting that says whether observations show forecasts; "auto" follows from the estimates.
const keyForecast = "forecast"

// ShowAs makes the observations of c show what those of trained show, also on another rung: an agent's network has the
// shape of the observations it was trained on. A value that is not auto stays as it is.
func (c *Config) ShowAs(trained *Config) error {
	if c.shows() != "auto" {
		return nil
	}
	was := trained.shows()
	if was == "auto" {
		was = "off"
		if trained.Estimates().Causal() {
			was = "on"
		}
	}
	if was == "" {
		return nil
	}
	c.Edit()
	return c.Set("env." + keyForecast + "=" + was)
}

// shows returns the setting keyForecast, "" for an environment without it.
func (c *Config) shows() string {
	d := c.Descriptor()
	if d == nil || !d.HasSettings() || !c.ownSettings(d) {
		return ""
	}
	v, _ := envs.Setting(c.Env.Settings, keyForecast)
	shown, _ := v.(sched.Forecast)
	return string(shown)
}
