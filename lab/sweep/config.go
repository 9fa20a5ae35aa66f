package sweep

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/rng"
	"clustergym/lab/config"
	"clustergym/lab/run"
)

// Config is a search for settings: random draws from a space around a base configuration, of which successive halving
// continues the better ones.
type Config struct {
	Name string   `yaml:"name"` // of the sweep's folder
	Base string   `yaml:"base"` // preset or YAML file that trials begin with
	Set  []string `yaml:"set"`  // changes to the base for all trials, KEY.PATH=VALUE each
	// Space says for keys of a run's configuration what is drawn: a list of values, {min: A, max: B}, evenly, or
	// {min: A, max: B, log: true}, evenly in the logarithm. Draws for whole numbers are rounded.
	Space   map[string]any `yaml:"space"`
	Trials  int            `yaml:"trials"`
	Seeds   int            `yaml:"seeds"` // of each trial: the base's, and those that follow
	Seed    uint64         `yaml:"seed"`  // of the draws
	Halving Halving        `yaml:"halving"`
}

// Halving is successive halving (Jamieson and Talwalkar, 2016): all trials are trained to the first rung, the
// best of them to the second, and so on; the last is the base's train.steps. Schedules refer to the whole training on
// every rung.
type Halving struct {
	Rungs int `yaml:"rungs"` // 1 = every trial is trained to the end
	Keep  int `yaml:"keep"`  // one of this many continues; each rung is this many times as long as the one before
}

// Default returns a configuration of 16 trials of one seed on one rung.
func Default() Config {
	return Config{Name: "sweep", Base: "cartpole-ppo", Trials: 16, Seeds: 1, Seed: 1, Halving: Halving{Rungs: 1, Keep: 2}}
}

// fixed are the keys that a space cannot have, with reasons.
var fixed = map[string]string{
	"name": "trials are numbered", "seed": "see seeds", "kernels": "it changes last bits only",
	"train.steps": "it is the budget of all trials: see set",
}

// Validate reports every fault that can be seen without the base.
func (c *Config) Validate() error {
	var l fault.List
	l.Add(c.Name != "" && !strings.ContainsAny(c.Name, `/\ `), "name", c.Name,
		"a word that can be part of a folder's name")
	l.Add(c.Base != "", "base", c.Base, "a preset or a YAML file")
	l.Add(c.Trials >= 1 && c.Trials <= 10_000, "trials", c.Trials, "1 to 10000")
	l.Add(c.Seeds >= 1 && c.Seeds <= run.MaxSeeds, "seeds", c.Seeds, fmt.Sprintf("1 to %d", run.MaxSeeds))
	l.Add(c.Halving.Rungs >= 1 && c.Halving.Rungs <= 20, "halving.rungs", c.Halving.Rungs, "1 to 20")
	l.Add(c.Halving.Keep >= 2 && c.Halving.Keep <= 100, "halving.keep", c.Halving.Keep, "2 to 100")
	l.Add(len(c.Space) > 0, "space", "nothing", "a key of the base at least, with values")
	for _, key := range slices.Sorted(maps.Keys(c.Space)) {
		why, is := fixed[key]
		l.Add(!is, "space."+key, c.Space[key], "nothing: "+why)
		if is {
			continue
		}
		if d, isMap := c.Space[key].(map[string]any); isMap {
			_, err := rangeOf(d)
			l.Join("space."+key, err)
		} else {
			list, isList := c.Space[key].([]any)
			l.Add(isList && len(list) > 0, "space."+key, c.Space[key],
				"a list of values, {min: A, max: B} or {min: A, max: B, log: true}")
		}
	}
	return l.Err()
}

// dimension is one key's part of the space.
type dimension struct {
	values   []any
	min, max float64
	log      bool
	whole    bool // draws are rounded
}

// dimensionOf returns the draws for one key of a valid space.
func dimensionOf(x any) (dimension, error) {
	if m, is := x.(map[string]any); is {
		return rangeOf(m)
	}
	return dimension{values: x.([]any)}, nil
}

// rangeOf reads {min: A, max: B, log: true}. Faults have keys relative to it.
func rangeOf(x map[string]any) (dimension, error) {
	var d dimension
	var l fault.List
	known := []string{"min", "max", "log"}
	for _, k := range slices.Sorted(maps.Keys(x)) {
		if !slices.Contains(known, k) {
			near := nearest.Name(k, known)
			if near == "" {
				near = "one of min, max and log"
			}
			l.Add(false, k, x[k], "no such key; did you mean "+near+"?")
		}
	}
	bound := func(k string) float64 {
		switch v := x[k].(type) {
		case int:
			return float64(v)
		case float64:
			return v
		case nil:
			l.Join("", &fault.Fault{Key: k, Value: "nothing", Want: "a number"})
		default:
			l.Add(false, k, v, "a number")
		}
		return math.NaN()
	}
	d.min, d.max = bound("min"), bound("max")
	if v, is := x["log"]; is {
		ok := false
		d.log, ok = v.(bool)
		l.Add(ok, "log", v, "true or false")
	}
	l.Add(!(d.min >= d.max) && !math.IsInf(d.max-d.min, 0), "max", d.max, "a number above min")
	l.Add(!d.log || !(d.min <= 0), "min", d.min, "a number above 0 with log")
	return d, l.Err()
}

// draw returns one value as YAML has it.
func (d *dimension) draw(r *rand.Rand) any {
	if d.values != nil {
		return d.values[r.IntN(len(d.values))]
	}
	v := d.min + (d.max-d.min)*r.Float64()
	if d.log {
		v = math.Exp(math.Log(d.min) + (math.Log(d.max)-math.Log(d.min))*r.Float64())
		r.Float64() // as many draws either way
	}
	if d.whole {
		return int(math.Round(v))
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // what is shown is what is used
	return min(max(v, d.min), d.max)
}

// trial is one draw.
type trial struct {
	number int
	set    map[string]any
	cfg    config.Config // of its first seed
}

// trials draws all trials around base.
func (c *Config) trials(base config.Config) ([]trial, error) {
	for _, kv := range c.Set {
		if err := configs.Set(&base, kv); err != nil {
			return nil, fault.Mistakef("set: %s: %w", kv, err)
		}
	}
	if err := base.Validate(); err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("base %s: %w", c.Base, err)}
	}
	keys := slices.Sorted(maps.Keys(c.Space))
	space := map[string]dimension{}
	for _, key := range keys {
		d, err := dimensionOf(c.Space[key])
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		if d.values == nil {
			probe := base
			if err := configs.Set(&probe, key+"=1"); err != nil {
				return nil, fault.Mistakef("space: %w", err)
			}
			d.whole = configs.Set(&probe, key+"=0.5") != nil // whole numbers are what takes no fraction
		}
		space[key] = d
	}
	var all []trial
	for i := range c.Trials {
		r := rng.Stream(c.Seed, fmt.Sprintf("sweep/trial/%d", i))
		t := trial{number: i, set: map[string]any{}, cfg: base}
		t.cfg.Name = fmt.Sprintf("trial-%d", i)
		for _, key := range keys {
			d := space[key]
			v := d.draw(r)
			t.set[key] = v
			if err := setValue(&t.cfg, key, v); err != nil {
				return nil, fault.Mistakef("space: %w", err)
			}
		}
		if err := t.cfg.Validate(); err != nil {
			return nil, &fault.Mistake{Err: fmt.Errorf("space: trial %d: %w", i, err)}
		}
		all = append(all, t)
	}
	return all, nil
}

// setValue sets one key.
func setValue(cfg *config.Config, key string, v any) error {
	text := fmt.Sprint(v)
	switch v.(type) {
	case []any, map[string]any, string:
		b, err := configs.Encode(v)
		if err != nil {
			return err
		}
		text = strings.TrimSpace(string(b))
	}
	if err := configs.Set(cfg, key+"="+text); err != nil {
		return err
	}
	var err error
	*cfg, err = cfg.Fold() // of a space of env.args
	return err
}

// Budgets returns the steps of the rungs of a sweep over runs of steps steps, in ascending order.
func (c *Config) Budgets(steps int64) []int64 {
	b := make([]int64, c.Halving.Rungs)
	for k := len(b) - 1; k >= 0; k-- {
		b[k] = max(1, steps)
		steps = (steps + int64(c.Halving.Keep) - 1) / int64(c.Halving.Keep)
	}
	return b
}
