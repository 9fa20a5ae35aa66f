package lookahead

import (
	"cmp"
	"fmt"
	"slices"

	"clustergym/configs"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/lab/tune"
	"clustergym/simulator/policyname"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Scenarios []scenario `yaml:"scenarios"`
	Seeds     int        `yaml:"seeds"` // workloads of each scenario, and trainings of each agent
}

// scenario is an environment with its policies, played on the test windows of several workloads.
type scenario struct {
	Name   string   `yaml:"name"`
	Preset string   `yaml:"preset"` // the embedded run that it begins with
	Set    []string `yaml:"set"`    // KEY=VALUE changes of it
	File   string   `yaml:"file"`   // a recorded workload in the folder of --data; "" = generated
	// trace.seed of the first workload; the others follow. Of a recorded workload, the seed of the agents
	Seed    uint64 `yaml:"seed"`
	Windows int    `yaml:"windows"`
	// Policies are played as in gymctl eval --policies; Agents are trained on each workload's training part.
	Policies []string `yaml:"policies"`
	Agents   []agent  `yaml:"agents"`
	// Tuned are orders of the policy hold, or index where jobs can be stopped, whose weights are found on each workload's
	// training part.
	Tuned []tuned `yaml:"tuned"`
	// Versus are the policies that the others are compared with, in columns.
	Versus []string `yaml:"versus"`
}

// agent is a training.
type agent struct {
	Name string   `yaml:"name"`
	Set  []string `yaml:"set"` // KEY=VALUE changes of the scenario's configuration
	// Weights names an entry of Tuned, whose weights the rule that it imitates has, hold@slots or index@slots; "" = the
	// default ones.
	Weights string `yaml:"weights"`
}

// tuned is a search for weights of hold or index.
type tuned struct {
	Name string `yaml:"name"`
	// KEY=VALUE changes of the scenario's configuration, among them the weights at the beginning
	Set  []string      `yaml:"set"`
	Tune tune.Settings `yaml:"tune"` // keys that are 0 have the default
	// Searches says that the tuned order also plays with a look ahead, as search+NAME.
	Searches bool `yaml:"searches"`
	// Slots says that it also plays through the slots, as NAME@slots.
	Slots bool `yaml:"slots"`
}

// searching begins the names of tuned orders that look ahead.
const searching = "search+"

// settings returns how weights are looked for, for workload number k.
func (t *tuned) settings(k int) tune.Settings {
	s, d := t.Tune, tune.DefaultSettings()
	s.Generations, s.Population, s.Windows, s.Every = cmp.Or(s.Generations,
		d.Generations), cmp.Or(s.Population, d.Population), cmp.Or(s.Windows, d.Windows), cmp.Or(s.Every, d.Every)
	s.Seed = cmp.Or(s.Seed, d.Seed) + uint64(k)
	return s
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	l.Add(len(s.Scenarios) > 0, "scenarios", s.Scenarios, "one or more")
	l.Add(s.Seeds >= 1 && s.Seeds <= 100, "seeds", s.Seeds, "1 to 100")
	seen := map[string]bool{}
	for i := range s.Scenarios {
		c := &s.Scenarios[i]
		key := fmt.Sprintf("scenarios[%d].", i)
		l.Add(study.Word(c.Name) && !seen[c.Name], key+"name", c.Name, "letters, digits and hyphens, each name once")
		seen[c.Name] = true
		l.Add(slices.Contains(configs.Runs(), c.Preset), key+"preset", c.Preset, "an embedded run")
		l.Add(c.Windows >= 2, key+"windows", c.Windows, "2 or more")
		l.Add(len(c.Policies) > 0, key+"policies", c.Policies, "one policy or more")
		all := c.players()
		for _, v := range c.Versus {
			l.Add(slices.Contains(all, v), key+"versus", v, "names of policies or agents of the scenario")
		}
		if l.Err() != nil {
			continue
		}
		for _, a := range append([]agent{{}}, c.Agents...) {
			l.Add(a.Name == "" || study.Word(a.Name), key+"agents", a.Name, "letters, digits and hyphens")
			l.Add(a.Weights == "" || slices.ContainsFunc(c.Tuned, func(t tuned) bool { return t.Name == a.Weights }),
				key+"agents", a.Weights,
				"weights of an entry of tuned")
			if cfg, err := c.config(&a, 0, ""); err != nil {
				return err
			} else {
				l.Join(key+"set", cfg.Validate())
			}
		}
		for _, t := range c.Tuned {
			l.Add(study.Word(t.Name), key+"tuned", t.Name, "letters, digits and hyphens")
			cfg, err := c.config(&agent{Set: t.Set}, 0, "")
			if err != nil {
				return err
			}
			l.Join(key+"tuned", cfg.Validate())
			s, order := t.settings(0), tune.Fits(&cfg)
			l.Join(key+"tuned", s.Check(order))
			l.Add(!t.Searches || order == "hold", key+"tuned.searches", t.Searches,
				"false, as rollouts do not play on with "+order)
		}
	}
	return l.Err()
}

// players returns the names of all policies of the tables.
func (c *scenario) players() []string {
	all := slices.Clone(c.Policies)
	for _, t := range c.Tuned {
		all = append(all, t.Name)
		if t.Searches {
			all = append(all, searching+t.Name)
		}
		if t.Slots {
			all = append(all, policyname.Slots(t.Name))
		}
	}
	for _, a := range c.Agents {
		all = append(all, a.Name)
	}
	return all
}

// config returns the configuration of workload number k for an agent, whose name is "" for what all policies play in.
// file is the recorded workload, "" = generated.
func (c *scenario) config(a *agent, k int, file string) (config.Config, error) {
	cfg, err := config.Preset(c.Preset)
	if err != nil {
		return cfg, err
	}
	for _, set := range slices.Concat(c.Set, a.Set) {
		if err := configs.Set(&cfg, set); err != nil {
			return cfg, fmt.Errorf("scenario %s, set %s: %w", c.Name, set, err)
		}
	}
	cfg.Name, cfg.Eval.Windows, cfg.Eval.Whole = c.Name, c.Windows, false
	if file != "" {
		cfg.Trace.File = file
		cfg.Seed = c.Seed + uint64(k)
	} else {
		cfg.Trace.Seed = c.Seed + uint64(k)
		cfg.Seed = cfg.Trace.Seed
	}
	return cfg, nil
}

// settingsOf returns the settings of p's form, quick or full.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("lookahead", files, p, settings{})
	s.Seeds = p.SeedsOr(s.Seeds)
	return s, err
}
