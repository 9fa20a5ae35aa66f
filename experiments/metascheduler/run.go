package metascheduler

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"clustergym/agents/mbmpo"
	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// jctRows are a method's outcomes in a world, window by window.
func (s *MetaSettings) jctRows(method, world, stage, seed string, out []mbmpo.Outcome) []study.Row {
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

// rules plays every placement rule in both worlds.
func (s *MetaSettings) rules(ctx context.Context) ([]study.Row, error) {
	var rows []study.Row
	for _, world := range []string{"stationary", "changed"} {
		r := s.worlds()[world]
		for _, rule := range workerplace.Rules() {
			out, err := s.play(ctx, r, rule)
			if err != nil {
				return nil, err
			}
			rows = append(rows, s.jctRows(rule.Name, world, "final", "", out)...)
		}
	}
	return rows, nil
}

// play is a rule's outcomes.
func (s *MetaSettings) play(ctx context.Context, r mbmpo.Real, rule workerplace.Rule) ([]mbmpo.Outcome, error) {
	e, err := r.Open()
	if err != nil {
		return nil, err
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	var out []mbmpo.Outcome
	ts, act := env.NewTimeStep(e.Spec()), []int32{0}
	for _, seed := range s.windows() {
		src, ret := rng.Stream(seed, "rule"), 0.0
		if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1, Task: r.Values}, ts); err != nil {
			return nil, err
		}
		for !ts.Kind.Last() {
			act[0] = rule.Choose(e, src)
			if err := e.Step(ctx, env.Action{Disc: act}, ts); err != nil {
				return nil, err
			}
			ret += ts.Reward
		}
		out = append(out, mbmpo.OutcomeOf(e, ret))
	}
	return out, nil
}

func meanJCT(out []mbmpo.Outcome) float64 {
	sum := 0.0
	for _, o := range out {
		sum += o.JCT / float64(len(out))
	}
	return sum
}

// learn is one learner: the stationary world, then the change.
func (s *MetaSettings) learn(ctx context.Context, b *study.Bench, method string, cfg mbmpo.Config, seed int) ([]study.Row, error) {
	worlds, windows, name := s.worlds(), s.windows(), strconv.Itoa(seed)
	usual, changed := worlds["stationary"], worlds["changed"]
	newPolicy, err := s.policy(usual, rng.At(uint64(seed), rng.Hash("policy")))
	if err != nil {
		return nil, err
	}
	l, err := mbmpo.New(cfg, usual, newPolicy, 1, uint64(seed)) // cells run side by side
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // memory only
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
		m := map[string]string{"method": method, "seed": name}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	hours := workerplace.DefaultConfig().Interval / 3600
	// at is what the method would place jobs with now: adapted, where it adapts.
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
	rows = append(rows, s.jctRows(method, "stationary", "final", name, out)...)
	rows = append(rows, samples("samples", labels(), curves["curve"], best*hours)...)
	if method == "mls" { // what its models give without a policy
		plan, err := l.Plan(ctx, usual, windows)
		if err != nil {
			return nil, err
		}
		rows = append(rows, s.jctRows("planner", "stationary", "final", name, plan)...)
	}

	// The change. First as if nobody had noticed.
	x, err := at(cfg.Maml.InnerSteps)
	if err != nil {
		return nil, err
	}
	if out, err = judge(x, changed); err != nil {
		return nil, err
	}
	since := r.Episodes
	rows = append(rows, s.jctRows(method, "changed", "unaware", name, out)...)
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
				rows = append(rows, s.jctRows(method, "changed", fmt.Sprintf("%d inner steps", steps), name, out)...)
			}
		}
		note("after", r, since, out)
	}
	for k := range after {
		if r, err = l.Round(ctx); err != nil {
			return nil, err
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
	rows = append(rows, s.jctRows(method, "changed", "final", name, out)...)
	rows = append(rows, samples("again", labels(), curves["after"], bestChanged*hours)...)
	if method == "mls" {
		plan, err := l.Plan(ctx, changed, windows)
		if err != nil {
			return nil, err
		}
		rows = append(rows, s.jctRows("planner", "changed", "final", name, plan)...)
	}
	return rows, nil
}

// mark is a point of a learner's curve.
type mark struct {
	episodes int
	jct      float64
}

// reference is the mean completion time of the rule that is best of those which know what an agent knows, in intervals.
func (s *MetaSettings) reference(ctx context.Context, r mbmpo.Real) (float64, error) {
	rule, err := workerplace.RuleOf(metaBegins)
	if err != nil {
		return 0, err
	}
	out, err := s.play(ctx, r, rule)
	return meanJCT(out), err
}

// samples are how many real episodes a learner took until its performance, one by the completion time, was 95 % of its final one,
// the mean of its last two marks; until 95 % of what it gained from its first mark to the final one; and to a completion time 5 %
// below the reference's. A learner that did not gain, or never got there, has no such number; what share did is counted.
func samples(table string, labels map[string]string, curve []mark, reference float64) []study.Row {
	n := len(curve)
	end := (curve[n-1].jct + curve[max(n-2, 0)].jct) / 2
	start := curve[0].jct
	row := func(metric string, v float64) study.Row {
		return study.Row{Table: table, Labels: labels, Metric: metric, Value: v}
	}
	first := func(limit float64) float64 {
		for _, m := range curve {
			if m.jct <= limit {
				return float64(m.episodes)
			}
		}
		return math.NaN()
	}
	rows := []study.Row{row("final95", first(end/0.95))}
	gained, hit := 0.0, 0.0
	if at := first(start - 0.95*(start-end)); end < start && !math.IsNaN(at) {
		gained = 1
		rows = append(rows, row("own95", at))
	}
	if at := first(0.95 * reference); !math.IsNaN(at) {
		hit = 1
		rows = append(rows, row("target", at))
	}
	return append(rows, row("gained", gained), row("hit", hit), row("end_jct_h", end))
}
