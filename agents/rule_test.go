package agents_test

import (
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

var update = flag.Bool("update", false, "write python/tests/choices.json")

// logs returns logits of probabilities, moved by a constant.
func logs(p ...float64) []float64 {
	x := make([]float64, len(p))
	for k, v := range p {
		x[k] = math.Log(v) + 7
	}
	return x
}

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func TestRulesByHand(t *testing.T) {
	all := []bool{true, true, true}
	for _, c := range []struct {
		name          string
		kind          agents.ScoreKind
		x             []float64
		legal         []bool
		noop          int
		share, argMax int
	}{
		{"0.45 to wait against 0.3 and 0.25", agents.Logits, logs(.45, .3, .25), all, 0, 1, 0},
		{"the same as probabilities", agents.Probabilities, []float64{.45, .3, .25}, all, 0, 1, 0},
		{"values are no shares", agents.Values, []float64{.45, .3, .25}, all, 0, 0, 0},
		{"0.55 to wait", agents.Logits, logs(.3, .15, .55), all, 2, 2, 2},
		{"half to wait starts", agents.Probabilities, []float64{.25, .25, .5}, all, 2, 0, 2},
		{"one other legal action", agents.Logits, logs(.3, .45, .25), []bool{true, true, false}, 1, 1, 1},
		{"illegal actions have no share", agents.Probabilities, []float64{.3, .3, .4}, []bool{true, false, true}, 2, 2, 2},
		{"the wait is illegal", agents.Logits, logs(.25, .3, .45), []bool{true, true, false}, 2, 1, 1},
		{"only the wait is legal", agents.Logits, logs(.5, .4, .1), []bool{false, false, true}, 2, 2, 2},
		{"the first among equals", agents.Logits, logs(.3, .3, .4), all, 2, 0, 2},
		{"nothing waits", agents.Logits, logs(.45, .3, .25), all, -1, 0, 0},
		{"none is legal", agents.Logits, logs(.45, .3, .25), make([]bool, 3), 0, agents.NoneLegal, agents.NoneLegal},
		{"NaN", agents.Logits, []float64{0, nan, 0}, all, 0, agents.NotSane, agents.NotSane},
		{"NaN where it is illegal", agents.Logits, []float64{0, nan, 1}, []bool{true, false, true}, 0, 2, 2},
		{"below 0", agents.Probabilities, []float64{.5, -.1, .6}, all, 0, agents.NotSane, agents.NotSane},
		{"no bound", agents.Probabilities, []float64{.5, inf, .6}, all, 0, agents.NotSane, agents.NotSane},
		{"masked by the model", agents.Logits, []float64{-inf, 3, 2.5}, all, 2, 1, 1},
		{"all others masked by the model", agents.Logits, []float64{-inf, -inf, 2.5}, all, 2, 2, 2},
		{"the wait masked by the model", agents.Logits, []float64{1, 3, -inf}, all, 2, 1, 1},
		{"the wait has no probability", agents.Probabilities, []float64{.4, .6, 0}, all, 2, 1, 1},
	} {
		for _, r := range []struct {
			rule agents.Rule
			want int
		}{{agents.ByShare, c.share}, {"", c.share}, {agents.ByArgMax, c.argMax}} {
			if got := agents.Choose(r.rule, c.kind, c.x, c.legal, c.noop, nil); got != r.want {
				t.Errorf("%s: rule %q takes action %d, want %d", c.name, r.rule, got, r.want)
			}
			small := make([]float32, len(c.x))
			for k, v := range c.x {
				small[k] = float32(v)
			}
			if got := agents.Choose(r.rule, c.kind, small, c.legal, c.noop, nil); got != r.want {
				t.Errorf("%s: rule %q takes action %d of float32, want %d", c.name, r.rule, got, r.want)
			}
		}
	}
}

func TestSampledActionsHaveTheirShares(t *testing.T) {
	seed := testseed.Or(43)
	t.Logf("seed %d", seed)
	src := rng.Stream(seed, "test/draws")
	legal, p := []bool{true, false, true, true}, []float64{.2, .5, .1, .2}
	const n = 20000
	for kind, x := range map[agents.ScoreKind][]float64{agents.Logits: logs(p...), agents.Probabilities: p} {
		var count [4]int
		for range n {
			count[agents.Choose(agents.BySample, kind, x, legal, 0, src)]++
		}
		for k, want := range []float64{.4, 0, .2, .4} {
			if got := float64(count[k]) / n; math.Abs(got-want) > 0.02 { // more than five standard deviations
				t.Errorf("%s: action %d has a share of %v, want %v", kind, k, got, want)
			}
		}
	}
	for _, bad := range [][]float64{{-inf, 0, -inf, -inf}, {inf, 0, 1, 1}, {nan, 0, 0, 0}} {
		if got := agents.Choose(agents.BySample, agents.Logits, bad, legal, 0, src); got != agents.NotSane {
			t.Errorf("logits %v: drew %d", bad, got)
		}
	}
	if got := agents.Choose(agents.BySample, agents.Values, []float64{1, 2, 3, 2}, legal, 0, nil); got != 2 {
		t.Errorf("of values %d was taken, want the largest", got)
	}
}

func TestWhichActionDoesNothing(t *testing.T) {
	for _, c := range []struct {
		spec env.Spec
		want int
	}{
		{env.Spec{Action: env.ActionSpec{Sizes: []int{3}}, NoOp: 2}, 2},
		{env.Spec{Action: env.ActionSpec{Sizes: []int{3}}, NoOp: -1}, -1},
		{env.Spec{Action: env.ActionSpec{Sizes: []int{3}}, NoOp: 3}, -1},
		{env.Spec{Action: env.ActionSpec{Sizes: []int{3, 2}}, NoOp: 2}, -1},
		{env.Spec{Action: env.ActionSpec{Sizes: []int{3}, Low: []float32{0}, High: []float32{1}}, NoOp: 2}, -1},
	} {
		if got := agents.NoOp(c.spec); got != c.want {
			t.Errorf("%+v: %d, want %d", c.spec, got, c.want)
		}
	}
}

func TestChoosingDoesNotAllocate(t *testing.T) {
	src, x, legal := rng.Stream(1, "test"), []float32{1, 2, 3}, []bool{true, true, true}
	for _, r := range agents.Rules() {
		if n := testing.AllocsPerRun(100, func() { agents.Choose(r, agents.Logits, x, legal, 2, src) }); n != 0 {
			t.Errorf("%s allocates %v times", r, n)
		}
	}
}

// choices are decisions that clustergym.decide must repeat.
type choices struct {
	Seed  uint64   `json:"seed"`
	Cases []choice `json:"cases"`
}

type choice struct {
	Logits []float32           `json:"logits"`
	Legal  []bool              `json:"legal"`
	NoOp   int                 `json:"noop"`
	Draw   float64             `json:"draw"` // the number in [0, 1) by which sample decides
	Want   map[agents.Rule]int `json:"want"`
}

// fixed is a source whose next Float64 is u.
type fixed float64

func (u fixed) Uint64() uint64 { return uint64(float64(u) * (1 << 53)) }

// The helper of the Python package chooses as Choose does, on random logits that both tests read.
func TestTheChoicesThatPythonRepeats(t *testing.T) {
	const seed = 44
	t.Logf("seed %d", seed)
	src := rng.Stream(seed, "test/choices")
	want := choices{Seed: seed}
	counts := map[bool]int{}
	for range 200 {
		n := 2 + src.IntN(9)
		c := choice{NoOp: src.IntN(n+1) - 1, Draw: math.Floor(src.Float64()*(1<<20)) / (1 << 20), Want: map[agents.Rule]int{}}
		for range n {
			c.Logits = append(c.Logits, float32(math.Round(64*src.NormFloat64())/64))
			c.Legal = append(c.Legal, src.IntN(4) > 0)
		}
		c.Legal[src.IntN(n)] = true
		if c.NoOp >= 0 {
			c.Logits[c.NoOp] += 1.5
		}
		for _, r := range agents.Rules() {
			c.Want[r] = agents.Choose(r, agents.Logits, c.Logits, c.Legal, c.NoOp, rand.New(fixed(c.Draw)))
		}
		counts[c.Want[agents.ByShare] == c.Want[agents.ByArgMax]]++
		want.Cases = append(want.Cases, c)
	}
	if counts[true] < 20 || counts[false] < 20 {
		t.Errorf("%d choices are the same by both rules and %d differ: the test sees little", counts[true], counts[false])
	}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	name := filepath.Join("..", "python", "tests", "choices.json")
	if *update {
		if err := os.WriteFile(name, b, 0o644); err != nil { //nolint:gosec // for all
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != string(b) {
		t.Errorf("%s has other choices (%v): go test ./agents -run TestTheChoicesThatPythonRepeats -update", name, err)
	}
}
