package arena

import (
	"context"

	"clustergym/env"
	"clustergym/env/policyname"
	"clustergym/experiments/config"
	"clustergym/experiments/report"
	"clustergym/experiments/statistic"
	"clustergym/traces"
)

// Standings are how a checkpoint and its rivals do on the validation windows of its run.
type Standings struct {
	Metric    string // of Validation.At
	Windows   int
	Policies  []Rival // the checkpoint first
	Paired    []statistic.Paired
	Lower     bool   // lower values are better
	Title     string // of the metric
	PerWindow [][]float64
}

// Standings plays the validation windows with the checkpoint in dir, on workers goroutines, and with the policies of cfg that
// repeat themselves. Those that look ahead would take minutes and are left out.
func (w *World) Standings(ctx context.Context, cfg *config.Config, dir string, workers int) (*Standings, error) {
	n, err := w.count(traces.Validation, cfg.Eval.Validation)
	if err != nil {
		return nil, err
	}
	opt := &EvalOptions{Checkpoints: []string{dir}}
	all, err := w.contestantsContext(ctx, cfg, opt)
	if err != nil {
		return nil, err
	}
	var cs []contestant
	for _, c := range all {
		if !c.timed && !c.knows && c.missing == "" && policyname.Of(c.name).Ahead != policyname.Rollout {
			cs = append(cs, c)
		}
	}
	v := &evaluation{world: w, cfg: &cfg.Eval, part: traces.Validation, windows: n, seeds: 1, workers: workers}
	played, err := v.play(ctx, cs, nil)
	if err != nil {
		return nil, err
	}
	m := w.About.Metric
	out := &Standings{Windows: n, Lower: !m.Higher, Title: m.Title}
	for i := range cs {
		val := w.validation(cfg, played[i][0])
		out.Metric = val.At(0).Metric
		out.Policies = append(out.Policies, Rival{cs[i].name, val})
		per := make([]float64, n)
		for k := range per {
			per[k] = played[i][0][k].score
		}
		out.PerWindow = append(out.PerWindow, per)
	}
	for i := 1; i < len(cs); i++ {
		if cs[i].kind != report.KindCheckpoint {
			out.Paired = append(out.Paired, statistic.Compare(cfg.Eval.Seed, cs[0].name, cs[i].name, m.Key,
				statistic.Sample{out.PerWindow[0]}, statistic.Sample{out.PerWindow[i]}, m.Higher))
		}
	}
	return out, nil
}

// Windows returns how many windows of a part a run of cfg is judged on.
func (w *World) Windows(cfg *config.Config, part traces.Part) (int, error) {
	n := cfg.Eval.Validation
	if part == traces.Test {
		n = cfg.Eval.Windows
	}
	return w.count(part, n)
}

// Episode returns window i of any part, as it is validated and evaluated.
func (w *World) Episode(cfg *config.Config, i int) env.Episode {
	return (&evaluation{world: w, cfg: &cfg.Eval}).episode(i)
}
