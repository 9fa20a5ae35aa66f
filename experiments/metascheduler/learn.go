package metascheduler

import (
	"context"
	"fmt"
	"strconv"

	"clustergym/agents/mbmpo"
	"clustergym/env/workerplace"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// jctRows returns a method's outcomes in a world as rows, window by window.
func (s *settings) jctRows(method, world, stage, seed string, out []mbmpo.Outcome) []study.Row {
	var rows []study.Row
	hours := workerplace.DefaultConfig().Interval / 3600
	for i, o := range out {
		labels := map[string]string{"method": method, "world": world, "stage": stage, "window": strconv.Itoa(i)}
		if seed != "" {
			labels["seed"] = seed
		}
		for _, m := range []struct {
			name  string
			value float64
		}{{"jct_h", o.JCT}, {"tail_h", o.Tail}, {"makespan_h", o.Makespan}} {
			rows = append(rows, study.Row{Table: "outcome", Labels: labels, Metric: m.name, Value: m.value * hours})
		}
	}
	return rows
}

// gridRows returns a learner's final completion times in the regime with poor models once more, by what they are compared for:
// whether it meta-learns, and how it explores.
func gridRows(g *regime, method string, cfg mbmpo.Config, rows []study.Row) []study.Row {
	if g != &thePoor {
		return nil
	}
	meta, explore := "yes", cfg.Explore
	if cfg.Maml.Method == "joint" {
		meta = "no"
	}
	if explore == "subspace" {
		explore = "targeted"
	}
	var all []study.Row
	for _, r := range rows {
		if l := r.Labels; r.Table == "outcome" && r.Metric == "jct_h" && l["method"] == method && l["stage"] == "final" {
			all = append(all, study.Row{Table: "grid", Metric: r.Metric, Value: r.Value, Labels: map[string]string{
				"world": l["world"], "explore": explore, "meta": meta, "window": l["window"], "seed": l["seed"],
			}})
		}
	}
	return all
}

// meanJCT returns the mean of the outcomes' completion times, in intervals.
func meanJCT(out []mbmpo.Outcome) float64 {
	sum := 0.0
	for _, o := range out {
		sum += o.JCT / float64(len(out))
	}
	return sum
}

// marks is how often a learner without models, which has many rounds, is judged on its way.
const marks = 10

// marked reports whether a learner is judged after round k of rounds.
func marked(cfg mbmpo.Config, k, rounds int) bool {
	return !cfg.ModelFree || (k+1)%max(1, rounds/marks) == 0 || k == rounds-1
}

// learn trains one learner of a method in the usual world of a regime, changes the world, lets the learner adapt, and returns the
// outcomes on the way.
func (s *settings) learn(ctx context.Context, b *study.Bench, g *regime, method string, cfg mbmpo.Config, seed int) ([]study.Row, error) {
	usual, changed := s.worlds(g)
	windows, name := s.windows(), strconv.Itoa(seed)
	newPolicy, err := s.policy(usual, rng.At(uint64(seed), rng.Hash("policy")))
	if err != nil {
		return nil, err
	}
	l, err := mbmpo.New(cfg, usual, newPolicy, 1, uint64(seed)) // one worker, because cells run in parallel
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // the learner holds only memory
	best, err := s.reference(ctx, usual)
	if err != nil {
		return nil, err
	}
	bestChanged, err := s.reference(ctx, changed)
	if err != nil {
		return nil, err
	}
	var rows []study.Row
	labels := func(more ...string) map[string]string {
		m := map[string]string{"regime": g.name, "method": method, "seed": name}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	hours := workerplace.DefaultConfig().Interval / 3600
	// at returns the parameters that the method would act with now: adapted in steps inner steps, if the method adapts.
	at := func(steps int) ([]float32, error) {
		if cfg.Maml.Method == "joint" || steps == 0 {
			return append([]float32(nil), l.Params()...), nil
		}
		return l.Adapted(ctx, steps)
	}
	judge := func(x []float32, r mbmpo.Real) ([]mbmpo.Outcome, error) { return l.Evaluate(ctx, x, r, windows) }
	rounds, after := s.Rounds, s.AfterRounds
	if cfg.ModelFree {
		rounds, after = s.FreeRounds, s.FreeRounds/4+1
	}
	all := int64(rounds + after + 2)
	curves := map[string][]mark{}
	note := func(table string, r mbmpo.Report, since int, out []mbmpo.Outcome) {
		at := labels("episodes", strconv.Itoa(r.Episodes-since))
		j := meanJCT(out) * hours
		rows = append(rows, study.Row{Table: table, Labels: at, Metric: "jct_h", Value: j})
		curves[table] = append(curves[table], mark{r.Episodes - since, j})
		if !cfg.ModelFree && r.Round > 0 {
			rows = append(rows, study.Row{Table: table, Labels: at, Metric: "error", Value: r.Error},
				study.Row{Table: table, Labels: at, Metric: "spaces", Value: float64(r.Spaces)})
		}
	}
	r, err := l.Begin(ctx)
	if err != nil {
		return nil, err
	}
	out, err := judge(l.Params(), usual)
	if err != nil {
		return nil, err
	}
	note("curve", r, 0, out)
	b.Progress(1, all)
	for k := range rounds {
		if r, err = l.Round(ctx); err != nil {
			return nil, err
		}
		if !marked(cfg, k, rounds) {
			continue
		}
		x, err := at(cfg.Maml.InnerSteps)
		if err != nil {
			return nil, err
		}
		if out, err = judge(x, usual); err != nil {
			return nil, err
		}
		note("curve", r, 0, out)
		b.Progress(int64(k+2), all)
	}
	rows = append(rows, s.jctRows(method, g.before, "final", name, out)...)
	rows = append(rows, samples("samples", labels(), curves["curve"], best*hours)...)
	if method == "mls" { // its models also plan without a policy
		plan, err := l.Plan(ctx, usual, windows)
		if err != nil {
			return nil, err
		}
		rows = append(rows, s.jctRows("planner", g.before, "final", name, plan)...)
	}

	// The world changes. First the policy acts as before the change.
	x, err := at(cfg.Maml.InnerSteps)
	if err != nil {
		return nil, err
	}
	if out, err = judge(x, changed); err != nil {
		return nil, err
	}
	since := r.Episodes
	rows = append(rows, s.jctRows(method, g.after, "unaware", name, out)...)
	note("after", mbmpo.Report{Episodes: since}, since, out)
	l.Change(changed)
	if !cfg.ModelFree {
		if r, err = l.Gather(ctx, x, s.Adapting); err != nil {
			return nil, err
		}
		for _, steps := range []int{0, 1, 3} {
			if x, err = at(steps); err != nil {
				return nil, err
			}
			if out, err = judge(x, changed); err != nil {
				return nil, err
			}
			if cfg.Maml.Method != "joint" || steps == 0 {
				rows = append(rows, s.jctRows(method, g.after, fmt.Sprintf("%d inner steps", steps), name, out)...)
			}
		}
		note("after", r, since, out)
	}
	for k := range after {
		if r, err = l.Round(ctx); err != nil {
			return nil, err
		}
		if !marked(cfg, k, after) {
			continue
		}
		if x, err = at(cfg.Maml.InnerSteps); err != nil {
			return nil, err
		}
		if out, err = judge(x, changed); err != nil {
			return nil, err
		}
		note("after", r, since, out)
		b.Progress(int64(rounds+k+2), all)
	}
	rows = append(rows, s.jctRows(method, g.after, "final", name, out)...)
	rows = append(rows, gridRows(g, method, cfg, rows)...)
	rows = append(rows, samples("again", labels(), curves["after"], bestChanged*hours)...)
	if method == "mls" {
		plan, err := l.Plan(ctx, changed, windows)
		if err != nil {
			return nil, err
		}
		rows = append(rows, s.jctRows("planner", g.after, "final", name, plan)...)
	}
	return rows, nil
}
