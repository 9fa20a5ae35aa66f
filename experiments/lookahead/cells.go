package lookahead

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
	"clustergym/lab/report"
	"clustergym/lab/tune"
	"clustergym/lab/workload"
	"clustergym/simulator/policyname"
)

// given returns the scenarios that p's folder has, or that are generated, and the names of the others.
func (s *settings) given(p study.Plan) (scenarios []scenario, absent []string, err error) {
	return workload.Given(p.Data, s.Scenarios, func(w *scenario) (string, *string) { return w.Name, &w.File })
}

// keyOf makes a word of a cell's key of a policy's name.
var keyOf = strings.NewReplacer(":", "=", "@", "-at-", "search+", "search-").Replace

// cells returns the units of work: searches for weights, trainings, and the play of one policy on the windows of one
// workload.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	scenarios, _, err := s.given(p)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	for i := range scenarios {
		c := &scenarios[i]
		digest := ""
		if c.File != "" {
			if digest, err = workload.HashFile(context.Background(), nil, c.File); err != nil {
				return nil, err
			}
		}
		for k := range s.Seeds {
			own, err := (&lazyScenario{c: c, k: k, digest: digest}).cells()
			if err != nil {
				return nil, err
			}
			all = append(all, own...)
		}
	}
	return all, nil
}

// input returns the input of a cell with this configuration, which more completes.
func (w *lazyScenario) input(cfg *config.Config, more map[string]any) (map[string]any, error) {
	shown := *cfg
	if w.c.File != "" {
		shown.Trace.File = filepath.Base(w.c.File)
	}
	text, err := configs.Encode(&shown)
	more["method"], more["config"], more["digest"] = method, string(text), w.digest
	return more, err
}

// cells returns the units of work of a workload.
func (w *lazyScenario) cells() (all []study.Cell, err error) {
	add := func(more []study.Cell, err error) error {
		all = append(all, more...)
		return err
	}
	for i := range w.c.Tuned {
		if err := add(w.tuned(&w.c.Tuned[i])); err != nil {
			return nil, err
		}
	}
	for i := range w.c.Agents {
		if err := add(w.trained(&w.c.Agents[i])); err != nil {
			return nil, err
		}
	}
	// Recorded windows are the same for every seed, and so is what policies that are not trained do on them.
	if w.c.File != "" && w.k > 0 {
		return all, nil
	}
	for _, name := range w.c.Policies {
		cfg, err := w.c.config(&agent{}, w.k, w.c.File)
		if err != nil {
			return nil, err
		}
		cfg.Eval.Policies = []string{name}
		in, err := w.input(&cfg, map[string]any{})
		if err != nil {
			return nil, err
		}
		all = append(all, study.Cell{
			Key: w.key("play", keyOf(name)), Input: in,
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) { return w.play(ctx, b, cfg, name, nil) },
		})
	}
	return all, nil
}

// key returns the key of a cell of the workload.
func (w *lazyScenario) key(kind, name string) string {
	return fmt.Sprintf("%s/%s/%d/%s", kind, w.c.Name, w.k, name)
}

// trained returns the training of an agent and what plays it.
func (w *lazyScenario) trained(a *agent) ([]study.Cell, error) {
	cfg, err := w.c.config(a, w.k, w.c.File)
	if err != nil {
		return nil, err
	}
	more := map[string]any{}
	var after []string // the search for the weights of its teacher
	if a.Weights != "" {
		more["weights"] = a.Weights
		after = []string{w.key("tune", a.Weights)}
	}
	in, err := w.input(&cfg, more)
	if err != nil {
		return nil, err
	}
	key, play := w.key("train", a.Name), cfg
	play.Eval.Policies = nil
	return []study.Cell{{
		Key: key, Input: in, After: after,
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			own := cfg
			for _, search := range after {
				found, err := cell.Weights(b.WorkOf(search), &cfg)
				if err != nil {
					return nil, err
				}
				found.Give(&own.Eval)
			}
			_, err := cell.Train(ctx, b, own, nil)
			return nil, err
		},
	}, {
		Key: w.key("play", a.Name), Input: in, After: []string{key},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return w.play(ctx, b, play, a.Name, []string{filepath.Join(b.WorkOf(key), "run")})
		},
	}}, nil
}

// tuned returns the search for t's weights and what plays them.
func (w *lazyScenario) tuned(t *tuned) ([]study.Cell, error) {
	cfg, err := w.c.config(&agent{Set: t.Set}, w.k, w.c.File)
	if err != nil {
		return nil, err
	}
	cfg.Eval.Policies = nil
	settings := t.settings(w.k)
	in, err := w.input(&cfg, map[string]any{"tune": settings})
	if err != nil {
		return nil, err
	}
	key := w.key("tune", t.Name)
	all := []study.Cell{{Key: key, Input: in, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
		return w.tune(ctx, b, cfg, settings, t.Name)
	}}}
	play := func(name, policy string) {
		all = append(all, study.Cell{
			Key: w.key("play", keyOf(name)), Input: in, After: []string{key},
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				found, err := cell.Weights(b.WorkOf(key), &cfg)
				if err != nil {
					return nil, err
				}
				own := cfg
				found.Give(&own.Eval)
				own.Eval.Policies = []string{policy}
				return w.play(ctx, b, own, name, nil)
			},
		})
	}
	order := tune.Fits(&cfg)
	play(t.Name, order)
	if t.Searches {
		play(searching+t.Name, policyname.Rollout.String()+order)
	}
	if t.Slots {
		play(policyname.Slots(t.Name), policyname.Slots(order))
	}
	return all, nil
}

// tune looks for weights in the cell's folder, where a search that was interrupted continues.
func (w *lazyScenario) tune(ctx context.Context, b *study.Bench, cfg config.Config, settings tune.Settings,
	name string) (rows []study.Row, err error) {
	made, err := w.load(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	h, _, err := tune.Run(ctx, cfg, tune.Options{
		Settings: settings, Workers: b.Workers, Dir: b.Work(), Scenario: made,
		Tick:  func(done, all int) { b.Progress(int64(done), int64(all)) },
		Saved: b.Saved,
	})
	if err != nil {
		return nil, err
	}
	for i, weight := range h.Values() {
		rows = append(rows, study.NewRow("weights", "weight", *weight,
			"scenario", w.c.Name, "policy", name, "workload", fmt.Sprint(w.k), "weight", h.Names()[i]))
	}
	return rows, nil
}

// lazyScenario is a workload, which is made when the first cell needs it and kept for the others.
type lazyScenario struct {
	c      *scenario
	k      int
	digest string // of the recorded workload's file, "" = generated
	mu     sync.Mutex
	w      *arena.Scenario
}

func (w *lazyScenario) load(ctx context.Context, cfg *config.Config) (*arena.Scenario, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.w == nil {
		made, err := arena.NewScenarioContext(ctx, cfg)
		if err != nil {
			return nil, err
		}
		w.w = made
	}
	// Agents of one scenario may see the same workload in different ways.
	own := *w.w
	own.Settings = cfg.Env.Settings
	return &own, nil
}

// play plays the one policy that cfg names, or the one checkpoint, on the test windows.
func (w *lazyScenario) play(ctx context.Context, b *study.Bench, cfg config.Config, name string,
	checkpoints []string) ([]study.Row, error) {
	made, err := w.load(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	r, err := arena.Evaluate(ctx, cfg, arena.EvalOptions{
		Checkpoints: checkpoints, Workers: b.Workers, Scenario: made,
		Game: func(done, all int) { b.Progress(int64(done), int64(all)) },
	})
	if err != nil {
		return nil, err
	}
	return w.rows(name, cfg.Estimates().String(), r)
}

// rows returns the figures of the one policy of r, window by window.
func (w *lazyScenario) rows(name, estimates string, r *report.Report) (rows []study.Row, err error) {
	if len(r.Policies) != 1 || r.Policies[0].Metrics == nil {
		return nil, fmt.Errorf("lookahead: %d policies were played for %s", len(r.Policies), name)
	}
	m := r.Policies[0].Metrics
	for i := range m.JCT.PerWindow {
		// Windows of different workloads are different units; those of a recorded one are the same for every seed.
		labels := map[string]string{"scenario": w.c.Name, "policy": name, "window": fmt.Sprintf("%d.%d", w.k, i)}
		if w.c.File != "" {
			labels["window"], labels["seed"] = fmt.Sprint(i), fmt.Sprint(w.k)
		}
		row := study.RowOf("windows", labels)
		rows = append(rows, row("jct_h", m.JCT.PerWindow[i]/3600), row("slowdown", m.BoundedSlowdown.PerWindow[i]))
	}
	return rows, nil
}
