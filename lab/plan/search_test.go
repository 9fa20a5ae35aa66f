package plan

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"clustergym/agents/woa"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
)

func TestSearchesStartFromHEFT(t *testing.T) {
	c := DefaultConfig()
	c.Generate, c.Policies, c.Budget = "degree-3:40x8", append([]string{NoisyPolicy}, SearchPolicies...), "2x3"
	all, err := runAll(c)
	if err != nil || len(all) != len(SearchPolicies)+1 {
		t.Fatalf("%d plans, %v", len(all), err)
	}
	heft := listsched.New(all[0].Problem, listsched.Options{RankMean: dag.Pairs}).HEFT(true).Makespan
	for _, r := range all {
		if r.Plan.Makespan > heft {
			t.Errorf("%s: %v s, and HEFT takes %v s", r.Document.Policy, r.Plan.Makespan, heft)
		}
	}
	again, err := runAll(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Start = "random"
	random, err := runAll(c)
	if err != nil {
		t.Fatal(err)
	}
	for k, r := range all {
		if !slices.Equal(again[k].Plan.Proc, r.Plan.Proc) || again[k].Plan.Makespan != r.Plan.Makespan {
			t.Errorf("%s: the same seed gives another plan", r.Document.Policy)
		}
	}
	// Three random plans and two iterations are no match for HEFT.
	if got := random[1].Plan.Makespan; got <= heft {
		t.Errorf("woa from random plans takes %v s, and HEFT %v s", got, heft)
	}
}

func TestBudgetsShrinkWithSize(t *testing.T) {
	last := math.MaxInt
	for _, n := range []int{10, 100, 1000, 3000, 10_000, 100_000} {
		i, w := AutoBudget("worl-rtgs", n, 500)
		if i*w > last || i < 1 || w < 2 {
			t.Errorf("%d tasks: %dx%d", n, i, w)
		}
		if ai, aw := AutoBudget("woa", n, 500); ai*aw < i*w {
			t.Errorf("%d tasks: woa %dx%d, and worl-rtgs, whose plans cost more, %dx%d", n, ai, aw, i, w)
		}
		last = i * w
	}
	if i, w := AutoBudget("worl-rtgs", 10, 2); i != 100 || w != 30 {
		t.Errorf("a small graph: %dx%d, want 100x30", i, w)
	}
}

// The weights in the program fit the default configuration's network, and every call makes a policy of its own.
func TestTheProgramContainsAGenerator(t *testing.T) {
	policies := GeneratorPolicies(DefaultGeneratorConfig(), GeneratorWeights)
	a, err := policies()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := policies(); err != nil || a == b {
		t.Errorf("the second policy: the first one again, or %v", err)
	}
	if _, err := GeneratorPolicies(DefaultGeneratorConfig(), GeneratorWeights[:200])(); err == nil {
		t.Error("half a file of weights is taken")
	}
	if _, err := GeneratorPolicies(DefaultGeneratorConfig(), bytes.Repeat([]byte{0}, len(GeneratorWeights)))(); err ==
		nil {
		t.Error("zeros are taken for weights")
	}
}

// heft-noise is HEFT without noise, and with it makes as many plans as a search of the same budget.
func TestNoisyHEFTIsAPolicy(t *testing.T) {
	c := DefaultConfig()
	c.Generate, c.Policies, c.Budget, c.Noise = "degree-3:40x8", []string{"heft", NoisyPolicy}, "20x10", 0
	still, err := runAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if still[0].Plan.Makespan != still[1].Plan.Makespan {
		t.Errorf("without noise %v, HEFT's is %v", still[1].Plan.Makespan, still[0].Plan.Makespan)
	}
	c.Noise = DefaultNoise
	noisy, err := runAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if got, heft := noisy[1].Plan.Makespan, noisy[0].Plan.Makespan; got >= heft {
		t.Errorf("the best of %d noisy plans takes %v, HEFT %v", Plans(20, 10), got, heft)
	}
	for _, p := range []string{"whale-ranks", "worl-ranks"} {
		q := noisy[0].Problem
		w := SearchConfig(p)
		w.Iterations, w.Whales = 3, 4
		r, err := woa.Search(context.Background(), q, w, nil, 1, 1,
			woa.Hooks{Policy: GeneratorPolicies(DefaultGeneratorConfig(), GeneratorWeights)})
		if err != nil || r.Plans != Plans(3, 4) {
			t.Errorf("%s: %v, %v", p, r, err)
		}
	}
	c.Noise = -1
	if err := c.Validate(); err == nil {
		t.Error("negative noise")
	}
}
