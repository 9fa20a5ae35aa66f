package topdrl

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"clustergym/configs"
	"clustergym/experiments/study"
	"clustergym/experiments/study/cell"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/tune"
	"clustergym/simulator/policyname"
)

// cells returns the study's units of work: GPUPick-v1, whose agents also place the jobs of the stages; for each stage
// the search for weights of rules, the trainings and the plays of its test windows; and the gaps of placements.
func (s *settings) cells(study.Plan) ([]study.Cell, error) {
	all, err := s.pickCells()
	if err != nil {
		return nil, err
	}
	for i := range s.Stages {
		own, err := s.stageCells(&s.Stages[i])
		if err != nil {
			return nil, err
		}
		all = append(all, own...)
	}
	for _, name := range []string{"topdrl-2x4x4", "topdrl-4x8x4"} {
		input := map[string]any{"method": method, "states": s.Gap.States, "placements": gapPlacements}
		all = append(all, study.Cell{Key: "gap/" + name, Input: input,
			Run: func(context.Context, *study.Bench) ([]study.Row, error) { return measureGap(name, s.Gap.States) }})
	}
	return all, nil
}

// tuned is a search for the weights of a rule on a stage's training part.
type tuned struct {
	name string
	set  []string // where it begins
	only []string // the weights that move; none = all
}

// searches returns what is tuned on a stage: the rule that agents imitate, and a control with as many tries, an order
// alone: hold without holding anything back, or SRTF with a weight of GPUs and one of how unsure forecasts are.
func (st *stage) searches() []tuned {
	if st.Preempt {
		return []tuned{{name: "index"}, {"index-width", []string{"eval.index.left=1"}, []string{"width", "spread"}}}
	}
	return []tuned{{name: "hold"}, {"order-alone", []string{"eval.hold.base=-1000000"}, []string{"width", "spread"}}}
}

// stageCells returns the cells of a stage.
func (s *settings) stageCells(st *stage) ([]study.Cell, error) {
	cfg, err := s.config(st, nil, 1)
	if err != nil {
		return nil, err
	}
	_, digest, err := traceOf(st)
	if err != nil {
		return nil, err
	}
	text, err := encode(cfg, false)
	if err != nil {
		return nil, err
	}
	scenario := sync.OnceValues(func() (*arena.Scenario, error) { return arena.NewScenario(&cfg) })
	// A cell computes its rows on the stage's workload.
	on := func(key string, more map[string]any, after []string,
		compute func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error)) study.Cell {
		input := map[string]any{"method": method, "config": text, "digest": digest}
		for k, v := range more {
			input[k] = v
		}
		return study.Cell{Key: key, Input: input, After: after,
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				w, err := scenario()
				if err != nil {
					return nil, err
				}
				return compute(ctx, b, w)
			}}
	}
	var all []study.Cell
	for _, t := range st.searches() {
		all = append(all, s.tuneCells(st, t, on)...)
	}
	for _, name := range st.Agents {
		a := s.agent(name)
		seeds := s.Seeds
		if a.Seeds > 0 {
			seeds = min(seeds, a.Seeds)
		}
		for k := range seeds {
			own, err := s.agentCells(st, a, uint64(k+1), on)
			if err != nil {
				return nil, err
			}
			all = append(all, own...)
		}
	}
	teacher := "tune/" + st.Name + "/" + st.searches()[0].name
	rules := map[string]any{"draws": s.Draws,
		"rules": fmt.Sprint(selectors, placements, others, stoppers, stoppersInSlots, foreseen)}
	all = append(all,
		on("play/"+st.Name+"/rules", rules, nil,
			func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error) {
				return s.playRules(ctx, b, w, st)
			}),
		on("play/"+st.Name+"/hindsight", map[string]any{"hindsight": s.Hindsight}, []string{teacher},
			func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error) {
				found, err := cell.Weights(b.WorkOf(teacher), &cfg)
				if err != nil {
					return nil, err
				}
				own := cfg
				found.Give(&own.Eval)
				r, err := own.Rival(found.Policy)
				if err != nil {
					return nil, err
				}
				return s.playHindsight(ctx, b, w, st, &r.Sched)
			}))
	if st.Placed {
		for k := range s.Pick.Seeds {
			train := pickTraining(sharing, k+1)
			all = append(all, on(fmt.Sprintf("play/%s/placed/seed-%d", st.Name, k+1), nil, []string{train},
				func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error) {
					return s.playPlaced(ctx, b, w, st, uint64(k+1), b.WorkOf(train))
				}))
		}
	}
	return all, nil
}

// maker makes a cell of a stage.
type maker func(key string, more map[string]any, after []string,
	compute func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error)) study.Cell

// tuneCells returns the search for t's weights and what plays them.
func (s *settings) tuneCells(st *stage, t tuned, on maker) []study.Cell {
	key := "tune/" + st.Name + "/" + t.name
	with := func() (config.Config, error) {
		cfg, err := s.config(st, nil, 1)
		for _, set := range t.set {
			if err == nil {
				err = configs.Set(&cfg, set)
			}
		}
		return cfg, err
	}
	more := map[string]any{"tune": s.tuning(), "set": strings.Join(t.set, " "), "only": strings.Join(t.only, " ")}
	return []study.Cell{
		on(key, more, nil, func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error) {
			cfg, err := with()
			if err != nil {
				return nil, err
			}
			how := s.tuning()
			how.Only = t.only
			_, _, err = tune.Run(ctx, cfg, tune.Options{
				Settings: how, Workers: b.Workers, Dir: b.Work(), Scenario: inScenario(w, &cfg),
				Tick: func(done, all int) { b.Progress(int64(done), int64(all)) }, Saved: b.Saved,
			})
			return nil, err
		}),
		on("play/"+st.Name+"/tuned/"+t.name, more, []string{key},
			func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error) {
				cfg, err := with()
				if err != nil {
					return nil, err
				}
				found, err := cell.Weights(b.WorkOf(key), &cfg)
				if err != nil {
					return nil, err
				}
				found.Give(&cfg.Eval)
				rows, err := s.playNamed(ctx, b, w, st, &cfg, found.Policy, t.name)
				if err != nil || len(t.only) > 0 {
					return rows, err
				}
				own, err := s.playNamed(ctx, b, w, st, &cfg, policyname.Slots(found.Policy), policyname.Slots(t.name))
				return append(rows, own...), err
			}),
	}
}

// agentCells returns a training of an agent and what plays it.
func (s *settings) agentCells(st *stage, a *agent, seed uint64, on maker) ([]study.Cell, error) {
	cfg, err := s.config(st, a, seed)
	if err != nil {
		return nil, err
	}
	text, err := encode(cfg, true)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("train/%s/%s/seed-%d", st.Name, a.Name, seed)
	var after []string
	taught := "" // where the weights of its teacher are
	if a.Imitate != "" {
		taught = "tune/" + st.Name + "/" + policyname.Of(a.Imitate).Base
		after = []string{taught}
	}
	return []study.Cell{
		on(key, map[string]any{"config": text}, after,
			func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error) {
				own := cfg
				if taught != "" {
					found, err := cell.Weights(b.WorkOf(taught), &cfg)
					if err != nil {
						return nil, err
					}
					found.Give(&own.Eval)
				}
				return trainIn(ctx, b, own, inScenario(w, &own))
			}),
		on(fmt.Sprintf("play/%s/%s/seed-%d", st.Name, a.Name, seed),
			map[string]any{"config": text, "variants": variants, "first": st.Agents[0]}, []string{key},
			func(ctx context.Context, b *study.Bench, w *arena.Scenario) ([]study.Row, error) {
				return s.playAgent(ctx, b, w, st, a, seed, filepath.Join(b.WorkOf(key), "run"))
			}),
	}, nil
}

// trainIn trains cfg in the cell's folder and says how fast that was. w may be nil.
func trainIn(ctx context.Context, b *study.Bench, cfg config.Config, w *arena.Scenario) ([]study.Row, error) {
	r, err := cell.Train(ctx, b, cfg, w)
	if err != nil {
		return nil, err
	}
	row := study.RowOf("train", map[string]string{"agent": cfg.Agent, "seed": fmt.Sprint(cfg.Seed), "cell": cfg.Env.ID})
	rows := []study.Row{row("steps", float64(r.Step))}
	if r.PerSecond != nil {
		rows = append(rows, row("timing_steps_per_s", *r.PerSecond))
	}
	return rows, nil
}
