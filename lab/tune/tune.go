package tune

import (
	"context"
	"fmt"
	"math"
	"slices"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/cem"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/traces"
)

// Baselines returns the rules that weights are compared with. By the JCT of the last, the reference, the JCT of a
// window is divided, so that no window decides.
func (w *Weights) Baselines() []string { return families[w.Policy].baselines }

// Reference returns the last of Baselines.
func (w *Weights) Reference() string { all := w.Baselines(); return all[len(all)-1] }

// Settings say how long weights are looked for.
type Settings struct {
	Generations int    `yaml:"generations" json:"generations"`
	Population  int    `yaml:"population" json:"population"` // weights drawn in a generation
	Windows     int    `yaml:"windows" json:"windows"`       // in which they are compared, drawn anew for each generation
	Every       int    `yaml:"every" json:"every"`           // generations between validations
	Seed        uint64 `yaml:"seed" json:"seed"`
	// Only are the weights that move; the others stay as they are at the beginning. None = all.
	Only []string `yaml:"only,omitempty" json:"only,omitempty"`
}

// DefaultSettings return the settings that published results use.
func DefaultSettings() Settings {
	return Settings{Generations: 30, Population: 24, Windows: 200, Every: 5, Seed: 1}
}

// Validate reports every fault, but for names of weights (Check).
func (s *Settings) Validate() error {
	var l fault.List
	l.Add(s.Generations >= 1 && s.Generations <= 100_000, "generations", s.Generations, "1 to 100000")
	l.Add(s.Population >= 4 && s.Population <= 10_000, "population", s.Population, "4 to 10000")
	l.Add(s.Windows >= 1 && s.Windows <= 100_000, "windows", s.Windows, "1 to 100000")
	l.Add(s.Every >= 1, "every", s.Every, "1 or more")
	return l.Err()
}

// Check reports every fault, those of Validate and weights in Only that policy does not have.
func (s *Settings) Check(policy string) error {
	var l fault.List
	l.Join("", s.Validate())
	for _, name := range s.Only {
		l.Add(slices.Contains(families[policy].names, name), "only", name, nearest.OneOf(name, families[policy].names))
	}
	return l.Err()
}

// Options are what Run needs beside the configuration.
type Options struct {
	Settings
	Workers int // goroutines; the result is the same for any number
	// Dir is the folder of the state, from which a search that was interrupted goes on; "" = none.
	Dir string
	// Scenario is the workload of the configuration if it has been loaded; nil = load it.
	Scenario *arena.Scenario
	// Tick is called after each generation; nil = nobody is told.
	Tick func(generation, all int)
	// Saved is called when Dir holds the state after a generation and nothing is written to it. An error ends the search.
	Saved func() error
}

// Report says how a search went.
type Report struct {
	Generations int `json:"generations"`
	// Windows is the number of validation windows.
	Windows int `json:"validation_windows"`
	// Start, Best and Rules are mean JCTs on the validation windows, in seconds: of the weights at the beginning, of the
	// result, and of rules by name.
	Start float64            `json:"start"`
	Best  float64            `json:"best"`
	Rules map[string]float64 `json:"rules"`
	At    int                `json:"best_generation"` // of the result; 0 = the weights at the beginning
	// Jobs are those that were simulated, in millions.
	Jobs float64 `json:"million_jobs"`
}

// method returns how the distribution of weights moves: to the best quarter.
func (s *Settings) method() cem.Search {
	return cem.Search{Population: s.Population, Elite: max(2, s.Population/4), MeanStep: 0.5, DeviationStep: 0.3,
		Least: 0.02}
}

// spread is the deviation of a weight in the first generation, in units of scale.
const spread = 0.4

// point is the state of a search after some generations.
type point struct {
	cem.Point
	Best  []float64 `json:"best"`
	Ratio float64   `json:"ratio"` // validation of Best: its JCT over that of the reference
	At    int       `json:"at"`
	Start float64   `json:"start"` // validation of the first mean
}

// tuner plays weights.
type tuner struct {
	policy   string // whose weights are looked for
	cfg      *config.Config
	scenario *arena.Scenario
	envs     map[traces.Part]*par.Local[sched.Arena]
	opt      *Options
	refs     []float64 // the reference on the validation windows
	valid    []env.Episode
	jobs     float64
}

// Run looks for weights of hold with which the workload, cluster and environment of cfg have the least mean JCT, or of
// index where running jobs can be stopped. It begins with those of cfg.Eval, or else with the default ones, and returns
// the weights that are best on the validation windows, those at the beginning included. Test windows are not played.
func Run(ctx context.Context, cfg config.Config, opt Options) (Weights, *Report, error) {
	var none Weights
	if err := opt.Check(Fits(&cfg)); err != nil {
		return none, nil, err
	}
	if err := cfg.Validate(); err != nil {
		return none, nil, &fault.Mistake{Err: err}
	}
	start, err := begin(&cfg)
	if err != nil {
		return none, nil, err
	}
	t := &tuner{policy: start.Policy, cfg: &cfg, scenario: opt.Scenario, opt: &opt,
		envs: map[traces.Part]*par.Local[sched.Arena]{}}
	if t.scenario == nil {
		if t.scenario, err = arena.NewScenarioContext(ctx, &cfg); err != nil {
			return none, nil, err
		}
	}
	n := t.scenario.Taken.Windows.Count(traces.Validation)
	if n == 0 {
		_, err := t.scenario.Taken.Windows.At(traces.Validation, 0, 0)
		return none, nil, err
	}
	for i := range n {
		t.valid = append(t.valid,
			env.Episode{Seed: env.EpisodeSeed(rng.At(opt.Seed, rng.Hash("tune/validation")), i), Window: i})
	}
	rules := map[string]float64{}
	for _, name := range start.Baselines() {
		r, err := cfg.Rival(name)
		if err != nil {
			return none, nil, err
		}
		played, err := t.play(ctx, traces.Validation, []schedulers.Config{r.Sched}, t.valid)
		if err != nil {
			return none, nil, err
		}
		t.refs, rules[name] = played[0], statistic.Mean(played[0])
	}
	p, err := t.search(ctx, start)
	if err != nil {
		return none, nil, err
	}
	ref := rules[start.Reference()]
	return of(t.policy, p.Best), &Report{
		Generations: p.Generation, Windows: n, Start: p.Start * ref, Best: p.Ratio * ref, Rules: rules, At: p.At,
		Jobs: t.jobs / 1e6,
	}, nil
}

// Able returns an error that says in one sentence why there is nothing to tune for cfg, nil if there is.
func Able(cfg *config.Config) error {
	_, err := begin(cfg)
	return err
}

// begin returns the weights at which the search begins.
func begin(cfg *config.Config) (Weights, error) {
	if d := cfg.Descriptor(); d == nil || !d.Simulated() {
		return Weights{},
			fault.Mistakef("%s has no simulator to play hold on; want a scheduling environment such as JobSelect-v1", cfg.Env.ID)
	}
	policy := Fits(cfg)
	r, err := cfg.Rival(policy)
	if err != nil {
		return Weights{}, &fault.Mistake{Err: err}
	}
	return from(policy, &r.Sched), nil
}

// search moves the distribution generation by generation.
func (t *tuner) search(ctx context.Context, start Weights) (*point, error) {
	p, err := t.resume()
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &point{Point: cem.Point{Mean: vector(&start)}}
		for i, s := range families[t.policy].scale {
			if !t.moves(i) {
				s = 0
			}
			p.Deviation = append(p.Deviation, spread*s)
		}
		if p.Start, err = t.validate(ctx, p.Mean); err != nil {
			return nil, err
		}
		p.Best, p.Ratio = slices.Clone(p.Mean), p.Start
	}
	for p.Generation < t.opt.Generations {
		if t.opt.Tick != nil {
			t.opt.Tick(p.Generation, t.opt.Generations)
		}
		if err := t.generation(ctx, p); err != nil {
			return nil, err
		}
		if p.Generation%t.opt.Every == 0 || p.Generation == t.opt.Generations {
			ratio, err := t.validate(ctx, p.Mean)
			if err != nil {
				return nil, err
			}
			if ratio < p.Ratio {
				p.Best, p.Ratio, p.At = slices.Clone(p.Mean), ratio, p.Generation
			}
		}
		if err := t.save(p); err != nil {
			return nil, err
		}
	}
	if t.opt.Tick != nil {
		t.opt.Tick(p.Generation, t.opt.Generations)
	}
	return p, nil
}

// generation draws weights and windows, and moves p to the best of them.
func (t *tuner) generation(ctx context.Context, p *point) error {
	r := cem.Stream(t.opt.Seed, "tune/generation", p.Generation)
	eps := make([]env.Episode, t.opt.Windows)
	for i := range eps {
		eps[i] = env.Episode{Seed: r.Uint64(), Window: -1}
	}
	ref, err := t.cfg.Rival((&Weights{Policy: t.policy}).Reference())
	if err != nil {
		return err
	}
	method := t.opt.method()
	drawn := method.Draw(&p.Point, r)
	plays := []schedulers.Config{ref.Sched}
	for _, w := range drawn {
		for k := range w {
			if math.Abs(p.Mean[k]) <= tuned.HeaviestHold {
				w[k] = max(-tuned.HeaviestHold, min(tuned.HeaviestHold, w[k]))
			}
		}
		plays = append(plays, t.with(w))
	}
	jct, err := t.play(ctx, traces.Training, plays, eps)
	if err != nil {
		return err
	}
	cost := make([]float64, len(drawn))
	for i := range cost {
		for k, x := range jct[i+1] {
			if jct[0][k] > 0 { // jobs without work finish at once, under any weights
				cost[i] += x / jct[0][k]
			}
		}
	}
	method.Move(&p.Point, drawn, cost)
	return nil
}

// moves reports whether the weight of this number moves.
func (t *tuner) moves(k int) bool {
	return len(t.opt.Only) == 0 || slices.Contains(t.opt.Only, families[t.policy].names[k])
}

// validate returns the mean JCT of weights on the validation windows over that of the reference.
func (t *tuner) validate(ctx context.Context, w []float64) (float64, error) {
	jct, err := t.play(ctx, traces.Validation, []schedulers.Config{t.with(w)}, t.valid)
	if err != nil {
		return 0, err
	}
	return statistic.Mean(jct[0]) / statistic.Mean(t.refs), nil
}

// with returns the policy with weights.
func (t *tuner) with(w []float64) schedulers.Config {
	r, err := t.cfg.Rival(t.policy)
	if err != nil {
		panic(err) // begin has asked
	}
	given := of(t.policy, w)
	r.Sched.Hold, r.Sched.Index = given.Hold, given.Index
	return r.Sched
}

// chunk is how many windows a task plays, so that no worker waits long for another.
const chunk = 25

// play returns the mean JCT of each policy on each episode, in seconds.
func (t *tuner) play(ctx context.Context, part traces.Part, policies []schedulers.Config,
	eps []env.Episode) ([][]float64, error) {
	out := make([][]float64, len(policies))
	for i := range out {
		out[i] = make([]float64, len(eps))
	}
	if t.envs[part] == nil {
		t.envs[part] = &par.Local[sched.Arena]{Make: func() (sched.Arena, error) { return t.scenario.NewEnv(part, 1) }}
	}
	parts := (len(eps) + chunk - 1) / chunk
	t.jobs += float64(len(policies)*len(eps)) * float64(t.scenario.Taken.Windows.Length())
	err := t.envs[part].For(ctx, t.opt.Workers, len(policies)*parts, func(e sched.Arena, i int) error {
		p, err := schedulers.New(policies[i/parts])
		if err != nil {
			return err
		}
		from := i % parts * chunk
		for k := from; k < min(from+chunk, len(eps)); k++ {
			sum := jct{env: e}
			p.Reseed(eps[k].Seed)
			if err := e.Simulate(ctx, eps[k], p, &sum); err != nil {
				return fmt.Errorf("%s on window %d: %w", p.Name(), eps[k].Window, err)
			}
			out[i/parts][k] = sum.mean()
		}
		return nil
	})
	return out, err
}
