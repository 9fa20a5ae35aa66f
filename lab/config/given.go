package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/lab/envs"
	"clustergym/simulator/schedulers"
)

// Given holds the keys that the user set: in a file of their own, by --set or by a flag, as "env.window". What a preset
// says is not given, nor are defaults: such sizes may follow from the workload.
type Given map[string]bool

// Set is Config.Set that also notes the keys.
func (g Given) Set(c *Config, assignment string) error {
	key, value, _ := strings.Cut(assignment, "=")
	key = strings.TrimSpace(key)
	if key == "env.id" && envs.Find(value) != nil {
		g[key] = true
		return c.SetEnv(value)
	}
	if d := c.Descriptor(); d != nil && !d.HasSettings() && strings.HasPrefix(key, "env.") && key != "env.id" &&
		key != "env.args" {
		return fault.New(key, value, "nothing: "+d.ID+" has no settings")
	}
	own := *c
	keys, err := configs.SetKeys(&own, assignment)
	if err != nil {
		return err
	}
	g.add(keys)
	g.args(&own)
	if own, err = own.Fold(); err == nil {
		*c = own
	}
	return err
}

// DecodeGiven is Decode that also returns the keys that the document gives.
func DecodeGiven(name string, data []byte) (Config, Given, error) {
	g := Given{}
	c, err := decode(name, data, g)
	if err != nil {
		return c, nil, err
	}
	base := For(c.Env.ID)
	keys, err := configs.Keys(name, data, &base)
	g.add(keys)
	return c, g, err
}

func (g Given) add(keys []string) {
	for _, k := range keys {
		g[k] = true
	}
}

// args notes the keys of env.args, which Fold moves into the settings, the workload and the cluster.
func (g Given) args(c *Config) {
	for _, set := range c.Env.Args {
		key, _, _ := strings.Cut(set, "=")
		if key = strings.TrimSpace(key); key != "cluster" && !strings.HasPrefix(key, "trace.") {
			key = "env." + key
		}
		g[key] = true
	}
}

// Adapt drops what c, a preset that the user has changed, says of a teacher and of rivals, if that no longer fits and
// the user has not said it: a teacher and rivals that rank by run times where the estimates hide them, and the sizes of
// an imitation that the user has switched off. A teacher that is dropped changes what is learned, so chosen has a
// sentence for it.
func (c *Config) Adapt(given Given) (chosen []string) {
	chosen = c.dropTeacher(given)
	if d := c.Descriptor(); d != nil && c.ownSettings(d) && !given["eval.policies"] &&
		!slices.Equal(c.Eval.Policies, Default().Eval.Policies) {
		c.Eval.Policies = c.Seeing(c.Eval.Policies)
	}
	return chosen
}

// ForPlay drops the teacher of c, a run that is only played, if the estimates hide what it ranks by. Nothing is learned
// from it any more.
func (c *Config) ForPlay() { c.dropTeacher(Given{}) }

// dropTeacher is the part of Adapt that concerns the teacher.
func (c *Config) dropTeacher(given Given) (chosen []string) {
	t := &c.Train
	if t.Imitate != "" && !given["train.imitate"] && c.Descriptor() != nil && c.ownSettings(c.Descriptor()) {
		if _, err := c.Teacher(); hides(err) {
			chosen = append(chosen, fmt.Sprintf(`train.imitate "", so the agent imitates nobody: %v; the preset's is %s`, err,
				t.Imitate))
			t.Imitate = ""
		}
	}
	if t.Imitate == "" {
		if !given["train.imitate_steps"] {
			t.ImitateSteps = 0
		}
		if !given["train.imitate_epochs"] {
			t.ImitateEpochs = 0
		}
		if !given["train.imitate_rounds"] {
			t.ImitateRounds = 0
		}
		if !given["train.imitate_lr"] {
			t.ImitateLR = 0
		}
	}
	return chosen
}

// hides reports whether err is that the estimates hide what a rule asks for.
func hides(err error) bool {
	_, hidden := errors.AsType[*schedulers.HiddenError](err)
	return hidden
}
