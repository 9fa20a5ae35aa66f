package worlrtgs

import (
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/plan"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
)

// measureTimes measures the planning time of some planners at a size [tasks, GPUs], and how many plans are evaluated in
// a second.
func measureTimes(ctx context.Context, b *study.Bench, size [2]int) ([]study.Row, error) {
	q, err := synth.FamilyProblem("degree-3", size[0], size[1], 0, true)
	if err != nil {
		return nil, err
	}
	var rows []study.Row
	made := study.RowOf("times", map[string]string{"tasks": fmt.Sprint(size[0]), "GPUs": fmt.Sprint(size[1])})
	row := func(metric string, v float64) { rows = append(rows, made("timing_"+metric, v)) }
	auto := settings{}
	for _, p := range allPlanners {
		if p.name != "heft" && p.name != "woa" && p.name != "rtgs" && p.name != "worl-rtgs" {
			continue
		}
		begin := time.Now()
		if _, err := p.run(ctx, q, &auto, 1, 1, trained{generator: plan.GeneratorWeights}, b.Workers); err != nil {
			return nil, err
		}
		row(p.name, time.Since(begin).Seconds())
	}
	src := rng.Stream(1, "worl-rtgs/times")
	proc := make([]int32, q.Tasks())
	for i := range proc {
		proc[i] = int32(src.IntN(q.Procs()))
	}
	e := dag.NewEvaluator(q, nil)
	row("evaluations", perSecond(func() { e.Makespan(proc) }))
	plain := newPlainLoop(q)
	if got, want := plain.makespan(proc), e.Makespan(proc); math.Abs(got-want) > 1e-9*want {
		return nil, fmt.Errorf("the plain loop finds %v, the evaluator %v", got, want)
	}
	row("plain", perSecond(func() { plain.makespan(proc) }))
	e.Makespan(proc)
	row("moves", perSecond(func() { e.Move(int32(src.IntN(q.Tasks())), int32(src.IntN(q.Procs()))) }))
	return rows, nil
}

// perSecond returns how often fn runs in a second, measured over at least a fifth of a second.
func perSecond(fn func()) float64 {
	for n := 1; ; n *= 2 {
		begin := time.Now()
		for range n {
			fn()
		}
		if d := time.Since(begin); d > 200*time.Millisecond {
			return float64(n) / d.Seconds()
		}
	}
}

// plainLoop evaluates plans in the simplest way, with maps of tasks. It is the baseline that dag.Evaluator is measured
// against.
type plainLoop struct {
	q       *dag.Problem
	parents map[int][]dag.Link
	order   []int
}

func newPlainLoop(q *dag.Problem) *plainLoop {
	l := &plainLoop{q: q, parents: map[int][]dag.Link{}}
	for _, i := range q.Graph.Order() {
		l.order = append(l.order, int(i))
		l.parents[int(i)] = q.Graph.Preds(i)
	}
	return l
}

func (l *plainLoop) makespan(proc []int32) float64 {
	finish, avail := map[int]float64{}, map[int32]float64{}
	makespan := 0.0
	for _, i := range l.order {
		start := avail[proc[i]]
		for _, p := range l.parents[i] {
			start = max(start, finish[int(p.Task)]+p.Bytes/l.q.Platform.Bandwidth(int(proc[p.Task]), int(proc[i])))
		}
		finish[i] = start + l.q.Exec(int32(i), proc[i])
		avail[proc[i]] = finish[i]
		makespan = max(makespan, finish[i])
	}
	return makespan
}
