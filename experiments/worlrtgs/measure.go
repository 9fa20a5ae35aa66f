package worlrtgs

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
	"clustergym/simulator/dag/synth"
)

// comparePlans plans q with every planner and seed. It returns rows of table with the labels graph, once more in
// table-all if these are all planners, and rows of ranks among the six.
func comparePlans(ctx context.Context, b *study.Bench, s *settings, table string, q *dag.Problem, planners []planner,
	every bool, graph map[string]string) ([]study.Row, error) {
	var rows []study.Row
	row := func(table, metric string, v float64, more map[string]string) {
		labels := maps.Clone(graph)
		maps.Copy(labels, more)
		rows = append(rows, study.Row{Table: table, Labels: labels, Metric: metric, Value: v})
	}
	tables := []string{table}
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
			weights, err := weightsFor(b, s, seed)
			if err != nil {
				return nil, err
			}
			plan, err := p.run(ctx, q, s, 1, uint64(seed+1), weights, b.Workers)
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
	var six []float64
	for _, name := range sixPlanners {
		six = append(six, means[slices.IndexFunc(planners, func(p planner) bool { return p.name == name })])
	}
	for i, r := range ranks(six) {
		row(table+"-six", "rank", r, map[string]string{"policy": sixPlanners[i]})
	}
	return rows, nil
}

// ranks returns the rank of each value, 1 for the smallest. Equal values share the mean of their ranks.
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

// compareWithOptimum draws graph k of 6 to 12 tasks on 2 to 4 processors and compares plans with its optimum.
func compareWithOptimum(ctx context.Context, b *study.Bench, s *settings, k int) ([]study.Row, error) {
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
	for _, pl := range allPlanners {
		if pl.part {
			continue
		}
		seeds := 1
		if pl.drawn {
			seeds = s.Seeds
		}
		for seed := range seeds {
			weights, err := weightsFor(b, s, seed)
			if err != nil {
				return nil, err
			}
			plan, err := pl.run(ctx, q, &own, 1, uint64(seed+1), weights, b.Workers)
			if err != nil {
				return nil, err
			}
			if plan.Makespan < x.Plan.Makespan*(1-1e-9) {
				return nil, fmt.Errorf("%s of %s takes %v, and the optimum is %v", pl.name, q.Graph.Name, plan.Makespan,
					x.Plan.Makespan)
			}
			labels := map[string]string{"graph": fmt.Sprint(k), "policy": pl.name, "seed": fmt.Sprint(seed + 1)}
			row := study.RowOf("optimum", labels)
			hit := 0.0
			if plan.Makespan <= x.Plan.Makespan*(1+1e-9) {
				hit = 1
			}
			rows = append(rows, row("gap", 100*(plan.Makespan/x.Plan.Makespan-1)), row("optimal", hit))
		}
	}
	return rows, nil
}

// correlate measures how the distance of random plans to a good plan correlates with how much longer they take. The
// model is that of the authors' code: no transfers, tasks in index order, no gaps, distance in running time.
func correlate(ctx context.Context, family string, size [2]int, k, plans int) ([]study.Row, error) {
	var rows []study.Row
	q, err := synth.FamilyProblem(family, size[0], size[1], k, false)
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
			"family": family, "tasks": fmt.Sprint(size[0]), "GPUs": fmt.Sprint(size[1]), "graph": fmt.Sprint(k),
			"leader": leader.name,
		}})
	}
	return rows, nil
}

// pearson returns Pearson's coefficient of correlation.
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

// searchWithShape plans graph k with every search whose spiral has the given shape b.
func searchWithShape(ctx context.Context, b *study.Bench, s *settings, shape float64, k int) ([]study.Row, error) {
	q, err := synth.FamilyProblem("degree-3", 200, 50, k, true)
	if err != nil {
		return nil, err
	}
	heft := listsched.New(q, listsched.Options{}).HEFT(true).Makespan
	var rows []study.Row
	for _, p := range allPlanners {
		if p.name != "woa" && p.name != "rtgs" && p.name != "worl-rtgs" {
			continue
		}
		for seed := range s.Seeds {
			weights, err := weightsFor(b, s, seed)
			if err != nil {
				return nil, err
			}
			plan, err := p.run(ctx, q, s, shape, uint64(seed+1), weights, b.Workers)
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
