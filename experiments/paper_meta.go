package experiments

import (
	"context"
	_ "embed" // the study's settings and what its figures were
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"clustergym/agents/mbmpo"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/workerplace"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/nets/model"
)

//go:embed meta-scheduler/experiment.yaml
var metaSettingsFile []byte

//go:embed meta-scheduler/expected.csv
var metaExpected []byte

// MetaSettings are those of the study meta-scheduler.
type MetaSettings struct {
	Seeds       int      `yaml:"seeds"`        // learners of each method
	Windows     int      `yaml:"windows"`      // workloads that all are judged on, which nobody learns from
	Jobs        int      `yaml:"jobs"`         // of a workload
	Slots       int      `yaml:"slots"`        // waiting jobs that policies see
	Width       int      `yaml:"width"`        // of policies' layers
	Noise       float64  `yaml:"noise"`        // of measured speeds
	Rounds      int      `yaml:"rounds"`       // of the closed loop
	AfterRounds int      `yaml:"after_rounds"` // after the change
	FreeRounds  int      `yaml:"free_rounds"`  // of learning without models, in place of both
	Episodes    int      `yaml:"episodes"`     // real ones of a round
	Adapting    int      `yaml:"adapting"`     // real ones after the change, before the inner steps
	MetaSteps   int      `yaml:"meta_steps"`   // of a round
	Guide       int      `yaml:"guide"`        // passes of imitation of the models' planners
	Methods     []string `yaml:"methods,flow"`
}

func defaultMetaSettings() MetaSettings {
	return MetaSettings{
		Seeds: 5, Windows: 32, Jobs: 40, Slots: 5, Width: 32, Noise: 0.02, Rounds: 8, AfterRounds: 2, FreeRounds: 40, Episodes: 4,
		Adapting: 2, MetaSteps: 10, Guide: 100, Methods: metaMethods(),
	}
}

// Validate implements configs.Validator.
func (s *MetaSettings) Validate() error {
	var l fault.List
	for _, v := range []struct {
		key   string
		value int
	}{
		{"seeds", s.Seeds}, {"windows", s.Windows}, {"jobs", s.Jobs}, {"slots", s.Slots}, {"width", s.Width}, {"rounds", s.Rounds},
		{"after_rounds", s.AfterRounds}, {"free_rounds", s.FreeRounds}, {"episodes", s.Episodes}, {"adapting", s.Adapting}, {"meta_steps", s.MetaSteps},
	} {
		l.Add(v.value >= 1 && v.value <= 10_000, v.key, v.value, "a whole number from 1 to 10000")
	}
	l.Add(s.Guide >= 0, "guide", s.Guide, "a whole number, 0 or more")
	l.Add(s.Noise >= 0 && s.Noise <= 1, "noise", s.Noise, "a number in [0, 1]")
	for i, m := range s.Methods {
		l.Add(slices.Contains(metaMethods(), m), fmt.Sprintf("methods[%d]", i), m, "one of "+strings.Join(metaMethods(), ", "))
	}
	return l.Err()
}

// metaMethods are the learners, in the order of tables: the whole, what it is without one of its parts, with a guide of ours, and
// others.
func metaMethods() []string {
	return []string{"mls", "random-exploration", "no-meta", "single-model", "mls-guided", "harmony-like", "ppo"}
}

// loop is the configuration of a method.
func (s *MetaSettings) loop(method string) mbmpo.Config {
	c := mbmpo.DefaultConfig()
	c.Episodes, c.MetaSteps, c.Guide = s.Episodes, s.MetaSteps, 0
	switch method {
	case "random-exploration":
		c.Explore = "random"
	case "no-meta":
		// The same real episodes, models and exploration; as many imagined episodes, all of them to learn from.
		c.Maml.Method, c.Maml.After = "joint", c.Maml.Before+c.Maml.After
		c.Explore = "subspace"
	case "single-model":
		c.Models.Members = 1
	case "mls-guided":
		c.Guide = s.Guide
	case "harmony-like":
		c.Models.Members, c.Explore = 1, "none"
		c.Maml.Method, c.Maml.After = "joint", c.Maml.Before+c.Maml.After
	case "ppo":
		c.ModelFree, c.Explore = true, "none"
		c.Maml.Method, c.Maml.Outer, c.Maml.Tasks, c.Maml.After = "joint", "ppo", s.Episodes, 1
		c.Maml.Epochs, c.Maml.LR, c.Maml.EntCoef = 6, 1e-3, 0.001
	}
	return c
}

// worlds are where jobs come from: as usual, and after the change: a quarter more jobs an interval, of which most are of three
// types, five of six servers, and a quarter more interference.
func (s *MetaSettings) worlds() map[string]mbmpo.Real {
	c := workerplace.DefaultConfig()
	c.Obs, c.Slots, c.Jobs, c.Noise = "pairs", s.Slots, s.Jobs, s.Noise
	open := func() (*workerplace.Env, error) { return workerplace.New(c) }
	return map[string]mbmpo.Real{
		"stationary": {Open: open},
		"changed":    {Open: open, Values: []float64{1.25, 1, 5.0 / 6, 1.25, 0, 0.1, 1, 0.1, 1, 0.1, 0.1, 0.1, 1}},
	}
}

// windows are the seeds of the workloads that all are judged on.
func (s *MetaSettings) windows() []uint64 {
	out := make([]uint64, s.Windows)
	for i := range out {
		out[i] = rng.At(rng.Hash("meta-scheduler"), uint64(i))
	}
	return out
}

// policy makes policies that score every pair of a waiting job and a server with the same small network.
func (s *MetaSettings) policy(r mbmpo.Real, seed uint64) (func() (mbmpo.Model, error), error) {
	e, err := r.Open()
	if err != nil {
		return nil, err
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		return nil, err
	}
	c := ppo.ModelConfig{Network: model.Config{
		Kind: "cnn", Hidden: []int{s.Width}, Activation: "tanh", Head: "slots", SlotHidden: s.Width,
		Branches: []model.Branch{{Field: "pairs", Dense: []int{s.Width}, Slots: true}},
	}}
	return func() (mbmpo.Model, error) { return ppo.NewModel(c, spec, seed) }, nil
}

func metaStudy() study.Study {
	return study.Study{
		Name:  "meta-scheduler",
		Title: "A meta-learning scheduler that places workers (reconstruction)",
		Cite:  "Yang, Bao, Liu, Yang and Wu, On a Meta Learning-Based Scheduler for Deep Learning Clusters, IEEE Trans. Cloud Computing 11(4), 2023, 10.1109/TCC.2023.3308161",
		Takes: "quick 1 to 2 minutes on two free cores, full an estimated 30",
		Cells: metaCells, Tables: metaTables, Figures: metaFigures, Claims: metaClaims, Notes: metaNotes, Expected: metaExpected,
	}
}

// metaVersion changes when what cells compute does.
const metaVersion = 1

func metaCells(p study.Plan) ([]study.Cell, error) {
	s, err := study.Settings[MetaSettings]("meta-scheduler", metaSettingsFile, p, defaultMetaSettings())
	if err != nil {
		return nil, err
	}
	s.Seeds = p.SeedsOr(s.Seeds)
	// What a cell depends on: not how many others there are.
	own := s
	own.Seeds, own.Methods = 0, nil
	type input struct {
		Version  int
		Settings MetaSettings
		What     string
		Loop     *mbmpo.Config `json:",omitempty"`
		Seed     int
	}
	cells := []study.Cell{{
		Key: "rules", Input: input{Version: metaVersion, Settings: own, What: "rules"},
		Run: func(ctx context.Context, _ *study.Bench) ([]study.Row, error) { return s.rules(ctx) },
	}}
	for _, m := range s.Methods {
		cfg := s.loop(m)
		for seed := 1; seed <= s.Seeds; seed++ {
			cells = append(cells, study.Cell{
				Key:   fmt.Sprintf("learn/%s/seed=%d", m, seed),
				Input: input{metaVersion, own, m, &cfg, seed},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return s.learn(ctx, b, m, cfg, seed)
				},
			})
		}
	}
	return cells, nil
}

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
	fewest, err := workerplace.RuleOf("least-interference")
	if err != nil {
		return nil, err
	}
	reference, err := s.play(ctx, usual, fewest)
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
	var curve []mark
	note := func(table string, r mbmpo.Report, since int, out []mbmpo.Outcome) {
		at := labels("episodes", strconv.Itoa(r.Episodes-since))
		j := meanJCT(out) * hours
		rows = append(rows, study.Row{Table: table, Labels: at, Metric: "jct_h", Value: j})
		if table == "curve" {
			curve = append(curve, mark{r.Episodes, j})
		}
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
	rows = append(rows, samples(labels(), curve, meanJCT(reference)*hours)...)
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

// samples are how many real episodes a learner took to 95 % of what it gained in all, from what imitation gave it to the mean of
// its last two marks, and to a completion time 5 % below the reference's. A learner that did not gain, or never got there, has no
// such number; what share did is counted.
func samples(labels map[string]string, curve []mark, reference float64) []study.Row {
	n := len(curve)
	end := (curve[n-1].jct + curve[max(n-2, 0)].jct) / 2
	start := curve[0].jct
	row := func(metric string, v float64) study.Row {
		return study.Row{Table: "samples", Labels: labels, Metric: metric, Value: v}
	}
	first := func(limit float64) float64 {
		for _, m := range curve {
			if m.jct <= limit {
				return float64(m.episodes)
			}
		}
		return math.NaN()
	}
	var rows []study.Row
	gained := 0.0
	if at := first(start - 0.95*(start-end)); end < start && !math.IsNaN(at) {
		gained = 1
		rows = append(rows, row("own95", at))
	}
	rows = append(rows, row("gained", gained))
	hit := 0.0
	if at := first(0.95 * reference); !math.IsNaN(at) {
		hit = 1
		rows = append(rows, row("target", at))
	}
	return append(rows, row("hit", hit), row("end_jct_h", end))
}

// metaOrder is the order of lines.
func metaOrder() []string {
	order := []string{"mls", "random-exploration", "no-meta", "single-model", "mls-guided", "planner", "harmony-like", "ppo"}
	for _, r := range workerplace.Rules() {
		order = append(order, r.Name)
	}
	return order
}

const (
	vsFewest  = "vs least-interference"
	vsHarmony = "vs harmony-like"
	vsPPO     = "vs ppo"
)

func metaTables(study.Plan) []study.Table {
	order := map[string][]string{
		"method": metaOrder(), "stage": {"unaware", "0 inner steps", "1 inner steps", "3 inner steps", "final"},
	}
	columns := func(line func(method string) map[string]string) []study.Column {
		return []study.Column{
			{Title: "mean JCT h", Metric: "jct_h"},
			{Title: vsFewest, Metric: "jct_h", Stat: study.Percent, Versus: line("least-interference")},
			{Title: vsHarmony, Metric: "jct_h", Stat: study.Percent, Versus: line("harmony-like")},
			{Title: vsPPO, Metric: "jct_h", Stat: study.Percent, Versus: line("ppo")},
			{Title: "95 % tail h", Metric: "tail_h", Bare: true},
			{Title: "makespan h", Metric: "makespan_h", Bare: true},
		}
	}
	alone := func(m string) map[string]string { return map[string]string{"method": m} }
	return []study.Table{
		{
			Name: "stationary", Title: "Mean completion time on held-out workloads", From: "outcome", Where: map[string]string{"world": "stationary", "stage": "final"},
			By: []string{"method"}, Order: order, Columns: columns(alone),
		},
		{
			Name: "changed", Title: "After the workload has changed, and some rounds", From: "outcome", Where: map[string]string{"world": "changed", "stage": "final"},
			By: []string{"method"}, Order: order, Columns: columns(alone),
		},
		{
			Name: "adaptation", Title: "Adapting to the change", From: "outcome", Where: map[string]string{"world": "changed"},
			By: []string{"method", "stage"}, Order: order,
			Columns: []study.Column{
				{Title: "mean JCT h", Metric: "jct_h"},
				{Title: vsFewest, Metric: "jct_h", Stat: study.Percent, Versus: map[string]string{"method": "least-interference", "stage": "final"}},
			},
			Notes: []string{"unaware = as it was before; inner steps come after some real episodes in the new workload and another fit of the models; final = after some rounds more."},
		},
		{
			Name: "samples", Title: "Real episodes that learning takes", By: []string{"method"}, Order: order,
			Columns: []study.Column{
				{Title: "to 95 % of its gain", Metric: "own95"}, {Title: "share that gained", Metric: "gained", Bare: true},
				{Title: "to 5 % below least-interference", Metric: "target"}, {Title: "share that got there", Metric: "hit", Bare: true},
			},
			Notes: []string{"The episodes that the first data come from count. Means are over the learners that got there."},
		},
		{
			Name: "curve", Title: "Mean completion time by real episodes", By: []string{"method", "episodes"}, Order: order,
			Columns: []study.Column{{Title: "mean JCT h", Metric: "jct_h"}, {Title: "models' relative error", Metric: "error", Bare: true}, {Title: "subspaces seen", Metric: "spaces", Bare: true}},
		},
		{
			Name: "after", Title: "The same after the change, by real episodes since", By: []string{"method", "episodes"}, Order: order,
			Columns: []study.Column{{Title: "mean JCT h", Metric: "jct_h"}, {Title: "models' relative error", Metric: "error", Bare: true}},
		},
	}
}

func metaFigures(study.Plan) []study.Figure {
	lines := func(table string) func(*study.Results) []study.Series {
		return func(r *study.Results) []study.Series {
			var all []study.Series
			for _, m := range metaMethods() {
				if m == "ppo" && table == "curve" {
					continue // its axis is another
				}
				s := study.Series{Name: m}
				for _, l := range r.Lines(table) {
					if l.Labels["method"] != m {
						continue
					}
					x, err := strconv.ParseFloat(l.Labels["episodes"], 64)
					if v, _, ok := r.Find(table, l.Labels, "mean JCT h"); ok && err == nil {
						s.Points = append(s.Points, study.Point{X: x, Y: v.Value, Low: v.Low, High: v.High})
					}
				}
				if len(s.Points) > 0 {
					slices.SortFunc(s.Points, func(a, b study.Point) int { return int(math.Copysign(1, a.X-b.X)) })
					all = append(all, s)
				}
			}
			return all
		}
	}
	return []study.Figure{
		{Name: "curve", Title: "Learning with few real episodes", X: "real episodes", Y: "mean JCT, h", Series: lines("curve")},
		{Name: "stationary", Title: "Mean completion time on held-out workloads", X: "mean JCT, h", Kind: study.Bars, Zero: true,
			Series: func(r *study.Results) []study.Series { return r.Bars("stationary", "mean JCT h", nil) }},
		{Name: "changed", Title: "After the change", X: "mean JCT, h", Kind: study.Bars, Zero: true,
			Series: func(r *study.Results) []study.Series { return r.Bars("changed", "mean JCT h", nil) }},
	}
}

func metaClaims(study.Plan) []study.Claim {
	var claims []study.Claim
	for _, m := range []string{"mls", "mls-guided"} {
		line := map[string]string{"method": m}
		for _, c := range []string{vsFewest, vsHarmony, vsPPO} {
			claims = append(claims,
				study.Claim{What: m + ", mean JCT " + c, Paper: "−12.29 to −16.24 %", Table: "stationary", Line: line, Column: c},
				study.Claim{What: m + ", mean JCT after the change, " + c, Paper: "−15.76 to −22.13 %", Table: "changed", Line: line, Column: c})
		}
	}
	return claims
}

func metaNotes(study.Plan) []string {
	return []string{
		"mls is a reconstruction from the paper's abstract: closed loop, performance models, meta-learning, exploration where models are wrong. The paper's figures are against baselines that its abstract does not name, on a cluster and workloads that it does not name either.",
		"mls-guided is ours: before its first meta-steps the policy imitates, in the models, what planning one worker ahead by them would do.",
		"planner places every worker where the models of mls believe that all jobs are fastest, without a policy; oracle does the same with the true speeds, which no scheduler knows.",
		"harmony-like learns in one model without meta-learning or exploration; ppo learns from real episodes alone, with more of them.",
		"All learners begin by imitating least-interference on the same few real episodes, and are judged by their likeliest actions on workloads that nobody learnt from.",
	}
}
