package worlrtgs

import (
	"context"
	_ "embed" // settings and figures
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"clustergym/agents/woa"
	"clustergym/env/dag"
	"clustergym/env/dag/listsched"
	"clustergym/env/dag/synth"
	"clustergym/experiments/plan"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

//go:embed experiment.yaml
var worlYAML []byte

//go:embed expected.csv
var worlExpected []byte

// worlVersion is that of the study's methods: another one computes every cell again.
const worlVersion = 1

// worlSearchVersion is that of what is done with what is trained.
const worlSearchVersion = 2

// worlStudy compares WORL-RTGS-like plans with those of every other planner.
func Study() study.Study {
	return study.Study{
		Name:  "worl-rtgs",
		Title: "Plans of task graphs: WORL-RTGS-like against whale optimisation, RTGS, list scheduling and the optimum",
		Cite:  "Du, Wu, Hou, Nie, Song: Efficient Scheduling for GPU-Based Neural Network Training via Hybrid Reinforcement Learning and Metaheuristic Optimization, BDCC 9(11), 284, 2025",
		Takes: "quick: under 2 minutes on two cores; full: 40 minutes of processor time, an estimated 20 on two cores",
		Cells: worlCells, Tables: worlTables, Figures: worlFigures, Claims: worlClaims, Notes: worlNotes, Expected: worlExpected,
	}
}

func worlSettingsOf(p study.Plan) (worlSettings, error) {
	s, err := study.Settings("worl-rtgs", worlYAML, p, worlSettings{Graphs: 1, Seeds: 1, DRAS: 1, Plans: 3, Real: 1})
	if err == nil && p.Seeds > 0 {
		s.Seeds = p.Seeds
		s.Generators = min(s.Generators, p.Seeds)
	}
	return s, err
}

// worlPlanner is one planner of the study. Those without seeds are the same for every seed.
type worlPlanner struct {
	name   string
	drawn  bool
	policy string // of PlanPolicies
	start  string
	moves  int
	still  bool // no task is placed at random: plans differ by their hopes alone
	part   bool // shows what a part of another one does, and is left out where time is dear
}

var worlPlanners = []worlPlanner{
	{name: "random", drawn: true, policy: "random"},
	{name: "eft-index", policy: "eft-index"},
	{name: "heft", policy: "heft"},
	{name: "heft-noinsert", policy: "heft-noinsert"},
	{name: "cpop", policy: "cpop"},
	{name: "peft", policy: "peft"},
	{name: "dras-like", policy: drasPolicy},
	{name: "woa", drawn: true, policy: "woa", start: "random"},
	{name: "rtgs-released", drawn: true, policy: "rtgs-released", start: "random"},
	{name: "rtgs", drawn: true, policy: "rtgs", start: "random"},
	{name: "worl-rtgs", drawn: true, policy: "worl-rtgs", start: "random"},
	{name: "worl-rtgs-hopes", drawn: true, policy: "worl-rtgs", start: "random", still: true, part: true},
	{name: "woa+heft", drawn: true, policy: "woa", start: "heft"},
	{name: "rtgs+heft", drawn: true, policy: "rtgs", start: "heft"},
	{name: "worl-rtgs+heft", drawn: true, policy: "worl-rtgs", start: "heft"},
	{name: "woa+heft+moves", drawn: true, policy: "woa", start: "heft", moves: 100, part: true},
	{name: "worl-rtgs+heft+moves", drawn: true, policy: "worl-rtgs", start: "heft", moves: 100, part: true},
}

// worlSix are ranked among themselves on all graphs, as the paper ranks six methods.
var worlSix = []string{"heft", "cpop", "dras-like", "woa", "rtgs", "worl-rtgs"}

func worlPlannerNames() []string {
	var names []string
	for _, p := range worlPlanners {
		names = append(names, p.name)
	}
	return names
}

// run plans q. learnt are the weights for the seed.
func (p *worlPlanner) run(ctx context.Context, q *dag.Problem, s *worlSettings, b float64, seed uint64, learnt worlLearnt, workers int) (*dag.Plan, *woa.Result, error) {
	l := listsched.New(q, listsched.Options{})
	if p.policy == drasPolicy {
		plan, err := playDRAS(ctx, q, learnt.dras)
		return plan, nil, err
	}
	if !slices.Contains(plan.SearchPolicies, p.policy) {
		plan, err := l.Plan(ctx, p.policy, rng.Stream(seed, "worl-rtgs/random"))
		if err == nil && p.policy == "eft-index" {
			// Its rule knows of no transfers; its processors are given times that do.
			e := dag.NewEvaluator(q, nil)
			e.Makespan(plan.Proc)
			e.Plan(plan)
		}
		return plan, nil, err
	}
	c := plan.SearchConfig(p.policy)
	c.B, c.Moves = b, p.moves
	if p.still {
		c.Explore = 0
	}
	c.Iterations, c.Whales = s.budget(p.policy, q.Tasks(), q.Procs())
	var seeds []*dag.Plan
	if p.start == "heft" {
		seeds = append(seeds, l.HEFT(true).Clone())
	}
	r, err := woa.Search(ctx, q, c, seeds, seed, workers, woa.Hooks{Policy: plan.GeneratorPolicies(plan.DefaultGeneratorConfig(), learnt.generator)})
	if err != nil {
		return nil, nil, err
	}
	return r.Plan, r, nil
}

// budget is what a search may spend: the study's own, where it has one, but never more than the budget by size. All
// searches of a graph then make as many plans as worl-rtgs.
func (s *worlSettings) budget(policy string, n, m int) (iterations, whales int) {
	if s.Iterations == 0 {
		return plan.AutoBudget(policy, n, m)
	}
	iterations, whales = plan.AutoBudget("worl-rtgs", n, m)
	if s.Iterations*s.Whales < iterations*whales {
		return s.Iterations, s.Whales
	}
	return iterations, whales
}

// worlLearnt are the weights of what is learnt.
type worlLearnt struct{ generator, dras []byte }

// worlWeights are those for a seed: what the study trained, or for the generator the program's.
func worlWeights(b *study.Bench, s *worlSettings, seed int) (l worlLearnt, err error) {
	if l.dras, err = os.ReadFile(filepath.Join(b.WorkOf(drasKey), "dras.safetensors")); err != nil {
		return l, err
	}
	l.generator = plan.GeneratorWeights
	if s.Generators > 0 {
		l.generator, err = os.ReadFile(filepath.Join(b.WorkOf(worlGeneratorKey(seed%s.Generators)), "generator.safetensors"))
	}
	return l, err
}

func worlGeneratorKey(k int) string { return fmt.Sprintf("generator/seed=%d", k+1) }

// worlCells are the pieces of work.
func worlCells(p study.Plan) ([]study.Cell, error) {
	s, err := worlSettingsOf(p)
	if err != nil {
		return nil, err
	}
	var cells []study.Cell
	var generators []string
	add := func(key string, input any, after []string, run func(ctx context.Context, b *study.Bench) ([]study.Row, error)) *study.Cell {
		cells = append(cells, study.Cell{Key: key, After: after, Run: run, Input: struct {
			Version int
			Of      any
		}{worlVersion, input}})
		return &cells[len(cells)-1]
	}
	add(drasKey, s.DRAS, nil, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
		return trainDRAS(ctx, b, s.DRAS)
	})
	generators = append(generators, drasKey)
	for k := range s.Generators {
		c := plan.DefaultGeneratorConfig()
		add(worlGeneratorKey(k), c, nil, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return trainWorlGenerator(ctx, b, c, uint64(k+1))
		})
		generators = append(generators, worlGeneratorKey(k))
	}
	search := struct{ Version, Iterations, Whales, Generators, Seeds int }{worlSearchVersion, s.Iterations, s.Whales, s.Generators, s.Seeds}
	for _, z := range s.Sizes {
		for _, family := range s.Families {
			for k := range z.Graphs {
				key := fmt.Sprintf("plan/%s/%dx%d/graph=%d", family, z.Tasks, z.GPUs, k)
				add(key, []any{family, z, k, search, worlPlannerNames()}, generators, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					q, err := plan.Generate(family, z.Tasks, z.GPUs, k, true)
					if err != nil {
						return nil, err
					}
					labels := map[string]string{"family": family, "tasks": fmt.Sprint(z.Tasks), "GPUs": fmt.Sprint(z.GPUs), "graph": fmt.Sprint(k), "class": z.class()}
					return worlPlans(ctx, b, &s, "plans", q, z.planners(), labels)
				})
			}
		}
	}
	if p.Data != "" {
		file, digest, err := worlRecorded(p.Data)
		if err != nil {
			return nil, err
		}
		for _, kind := range worlRealKinds {
			for k := range s.Real {
				add(fmt.Sprintf("real/%s/graph=%d", kind, k), []any{kind, k, digest, search}, generators, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return worlReal(ctx, b, &s, file, kind, k)
				})
			}
		}
	}
	for k := range s.Tiny {
		add(fmt.Sprintf("tiny/graph=%d", k), []any{k, search}, generators, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return worlTiny(ctx, b, &s, k)
		})
	}
	for _, size := range s.Correlations {
		for _, family := range []string{"alibaba", "degree-1", "degree-3"} {
			for k := range s.Graphs {
				add(fmt.Sprintf("pcc/%s/%dx%d/graph=%d", family, size[0], size[1], k), []any{family, size, k, s.Plans}, nil,
					func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
						return worlCorrelation(ctx, family, size, k, s.Plans)
					})
			}
		}
	}
	for _, shape := range s.Shapes {
		for k := range s.Graphs {
			add(fmt.Sprintf("b/%g/graph=%d", shape, k), []any{shape, k, search}, generators, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				return worlShape(ctx, b, &s, shape, k)
			})
		}
	}
	for _, size := range s.Times {
		c := add(fmt.Sprintf("time/%dx%d", size[0], size[1]), []any{size}, nil, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return worlTimes(ctx, b, size)
		})
		c.Alone = true
	}
	return cells, nil
}

func trainWorlGenerator(ctx context.Context, b *study.Bench, c plan.GeneratorConfig, seed uint64) ([]study.Row, error) {
	g, err := plan.TrainGenerator(ctx, c, seed, b.Workers, func(step int, ratio float64) {
		b.Progress(int64(step), int64(c.Steps))
		b.Log("generator of seed %d, step %d: makespans are %.4f times HEFT's", seed, step, ratio)
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.Work(), "generator.safetensors"), g.Weights, 0o600); err != nil {
		return nil, err
	}
	return []study.Row{{Table: "generator", Labels: map[string]string{"seed": fmt.Sprint(seed)}, Metric: "ratio", Value: g.Best}}, nil
}

// worlPlans plans q by every planner from every seed, for rows of a table with these labels and their ranks.
func worlPlans(ctx context.Context, b *study.Bench, s *worlSettings, table string, q *dag.Problem, planners []worlPlanner, graph map[string]string) ([]study.Row, error) {
	var rows []study.Row
	row := func(table, metric string, v float64, more map[string]string) {
		labels := maps.Clone(graph)
		maps.Copy(labels, more)
		rows = append(rows, study.Row{Table: table, Labels: labels, Metric: metric, Value: v})
	}
	tables, every := []string{table}, len(planners) == len(worlPlanners)
	if every {
		tables = append(tables, table+"-all")
	}
	means := make([]float64, len(planners))
	heft := listsched.New(q, listsched.Options{}).HEFT(true).Makespan
	for i, p := range planners {
		seeds := 1
		if p.drawn {
			seeds = s.Seeds
		}
		least, most := math.Inf(1), 0.0
		for seed := range seeds {
			weights, err := worlWeights(b, s, seed)
			if err != nil {
				return nil, err
			}
			plan, _, err := p.run(ctx, q, s, 1, uint64(seed+1), weights, b.Workers)
			if err != nil {
				return nil, err
			}
			if err := dag.Check(q, plan, true); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", p.name, q.Graph.Name, err)
			}
			means[i] += plan.Makespan / float64(seeds)
			least, most = min(least, plan.Makespan), max(most, plan.Makespan)
			labels := map[string]string{"policy": p.name, "seed": fmt.Sprint(seed + 1)}
			for _, t := range tables {
				row(t, "makespan_s", plan.Makespan, labels)
				row(t, "ratio", plan.Makespan/heft, labels)
			}
		}
		if seeds > 1 {
			row(table+"-spread", "spread", 100*(most-least)/means[i], map[string]string{"policy": p.name})
		}
		b.Progress(int64(i+1), int64(len(planners)))
	}
	if every {
		for i, r := range ranks(means) {
			row(table+"-ranks", "rank", r, map[string]string{"policy": planners[i].name})
		}
	}
	var six []float64
	for _, name := range worlSix {
		six = append(six, means[slices.IndexFunc(planners, func(p worlPlanner) bool { return p.name == name })])
	}
	for i, r := range ranks(six) {
		row(table+"-six", "rank", r, map[string]string{"policy": worlSix[i]})
	}
	return rows, nil
}

// ranks are the places of values, the smallest first; equal ones share the mean of theirs.
func ranks(values []float64) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		below, same := 0, 0
		for _, w := range values {
			if w < v {
				below++
			} else if w == v {
				same++
			}
		}
		all[i] = float64(below) + float64(same+1)/2
	}
	return all
}

// worlTiny compares with the optimum of a graph of 6 to 12 tasks on 2 to 4 processors.
func worlTiny(ctx context.Context, b *study.Bench, s *worlSettings, k int) ([]study.Row, error) {
	src := rng.Stream(uint64(k), "worl-rtgs/tiny")
	c, p := synth.DefaultConfig(), synth.DefaultPlatformConfig()
	c.Kind = []string{"erdos", "layered", "fork-join"}[k%3]
	c.Tasks, c.Degree, c.CCR = 6+src.IntN(7), 1+2*src.Float64(), []float64{0.1, 0.5, 1, 2}[src.IntN(4)]
	p.GPUs, p.Speeds, p.Links = 2+src.IntN(3), "spread", "random"
	platform, err := synth.Platform(p, src)
	if err != nil {
		return nil, err
	}
	q, err := synth.Problem(c, platform, fmt.Sprintf("tiny-%d", k), src)
	if err != nil {
		return nil, err
	}
	x, err := listsched.Optimum(ctx, q, listsched.Options{}, 0)
	if err != nil {
		return nil, err
	}
	if !x.Proven {
		return nil, fmt.Errorf("the optimum of %s with %d tasks was not proven in %d nodes", q.Graph.Name, q.Tasks(), x.Nodes)
	}
	var rows []study.Row
	own := *s
	own.Iterations, own.Whales = 0, 0
	for _, pl := range worlPlanners {
		if pl.part {
			continue
		}
		seeds := 1
		if pl.drawn {
			seeds = s.Seeds
		}
		for seed := range seeds {
			weights, err := worlWeights(b, s, seed)
			if err != nil {
				return nil, err
			}
			plan, _, err := pl.run(ctx, q, &own, 1, uint64(seed+1), weights, b.Workers)
			if err != nil {
				return nil, err
			}
			if plan.Makespan < x.Plan.Makespan*(1-1e-9) {
				return nil, fmt.Errorf("%s of %s takes %v, and the optimum is %v", pl.name, q.Graph.Name, plan.Makespan, x.Plan.Makespan)
			}
			labels := map[string]string{"graph": fmt.Sprint(k), "policy": pl.name, "seed": fmt.Sprint(seed + 1)}
			rows = append(rows, study.Row{Table: "optimum", Labels: labels, Metric: "gap", Value: 100 * (plan.Makespan/x.Plan.Makespan - 1)})
			hit := 0.0
			if plan.Makespan <= x.Plan.Makespan*(1+1e-9) {
				hit = 1
			}
			rows = append(rows, study.Row{Table: "optimum", Labels: labels, Metric: "optimal", Value: hit})
		}
	}
	return rows, nil
}

// worlCorrelation measures how the distance of random plans to a good one goes along with how much longer they take, in
// the model of the authors' code: no transfers, tasks in index order, no gaps, distance in running time.
func worlCorrelation(ctx context.Context, family string, size [2]int, k, plans int) ([]study.Row, error) {
	var rows []study.Row
	q, err := plan.Generate(family, size[0], size[1], k, false)
	if err != nil {
		return nil, err
	}
	n, m := q.Tasks(), q.Procs()
	src := rng.Stream(uint64(k), "worl-rtgs/pcc")
	e := dag.NewEvaluator(q, nil)
	total := make([]float64, m)
	loads := make([][]float64, plans)
	ends := make([]float64, plans)
	proc := make([]int32, n)
	position := func(proc []int32) []float64 {
		clear(total)
		for i, g := range proc {
			total[g] += q.Exec(int32(i), g)
		}
		at := make([]float64, n)
		for i, g := range proc {
			at[i] = total[g]
		}
		return at
	}
	best := 0
	for j := range plans {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range proc {
			proc[i] = int32(src.IntN(m))
		}
		ends[j] = e.Makespan(proc)
		loads[j] = position(proc)
		if ends[j] < ends[best] {
			best = j
		}
	}
	eft := listsched.New(q, listsched.Options{}).EFTIndex()
	for _, leader := range []struct {
		name string
		at   []float64
		end  float64
	}{{"best of the sample", loads[best], ends[best]}, {"eft-index", position(eft.Proc), eft.Makespan}} {
		var x, y []float64
		for j := range plans {
			if leader.name == "best of the sample" && j == best {
				continue
			}
			d := 0.0
			for i, l := range leader.at {
				d += math.Abs(l - loads[j][i])
			}
			x, y = append(x, d), append(y, math.Abs(ends[j]-leader.end))
		}
		rows = append(rows, study.Row{Table: "pcc", Metric: "pcc", Value: pearson(x, y), Labels: map[string]string{
			"family": family, "tasks": fmt.Sprint(size[0]), "GPUs": fmt.Sprint(size[1]), "graph": fmt.Sprint(k), "leader": leader.name,
		}})
	}
	return rows, nil
}

// pearson is the coefficient of correlation.
func pearson(x, y []float64) float64 {
	var mx, my, xx, yy, xy float64
	n := float64(len(x))
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	for i := range x {
		a, b := x[i]-mx, y[i]-my
		xx, yy, xy = xx+a*a, yy+b*b, xy+a*b
	}
	return xy / math.Sqrt(xx*yy)
}

// worlShape searches with another shape of the spiral.
func worlShape(ctx context.Context, b *study.Bench, s *worlSettings, shape float64, k int) ([]study.Row, error) {
	q, err := plan.Generate("degree-3", 200, 50, k, true)
	if err != nil {
		return nil, err
	}
	heft := listsched.New(q, listsched.Options{}).HEFT(true).Makespan
	var rows []study.Row
	for _, p := range worlPlanners {
		if p.name != "woa" && p.name != "rtgs" && p.name != "worl-rtgs" {
			continue
		}
		for seed := range s.Seeds {
			weights, err := worlWeights(b, s, seed)
			if err != nil {
				return nil, err
			}
			plan, _, err := p.run(ctx, q, s, shape, uint64(seed+1), weights, b.Workers)
			if err != nil {
				return nil, err
			}
			rows = append(rows, study.Row{Table: "b", Metric: "ratio", Value: plan.Makespan / heft, Labels: map[string]string{
				"policy": p.name, "b": fmt.Sprint(shape), "graph": fmt.Sprint(k), "seed": fmt.Sprint(seed + 1),
			}})
		}
	}
	return rows, nil
}
