package topdrl

import (
	"context"
	"fmt"
	"path/filepath"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// testEpisode returns the episode of test window i. Its seed draws the jobs' models, so they are the same for all
// policies.
func testEpisode(i int) env.Episode {
	return env.Episode{Seed: env.EpisodeSeed(rng.Hash("topdrl/windows"), i), Window: i}
}

// policy plays windows: through the slots by act, or in the agent's place by sch. Each worker makes one of its own.
type policy struct {
	act  func(e *sched.Env) (agents.Policy, error)
	sch  func() (schedulers.Policy, error)
	wrap func(schedulers.Policy) (sim.Scheduler, error) // nil = sch plays as it is
}

// made is a policy with what one worker plays it.
type made struct {
	player *agents.Player
	policy schedulers.Policy
	sch    sim.Scheduler
}

func (c *policy) make(e *sched.Env) (*made, error) {
	if c.act != nil {
		p, err := c.act(e)
		if err != nil {
			return nil, err
		}
		return &made{player: agents.NewPlayer(e, p)}, nil
	}
	p, err := c.sch()
	if err != nil {
		return nil, err
	}
	m := &made{policy: p, sch: p}
	if c.wrap != nil {
		m.sch, err = c.wrap(p)
	}
	return m, err
}

// play plays c on the first n windows of part and returns its figures. Draws of a schedule follow draw.
func (c *policy) play(ctx context.Context, b *study.Bench, w *arena.Scenario, part traces.Part, n,
	draw int) ([]figures, error) {
	return arena.EachWindow(ctx, w, part, n, b.Workers, func(on sched.Arena) (func(i int) (figures, error), error) {
		e := on.(*sched.Env)
		h, err := c.make(e)
		return func(i int) (figures, error) {
			ep := testEpisode(i)
			var m measure
			m.begin(e)
			var err error
			if h.player != nil {
				e.Watch(&m)
				_, _, err = h.player.Play(ctx, ep, rng.Stream(ep.Seed, "eval/act"))
			} else {
				h.policy.Reseed(rng.At(ep.Seed, uint64(draw)))
				err = e.Simulate(ctx, ep, h.sch, &m)
			}
			if err != nil {
				return figures{}, err
			}
			return m.figures()
		}, err
	})
}

// opened returns the policy of a checkpoint as a policy of the study.
func opened(dir string) *policy {
	return &policy{act: func(e *sched.Env) (agents.Policy, error) { return arena.Trained(dir, e.Spec()) }}
}

// choice is the directories of the checkpoints that are best on validation windows.
type choice struct{ throughput, jct string }

// choose plays the checkpoints of a run on validation windows, and chooses one for tables of throughput and one for all
// others: by what the tables report.
func (s *settings) choose(ctx context.Context, b *study.Bench, w *arena.Scenario, run string) (c choice, err error) {
	root := filepath.Join(run, "checkpoints")
	steps, err := checkpoint.List(root)
	if err != nil {
		return c, err
	}
	most, least := 0.0, 0.0
	for _, step := range steps {
		dir := checkpoint.Dir(root, step)
		got, err := opened(dir).play(ctx, b, w, traces.Validation, s.Validation, 0)
		if err != nil {
			return c, err
		}
		throughput, jct := 0.0, 0.0
		for i := range got {
			throughput, jct = throughput+got[i].throughput, jct+got[i].jct
		}
		if c.throughput == "" || throughput > most {
			c.throughput, most = dir, throughput
		}
		if c.jct == "" || jct < least {
			c.jct, least = dir, jct
		}
	}
	if c.jct == "" {
		return c, fmt.Errorf("topdrl: %s has no checkpoints", run)
	}
	return c, nil
}

// playAgent plays a trained agent greedily on the test windows. The first agent of a stage without stops also plays
// with each of variants.
func (s *settings) playAgent(ctx context.Context, b *study.Bench, w *arena.Scenario, st *stage, a *agent, seed uint64,
	run string) ([]study.Row, error) {
	cfg, err := s.config(st, a, seed)
	if err != nil {
		return nil, err
	}
	own := inScenario(w, &cfg)
	c, err := s.choose(ctx, b, own, run)
	if err != nil {
		return nil, err
	}
	labels := func(name string, window int) map[string]string {
		return map[string]string{"stage": st.Name, "policy": name, "window": fmt.Sprint(window), "seed": fmt.Sprint(seed)}
	}
	on := func(w *arena.Scenario, dir string) ([]figures, error) {
		return opened(dir).play(ctx, b, w, traces.Test, s.Windows, 0)
	}
	got, err := on(own, c.jct)
	if err != nil {
		return nil, err
	}
	other := got
	if c.throughput != c.jct {
		if other, err = on(own, c.throughput); err != nil {
			return nil, err
		}
	}
	var rows []study.Row
	for i := range got {
		f := got[i].with(other[i])
		rows = append(rows, f.rows(labels(a.Name, i))...)
	}
	if !st.Placed || a.Name != st.Agents[0] {
		return rows, nil
	}
	for _, place := range variants {
		cfg := *cfg.Env.JobSelect()
		cfg.Placement = place
		placed := *own
		placed.Settings = &cfg
		got, err := on(&placed, c.jct)
		if err != nil {
			return nil, err
		}
		for i := range got {
			rows = append(rows, got[i].rows(labels(a.Name+" + "+place, i))...)
		}
	}
	return rows, nil
}

// playRules plays the rules of a stage on the test windows.
func (s *settings) playRules(ctx context.Context, b *study.Bench, w *arena.Scenario, st *stage) ([]study.Row, error) {
	cfg, err := s.config(st, nil, 1)
	if err != nil {
		return nil, err
	}
	rules, err := st.rules(&cfg)
	if err != nil {
		return nil, err
	}
	knowing, foreseeing := inScenario(w, &cfg), inScenario(w, &cfg)
	forecast := *cfg.Env.JobSelect()
	forecast.Estimates = sim.Estimates{Mode: sim.EstimateHistory}
	foreseeing.Settings = &forecast
	var rows []study.Row
	for _, r := range rules {
		in := knowing
		if r.forecast {
			in = foreseeing
		}
		draws := 1
		if r.random() {
			draws = s.Draws
		}
		for d := range draws {
			seed := ""
			if r.random() {
				seed = fmt.Sprint(d + 1)
			}
			own, err := s.playOther(ctx, b, in, st, r.name, seed, d, r.policy())
			if err != nil {
				return nil, err
			}
			rows = append(rows, own...)
		}
	}
	if !st.Preempt {
		return rows, nil
	}
	for _, name := range stoppersInSlots {
		own, err := s.playNamed(ctx, b, w, st, &cfg, name, name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, own...)
	}
	return rows, nil
}

// policy returns the schedule as a policy.
func (r *rule) policy() *policy {
	return &policy{sch: func() (schedulers.Policy, error) { return schedulers.New(r.config) }}
}

// playOther plays what is no agent on the test windows. seed labels the rows; "" = no label.
func (s *settings) playOther(ctx context.Context, b *study.Bench, w *arena.Scenario, st *stage, name, seed string,
	draw int, c *policy) ([]study.Row, error) {
	got, err := c.play(ctx, b, w, traces.Test, s.Windows, draw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var rows []study.Row
	for i := range got {
		labels := map[string]string{"stage": st.Name, "policy": name, "window": fmt.Sprint(i)}
		if seed != "" {
			labels["seed"] = seed
		}
		rows = append(rows, got[i].rows(labels)...)
	}
	return rows, nil
}

// playNamed plays a policy with the weights of cfg, by its name in gymctl eval --policies.
func (s *settings) playNamed(ctx context.Context, b *study.Bench, w *arena.Scenario, st *stage, cfg *config.Config, of,
	name string) ([]study.Row, error) {
	r, err := cfg.Rival(of)
	if err != nil {
		return nil, err
	}
	c := &policy{sch: func() (schedulers.Policy, error) { return schedulers.New(r.Sched) }}
	if r.Rule != nil {
		c = &policy{act: func(e *sched.Env) (agents.Policy, error) { return r.Rule.Policy(e) }}
	}
	return s.playOther(ctx, b, inScenario(w, cfg), st, name, "", 0, c)
}

// encode returns cfg as text, for the input of a cell: without what only trainings read, if it trains nothing.
func encode(cfg config.Config, trains bool) (string, error) {
	if !trains {
		cfg.Train.Steps = 1
	}
	if cfg.Trace.File != "" {
		cfg.Trace.File = filepath.Base(cfg.Trace.File)
	}
	text, err := configs.Encode(&cfg)
	return string(text), err
}
