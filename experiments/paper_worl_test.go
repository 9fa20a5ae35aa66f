package experiments

import (
	"context"
	"math"
	"slices"
	"testing"

	"clustergym/agents/listsched"
	"clustergym/env/dag"
	"clustergym/experiments/study"
)

func TestRanksShareTheirPlaces(t *testing.T) {
	if got := ranks([]float64{3, 1, 3, 2, 9}); !slices.Equal(got, []float64{3.5, 1, 3.5, 2, 5}) {
		t.Errorf("ranks %v", got)
	}
}

func TestPearsonByHand(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{{[]float64{1, 2, 3}, []float64{2, 4, 6}, 1}, {[]float64{1, 2, 3}, []float64{3, 2, 1}, -1}, {[]float64{-1, 0, 1}, []float64{1, -2, 1}, 0}} {
		if got := pearson(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v and %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}

// What the study is about, on a few graphs and with a small budget: the trained generator makes shorter plans than plain
// whale optimisation and the greedy generator, and beginning with HEFT it is never worse than that.
func TestWORLRTGSBeatsItsKin(t *testing.T) {
	s := worlSettings{Iterations: 5, Whales: 6}
	sum := map[string]float64{}
	for k := range 3 {
		q, err := worlProblem("degree-3", 60, 20, k, true)
		if err != nil {
			t.Fatal(err)
		}
		heft := listsched.New(q, listsched.Options{}).HEFT(true).Makespan
		for _, p := range worlPlanners {
			if p.name != "woa" && p.name != "rtgs" && p.name != "worl-rtgs" && p.name != "worl-rtgs+heft" {
				continue
			}
			plan, _, err := p.run(context.Background(), q, &s, 1, 1, worlLearnt{generator: generatorWeights}, 2)
			if err != nil {
				t.Fatal(err)
			}
			if err := dag.Check(q, plan, true); err != nil {
				t.Error(err)
			}
			sum[p.name] += math.Log(plan.Makespan/heft) / 3
			if p.start == "heft" && plan.Makespan > heft {
				t.Errorf("%s: %v is above HEFT's %v", p.name, plan.Makespan, heft)
			}
		}
	}
	t.Logf("makespan over HEFT's, logarithms: %v", sum)
	if sum["worl-rtgs"] >= sum["woa"] || sum["worl-rtgs"] >= sum["rtgs"] || sum["worl-rtgs"] > math.Log(1.05) {
		t.Errorf("%v", sum)
	}
}

func TestBothFormsOfTheStudyAreWellMade(t *testing.T) {
	for _, quick := range []bool{true, false} {
		p := study.Plan{Quick: quick, Workers: 1}
		cells, err := worlCells(p)
		if err != nil || len(cells) < 40 || len(worlNotes(p)) == 0 {
			t.Errorf("quick %v: %d cells, %v", quick, len(cells), err)
		}
	}
}

// The weights in the program are of the network that the configuration says.
func TestTheProgramCarriesAGenerator(t *testing.T) {
	if _, err := generatorPolicies(DefaultGeneratorConfig(), generatorWeights)(); err != nil {
		t.Fatal(err)
	}
	if _, err := generatorPolicies(DefaultGeneratorConfig(), generatorWeights[:200])(); err == nil {
		t.Error("half a file of weights is taken")
	}
}

func TestTrainingAGeneratorRepeatsForAnyNumberOfWorkers(t *testing.T) {
	c := DefaultGeneratorConfig()
	c.Steps, c.Judge, c.Place.Tasks, c.Place.GPUs, c.Learner.LearningStarts = 1500, 4, 20, 10, 500
	var first *TrainedGenerator
	for _, workers := range []int{1, 3} {
		g, err := TrainGenerator(context.Background(), c, 3, workers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = g
		} else if !slices.Equal(g.Weights, first.Weights) || !slices.Equal(g.Ratios, first.Ratios) {
			t.Errorf("%d workers learn something else: %v, want %v", workers, g.Ratios, first.Ratios)
		}
	}
}

func TestBudgetsShrinkWithSize(t *testing.T) {
	last := math.MaxInt
	for _, n := range []int{10, 100, 1000, 3000, 10_000, 100_000} {
		i, w := autoBudget("worl-rtgs", n, 500)
		if i*w > last || i < 1 || w < 2 {
			t.Errorf("%d tasks: %dx%d", n, i, w)
		}
		last = i * w
	}
}
