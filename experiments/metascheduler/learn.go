package metascheduler

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"clustergym/env/workerplace"
	"clustergym/experiments/metascheduler/mbmpo"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// hours returns how long an interval is.
func hours() float64 { return workerplace.DefaultConfig().Interval / 3600 }

// jctRows returns a method's outcomes in a world as rows, window by window.
func jctRows(method, world, stage, seed string, out []mbmpo.Outcome) []study.Row {
	var rows []study.Row
	for i, o := range out {
		labels := map[string]string{"method": method, "world": world, "stage": stage, "window": strconv.Itoa(i)}
		if seed != "" {
			labels["seed"] = seed
		}
		row := study.RowOf("outcome", labels)
		rows = append(rows, row("jct_h", o.JCT*hours()), row("tail_h", o.Tail*hours()), row("makespan_h", o.Makespan*hours()))
	}
	return rows
}

// gridRows returns a learner's final completion times in the regime with poor models once more, by what they are
// compared for: whether it meta-learns, and how it explores.
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

// marks is how often a learner without models, which has many rounds, is judged on its way in each world.
const marks = 10

// marked reports whether a learner is judged after round k of rounds.
func marked(cfg mbmpo.Config, k, rounds int) bool {
	return !cfg.ModelFree || (k+1)%max(1, rounds/marks) == 0 || k == rounds-1
}

// training is one learner on its way through both worlds of a regime.
type training struct {
	*mbmpo.Loop
	s       *settings
	g       *regime
	method  string
	cfg     mbmpo.Config
	seed    string
	windows []uint64

	last   mbmpo.Report
	out    []mbmpo.Outcome // of the last time that it was judged
	since  int             // real episodes before the change
	curves map[string][]mark
	rows   []study.Row
}

// learn trains one learner of a method in the usual world of a regime, changes the world, lets the learner adapt, and
// returns the outcomes on the way.
func (s *settings) learn(ctx context.Context, b *study.Bench, g *regime, method string, cfg mbmpo.Config,
	seed int) ([]study.Row, error) {
	usual, changed := s.worlds(g)
	newPolicy, err := s.policy(usual, s.width(method), rng.At(uint64(seed), rng.Hash("policy")))
	if err != nil {
		return nil, err
	}
	l, err := mbmpo.New(cfg, usual, newPolicy, 1, uint64(seed)) // one worker, because cells run in parallel
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // the learner holds only memory
	t := &training{Loop: l, s: s, g: g, method: method, cfg: cfg, seed: strconv.Itoa(seed), windows: s.windows(),
		curves: map[string][]mark{}}
	rounds, after := s.Rounds, s.AfterRounds
	if cfg.ModelFree {
		rounds, after = s.FreeRounds, s.FreeRounds/4+1
	}
	done, all := int64(0), int64(rounds+after+2)
	tick := func(n int) { done += int64(n); b.Progress(done, all) }
	if err := t.before(ctx, usual, rounds, tick); err != nil {
		return nil, err
	}
	if err := t.adapt(ctx, changed, tick); err != nil {
		return nil, err
	}
	if err := t.after(ctx, changed, after, tick); err != nil {
		return nil, err
	}
	return t.rows, nil
}

// before learns in the usual world.
func (t *training) before(ctx context.Context, usual mbmpo.Real, rounds int, tick func(n int)) (err error) {
	best, err := t.s.reference(ctx, usual)
	if err != nil {
		return err
	}
	if t.last, err = t.Begin(ctx); err != nil {
		return err
	}
	if err := t.judge(ctx, t.Params(), usual); err != nil {
		return err
	}
	t.note("curve")
	tick(1)
	if err := t.rounds(ctx, "curve", usual, rounds, tick); err != nil {
		return err
	}
	return t.finish(ctx, "samples", "curve", usual, t.g.before, best)
}

// adapt changes the world. The policy first acts as before the change, then after real episodes of the new world and
// some inner steps.
func (t *training) adapt(ctx context.Context, changed mbmpo.Real, tick func(n int)) error {
	x, err := t.acting(ctx, t.cfg.Maml.InnerSteps)
	if err != nil {
		return err
	}
	if err := t.judge(ctx, x, changed); err != nil {
		return err
	}
	t.since = t.last.Episodes
	t.outcome(t.g.after, "unaware")
	t.last = mbmpo.Report{Episodes: t.since}
	t.note("after")
	t.Change(changed)
	tick(1)
	if t.cfg.ModelFree {
		return nil
	}
	if t.last, err = t.Gather(ctx, x, t.s.Adapting); err != nil {
		return err
	}
	for _, steps := range []int{0, 1, 3} {
		if x, err = t.acting(ctx, steps); err != nil {
			return err
		}
		if err := t.judge(ctx, x, changed); err != nil {
			return err
		}
		if t.adapts() || steps == 0 {
			t.outcome(t.g.after, fmt.Sprintf("%d inner steps", steps))
		}
	}
	t.note("after")
	return nil
}

// after learns in the changed world.
func (t *training) after(ctx context.Context, changed mbmpo.Real, rounds int, tick func(n int)) error {
	best, err := t.s.reference(ctx, changed)
	if err != nil {
		return err
	}
	if err := t.rounds(ctx, "after", changed, rounds, tick); err != nil {
		return err
	}
	return t.finish(ctx, "again", "after", changed, t.g.after, best)
}

// rounds takes rounds of the closed loop and judges the learner in world on the way.
func (t *training) rounds(ctx context.Context, curve string, world mbmpo.Real, rounds int,
	tick func(n int)) (err error) {
	for k := range rounds {
		if t.last, err = t.Round(ctx); err != nil {
			return err
		}
		tick(1)
		if !marked(t.cfg, k, rounds) {
			continue
		}
		x, err := t.acting(ctx, t.cfg.Maml.InnerSteps)
		if err != nil {
			return err
		}
		if err := t.judge(ctx, x, world); err != nil {
			return err
		}
		t.note(curve)
	}
	return nil
}

// finish adds what came out in a world: the outcomes in the end, how many episodes they took, and what the models of
// mls do without a policy.
func (t *training) finish(ctx context.Context, table, curve string, world mbmpo.Real, name string, best float64) error {
	t.outcome(name, "final")
	if name == t.g.after {
		t.rows = append(t.rows, gridRows(t.g, t.method, t.cfg, t.rows)...)
	}
	t.rows = append(t.rows, samples(table, t.labels(), t.curves[curve], best*hours())...)
	if t.method != "mls" {
		return nil
	}
	plan, err := t.Plan(ctx, world, t.windows)
	t.rows = append(t.rows, jctRows("planner", name, "final", t.seed, plan)...)
	return err
}

// adapts reports whether the method takes inner steps.
func (t *training) adapts() bool { return t.cfg.Maml.Method != "joint" }

// acting returns the parameters that the method would act with now, after inner steps if it adapts.
func (t *training) acting(ctx context.Context, steps int) ([]float32, error) {
	if !t.adapts() || steps == 0 {
		return slices.Clone(t.Params()), nil
	}
	return t.Adapted(ctx, steps)
}

// judge plays the windows in world by the likeliest actions of parameters x.
func (t *training) judge(ctx context.Context, x []float32, world mbmpo.Real) (err error) {
	t.out, err = t.Evaluate(ctx, x, world, t.windows)
	return err
}

// outcome adds the outcomes of the last time that the learner was judged.
func (t *training) outcome(world, stage string) {
	t.rows = append(t.rows, jctRows(t.method, world, stage, t.seed, t.out)...)
}

// note adds the last outcomes to a curve over real episodes, and how far the models were off in the last round.
func (t *training) note(curve string) {
	m := mark{t.last.Episodes - t.since, meanJCT(t.out) * hours()}
	row := study.RowOf(curve, study.With(t.labels(), "episodes", m.episodes))
	t.rows = append(t.rows, row("jct_h", m.jct))
	t.curves[curve] = append(t.curves[curve], m)
	if !t.cfg.ModelFree && t.last.Round > 0 {
		t.rows = append(t.rows, row("error", t.last.Error), row("spaces", float64(t.last.Spaces)))
	}
}

// labels returns those of a learner's curves.
func (t *training) labels() map[string]string {
	return map[string]string{"regime": t.g.name, "method": t.method, "seed": t.seed}
}
