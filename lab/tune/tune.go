package tune

import (
	"cmp"
	"context"
	"slices"

	"clustergym/internal/cem"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
)

// Baselines returns the rules that weights are compared with. By the JCT of the last, the reference, the JCT of a
// window is divided, so that no window decides.
func (w *Weights) Baselines() []string { return familyOf(w.Policy).baselines }

// Reference returns the last of Baselines.
func (w *Weights) Reference() string { all := w.Baselines(); return all[len(all)-1] }

// Settings say how long weights are looked for.
type Settings struct {
	Generations int `yaml:"generations" json:"generations"`
	Population  int `yaml:"population" json:"population"` // weights drawn in a generation
	Windows     int `yaml:"windows" json:"windows"`       // in which they are compared, others in each generation
	// Draws is how many draws of the generator they are compared on where policies are measured on streams, others in
	// each generation. 0 = 16.
	Draws int    `yaml:"draws,omitempty" json:"draws,omitempty"`
	Every int    `yaml:"every" json:"every"` // generations from one rating of the mean to the next
	Seed  uint64 `yaml:"seed" json:"seed"`
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
	l.Add(s.Draws >= 0 && s.Draws <= 10_000, "draws", s.Draws, "1 to 10000, 0 = 16")
	l.Add(s.Every >= 1, "every", s.Every, "1 or more")
	return l.Err()
}

// defaultDraws are the draws of a generation.
const defaultDraws = 16

func (s *Settings) draws() int {
	if s.Draws > 0 {
		return s.Draws
	}
	return defaultDraws
}

// Check reports every fault, those of Validate and weights in Only that policy does not have.
func (s *Settings) Check(policy string) error {
	var l fault.List
	l.Join("", s.Validate())
	for _, name := range s.Only {
		names := familyOf(policy).names
		l.Add(slices.Contains(names, name), "only", name, nearest.OneOf(name, names))
	}
	return l.Err()
}

// Options are what Run needs beside the configuration.
type Options struct {
	Settings
	// Policy is the written order whose constants are looked for; "" = Fits.
	Policy  string
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
	// Windows is the number of validation windows, 0 on streams.
	Windows int `json:"validation_windows,omitempty"`
	// Start, Best and Rules are mean JCTs on the validation windows or streams, in seconds: of the weights at the
	// beginning, of the result, and of rules by name.
	Start float64            `json:"start"`
	Best  float64            `json:"best"`
	Rules map[string]float64 `json:"rules"`
	At    int                `json:"best_generation"` // of the result; 0 = the weights at the beginning
	// Jobs are those that were simulated, in millions.
	Jobs float64 `json:"million_jobs"`
	// Check compares the result with the weights at the beginning, and Rivals with rules (corrected for their number), on
	// validation streams that have chosen nothing. On windows there are none.
	Check  *statistic.Replicated  `json:"check,omitempty"`
	Rivals []statistic.Replicated `json:"rivals,omitempty"`
	Log    bool                   `json:"log,omitempty"` // the validation stream is recorded: units are its blocks
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
	opt      *Options
	ground   ground
	jobs     float64
}

// Run looks for weights of hold with which the workload, cluster and environment of cfg have the least mean JCT, or of
// index where running jobs can be stopped, or for constants of Options.Policy, which begin with their values in its
// text. Others begin with those of cfg.Eval, or else with the default ones. It returns
// the weights that are best on the validation windows, those at the beginning included. Test windows are not played.
//
// Where policies are measured on streams (eval.protocol), weights are compared on tuning draws of the generator, or
// on stretches of the recorded training part, which also choose the result. It is then compared with the weights at
// the beginning on validation draws, or the validation part: Report.Check says whether it is ahead.
func Run(ctx context.Context, cfg config.Config, opt Options) (Weights, *Report, error) {
	var none Weights
	if err := opt.Check(opt.policy(&cfg)); err != nil {
		return none, nil, err
	}
	if err := cfg.Validate(); err != nil {
		return none, nil, &fault.Mistake{Err: err}
	}
	start, err := begin(&cfg, opt.policy(&cfg))
	if err != nil {
		return none, nil, err
	}
	t := &tuner{policy: start.Policy, cfg: &cfg, scenario: opt.Scenario, opt: &opt}
	if t.scenario == nil {
		if t.scenario, err = arena.NewScenarioContext(ctx, &cfg); err != nil {
			return none, nil, err
		}
	}
	r := &Report{}
	names := start.Baselines()
	if cfg.Streamed() {
		ref, err := cfg.Rival(start.Reference())
		if err != nil {
			return none, nil, err
		}
		if t.ground, err = newStreams(ctx, t, ref.Sched); err != nil {
			return none, nil, err
		}
	} else {
		w, rules, err := newWindows(ctx, t, names)
		if err != nil {
			return none, nil, err
		}
		t.ground, r.Windows, r.Rules = w, len(w.valid), rules
	}
	p, err := t.search(ctx, start)
	if err != nil {
		return none, nil, err
	}
	r.Generations, r.At = p.Generation, p.At
	if cfg.Streamed() {
		if err := t.check(ctx, names, p, vector(&start), r); err != nil {
			return none, nil, err
		}
		if err := t.write(p, r.Check); err != nil {
			return none, nil, err
		}
	} else {
		ref := r.Rules[start.Reference()]
		r.Start, r.Best = p.Start*ref, p.Ratio*ref
	}
	r.Jobs = t.jobs / 1e6
	return of(t.policy, p.Best), r, nil
}

// policy returns the policy whose weights are looked for.
func (o *Options) policy(cfg *config.Config) string { return cmp.Or(o.Policy, Fits(cfg)) }

// Able returns an error that says in one sentence why there is nothing to tune of a policy for cfg, nil if there is.
func Able(cfg *config.Config, policy string) error {
	_, err := begin(cfg, policy)
	return err
}

// begin returns the weights at which the search begins.
func begin(cfg *config.Config, policy string) (Weights, error) {
	if d := cfg.Descriptor(); d == nil || !d.Simulated() {
		return Weights{},
			fault.Mistakef("%s has no simulator to play hold on; want a scheduling environment such as JobSelect-v1", cfg.Env.ID)
	}
	r, err := cfg.Rival(policy)
	if err != nil {
		return Weights{}, &fault.Mistake{Err: err}
	}
	w := from(policy, &r.Sched)
	switch n := policyname.Of(policy); {
	case !policyname.IsWritten(policy):
	case n.Kind != policyname.Queue || n.Ahead != policyname.None:
		return Weights{}, fault.Mistakef("%s acts in slots or looks ahead; want an order over the whole queue",
			policyname.Excerpt(policy))
	case len(w.Values()) == 0:
		return Weights{}, fault.Mistakef(
			"%s has no constants to be fitted; want some, as $a in $a: 1; key: estimate * gpus ** $a", policyname.Excerpt(policy))
	case len(w.Names()) > MostConstants:
		return Weights{}, fault.Mistakef("%s has %d constants; want at most %d", policyname.Excerpt(policy), len(w.Names()),
			MostConstants)
	}
	return w, nil
}

// search moves the distribution generation by generation.
func (t *tuner) search(ctx context.Context, start Weights) (*point, error) {
	p, err := t.resume()
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &point{Point: first(&start, &t.opt.Settings)}
		if p.Start, err = t.ground.rate(ctx, t.with(p.Mean)); err != nil {
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
			ratio, err := t.ground.rate(ctx, t.with(p.Mean))
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

// generation draws weights, and what they are compared on, and moves p to the best of them.
func (t *tuner) generation(ctx context.Context, p *point) error {
	r := cem.Stream(t.opt.Seed, "tune/generation", p.Generation)
	t.ground.draw(r, p.Generation)
	ref, err := t.cfg.Rival((&Weights{Policy: t.policy}).Reference())
	if err != nil {
		return err
	}
	method := t.opt.method()
	drawn := method.Draw(&p.Point, r)
	var plays []schedulers.Config
	for _, w := range drawn {
		bound(p.Mean, w)
		plays = append(plays, t.with(w))
	}
	cost, err := t.ground.costs(ctx, ref.Sched, plays)
	if err != nil {
		return err
	}
	method.Move(&p.Point, drawn, cost)
	return nil
}

// moves reports whether the weight of this number moves.
func (s *Settings) moves(policy string, k int) bool {
	return len(s.Only) == 0 || slices.Contains(s.Only, familyOf(policy).names[k])
}

// with returns the policy with weights.
func (t *tuner) with(w []float64) schedulers.Config {
	given := of(t.policy, w)
	r, err := t.cfg.Rival(cmp.Or(given.Written(), t.policy))
	if err != nil {
		panic(err) // begin has asked
	}
	r.Sched.Hold, r.Sched.Index = given.Hold, given.Index
	return r.Sched
}
