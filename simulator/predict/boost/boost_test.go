package boost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

var nan = float32(math.NaN())

// stream returns a generator, and prints its seed.
func stream(t testing.TB, name string) *rand.Rand {
	seed := testseed.Or(1)
	t.Logf("seed %d", seed)
	return rng.Stream(seed, "boost/test/"+name)
}

// mustFit fits features x0, x1, … with one worker.
func mustFit(t testing.TB, rows []float32, target, levels []float64, o Options) *Model {
	t.Helper()
	m, err := Fit(context.Background(), letters(len(rows)/len(target)), rows, target, levels, o, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func letters(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("x%d", i))
	}
	return names
}

func predict(m *Model, row ...float32) []float64 {
	dst := make([]float64, len(m.Levels()))
	m.Predict(row, dst)
	return dst
}

// stump is the setting under which one tree of two leaves fits all.
var stump = Options{Trees: 1, Leaves: 2, Bins: 2, MinLeaf: 1, Rate: 1, RowShare: 1, ColumnShare: 1}

// Level 0.3 of the targets 0, 0, 10, 10 stands at place 0.3·5 = 1.5: 0. Two targets are at most that, so G = 0.7·2 -
// 0.3·2 = 0.8 and G²/n = 0.16. After the split between 1 and 2, it is 1.4²/2 + 0.6²/2 = 1.16.
func TestAStumpIsAsByHand(t *testing.T) {
	m := mustFit(t, []float32{2, 1, 2, 1}, []float64{10, 0, 10, 0}, []float64{0.3}, stump)
	want := ensemble{
		roots:  []int32{0},
		nodes:  []node{{threshold: 1.5, child: [2]int32{^0, ^1}}},
		values: []float64{0, 10},
	}
	if !reflect.DeepEqual(m.parts[0], want) {
		t.Errorf("got %+v, want %+v", m.parts[0], want)
	}
	if g := m.Gains()[0]; math.Abs(g-1) > 1e-12 {
		t.Errorf("the gain is %v, want 1", g)
	}
	if got := predict(m, 1.5); got[0] != 0 {
		t.Errorf("at the threshold: %v", got)
	}
	if got := predict(m, 1.6); got[0] != 10 {
		t.Errorf("above the threshold: %v", got)
	}
	if m.Names()[0] != "x0" || m.Levels()[0] != 0.3 {
		t.Errorf("names %q and levels %v", m.Names(), m.Levels())
	}
}

// normal are the standard normal distribution's quantiles at the levels five.
var normal = []float64{-1.2815515655446004, -0.6744897501960817, 0, 0.6744897501960817, 1.2815515655446004}

func TestLossesAreNearTheBestPossible(t *testing.T) {
	raced.Alone(t)
	const fitted, rest = 6000, 6000
	src := stream(t, "known")
	var rows []float32
	var target []float64
	best := make([][]float64, len(five)) // predictions
	for range fitted + rest {
		a, b, c := src.Float64(), src.Float64(), src.Float64()
		middle, spread := 4*a*a, 0.5+c
		if b > 0.4 {
			middle += 2
		}
		rows = append(rows, float32(a), float32(b), float32(c))
		target = append(target, middle+spread*src.NormFloat64())
		for i, z := range normal {
			best[i] = append(best[i], middle+spread*z)
		}
	}
	o := DefaultOptions()
	o.Leaves, o.MinLeaf = 8, 50
	m := mustFit(t, rows[:3*fitted], target[:fitted], five, o)
	got := predictAll(m, rows[3*fitted:])
	for i, level := range five {
		constant := quantile(slices.Clone(target[:fitted]), level)
		fit := pinball(level, quantiles(got, i), target[fitted:])
		least := pinball(level, best[i][fitted:], target[fitted:])
		flat := pinball(level, slices.Repeat([]float64{constant}, rest), target[fitted:])
		t.Logf("level %v: loss %.4f, a constant's %.4f, the best %.4f", level, fit, flat, least)
		if fit > 1.06*least || fit > 0.8*flat {
			t.Errorf("level %v: loss %v, a constant's %v, the best possible %v", level, fit, flat, least)
		}
	}
}

func TestQuantilesAscend(t *testing.T) {
	src := stream(t, "ascend")
	rows, target := noise(src, 300, 4)
	o := DefaultOptions()
	o.MinLeaf = 2 // nothing but noise, so the ensembles cross
	m := mustFit(t, rows, target, five, o)
	crossed := false
	for range 2000 {
		row, _ := noise(src, 1, 4)
		raw := make([]float64, len(m.parts))
		for i := range m.parts {
			raw[i] = m.parts[i].predict(row)
		}
		got := predict(m, row...)
		if !slices.IsSorted(got) {
			t.Fatalf("quantiles %v of %v", got, row)
		}
		crossed = crossed || !slices.IsSorted(raw)
		slices.Sort(raw)
		if !slices.Equal(raw, got) {
			t.Fatalf("quantiles %v of ensembles %v", got, raw)
		}
	}
	if !crossed {
		t.Error("the ensembles never cross, so the test shows nothing")
	}
}

// noise makes rows of small numbers, halves and unknown values, and targets of which some are equal.
func noise(src *rand.Rand, n, features int) (rows []float32, target []float64) {
	for range n {
		for f := range features {
			switch {
			case src.IntN(5) == 0:
				rows = append(rows, nan)
			case f%2 == 0:
				rows = append(rows, float32(src.IntN(6))/2)
			default:
				rows = append(rows, float32(src.NormFloat64()))
			}
		}
		target = append(target, math.Round(8*src.NormFloat64())/4)
	}
	return rows, target
}

func TestUnknownValuesGoToTheBetterSide(t *testing.T) {
	for _, c := range []struct {
		name         string
		rows         []float32
		target       []float64
		row          float32
		want         float64
		wantOfOthers float64
	}{
		{"as the low ones", []float32{1, nan, 1, nan, 2, 2, 2}, []float64{0, 0, 0, 0, 10, 10, 10}, nan, 0, 10},
		{"as the high ones", []float32{1, 1, 1, 2, nan, 2, nan, nan}, []float64{0, 0, 0, 10, 10, 10, 10, 10}, nan, 10, 0},
		{"as none", []float32{1, nan, 2, nan, 1, 2}, []float64{0, 10, 0, 10, 0, 0}, 7, 0, 0},
		{"never seen, most are low", []float32{1, 1, 1, 2, 2}, []float64{0, 0, 0, 10, 10}, nan, 0, 10},
		{"never seen, most are high", []float32{1, 1, 2, 2, 2}, []float64{0, 0, 10, 10, 10}, nan, 10, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustFit(t, c.rows, c.target, []float64{0.25}, stump)
			if got := predict(m, c.row); got[0] != c.want {
				t.Errorf("%v gives %v, want %v: %+v", c.row, got[0], c.want, m.parts[0])
			}
			for i, x := range c.rows {
				if got := predict(m, x); got[0] != c.target[i] {
					t.Errorf("%v gives %v, want %v: %+v", x, got[0], c.target[i], m.parts[0])
				}
			}
		})
	}
}

func TestAConstantTargetNeedsNoTree(t *testing.T) {
	src := stream(t, "constant")
	rows, target := noise(src, 500, 3)
	for i := range target {
		target[i] = 0.1 // not exact in binary
	}
	for _, share := range []float64{1, 0.5} {
		o := DefaultOptions()
		o.RowShare = share
		m := mustFit(t, rows, target, five, o)
		for i, e := range m.parts {
			if len(e.nodes) > 0 || e.start != 0.1 {
				t.Errorf("level %v: %d splits, start %v", five[i], len(e.nodes), e.start)
			}
		}
	}
}

func TestSmallTables(t *testing.T) {
	o := DefaultOptions()
	o.MinLeaf, o.Rate = 1, 1
	if got := predict(mustFit(t, []float32{1, nan}, []float64{3}, five, o), nan, 2); !slices.Equal(got,
		[]float64{3, 3, 3, 3, 3}) {
		t.Errorf("one row gives %v", got)
	}
	if got := predict(mustFit(t, []float32{nan, nan, nan}, []float64{1, 1, 4}, []float64{0.5}, o), 0); got[0] != 1 {
		t.Errorf("a feature that is never known gives %v", got)
	}
	// With more bins than values, each value has its own leaf.
	m := mustFit(t, []float32{1, 2, 3, 4, 1, 2, 3, 4}, []float64{5, -1, 7, 2, 5, -1, 7, 2}, []float64{0.5}, o)
	for x, want := range map[float32]float64{1: 5, 2: -1, 3: 7, 4: 2} {
		if got := predict(m, x); math.Abs(got[0]-want) > 1e-12 {
			t.Errorf("%v gives %v, want %v", x, got[0], want)
		}
	}
	inf := float32(math.Inf(1))
	m = mustFit(t, []float32{-inf, -inf, 0, 0, inf, inf}, []float64{1, 1, 2, 2, 3, 3}, []float64{0.5}, o)
	for x, want := range map[float32]float64{-inf: 1, 0: 2, inf: 3} {
		if got := predict(m, x); math.Abs(got[0]-want) > 1e-12 {
			t.Errorf("%v gives %v, want %v", x, got[0], want)
		}
	}
}

func TestWorkersChangeNothing(t *testing.T) {
	rows, target := noise(stream(t, "workers"), 1000, 6)
	o := DefaultOptions()
	o.RowShare, o.ColumnShare, o.Trees = 0.7, 0.5, 20
	var first []byte
	for _, workers := range []int{1, 4, 9} {
		m, err := Fit(context.Background(), letters(6), rows, target, five, o, workers)
		if err != nil {
			t.Fatal(err)
		}
		if b := m.AppendBinary(nil); first == nil {
			first = b
		} else if !bytes.Equal(first, b) {
			t.Errorf("%d workers give another model", workers)
		}
	}
}

func TestALevelDoesNotDependOnTheOthers(t *testing.T) {
	rows, target := noise(stream(t, "levels"), 500, 4)
	o := DefaultOptions()
	o.RowShare = 0.5
	all := mustFit(t, rows, target, five, o)
	alone := mustFit(t, rows, target, five[3:4], o)
	if !reflect.DeepEqual(all.parts[3], alone.parts[0]) {
		t.Error("level 0.75 alone has another ensemble")
	}
}

func TestSharesDrawBySeed(t *testing.T) {
	rows, target := noise(stream(t, "shares"), 500, 5)
	for _, c := range []struct{ rows, columns float64 }{{0.5, 1}, {1, 0.4}} {
		o := DefaultOptions()
		o.RowShare, o.ColumnShare, o.Trees = c.rows, c.columns, 10
		one := mustFit(t, rows, target, []float64{0.5}, o).AppendBinary(nil)
		again := mustFit(t, rows, target, []float64{0.5}, o).AppendBinary(nil)
		o.Seed++
		other := mustFit(t, rows, target, []float64{0.5}, o).AppendBinary(nil)
		if !bytes.Equal(one, again) || bytes.Equal(one, other) {
			t.Errorf("%+v: the same seed gives the same model: %v, another seed too: %v", c, bytes.Equal(one, again),
				bytes.Equal(one, other))
		}
	}
	// With one column a tree and one split a tree, gains appear in as many features as there are trees at most.
	o := stump
	o.Trees, o.ColumnShare, o.MinLeaf, o.Bins = 2, 0.01, 20, 255
	used := 0
	for _, g := range mustFit(t, rows, target, []float64{0.5}, o).Gains() {
		if g > 0 {
			used++
		}
	}
	if used < 1 || used > 2 {
		t.Errorf("two trees of one column each use %d features", used)
	}
}

func TestGainsNameTheFeaturesThatMatter(t *testing.T) {
	src := stream(t, "gains")
	var rows []float32
	var target []float64
	for range 2000 {
		a, b := src.Float32(), src.Float32()
		rows = append(rows, a, 7, b)
		target = append(target, float64(5*b+a)+0.1*src.NormFloat64())
	}
	g := mustFit(t, rows, target, five, DefaultOptions()).Gains()
	if !(g[2] > 2*g[0] && g[0] > 0 && g[1] == 0) {
		t.Errorf("gains %v, want most for x2, some for x0, none for x1", g)
	}
}

func TestPredictAllocatesNothing(t *testing.T) {
	rows, target := noise(stream(t, "allocs"), 500, 4)
	m := mustFit(t, rows, target, five, DefaultOptions())
	dst := make([]float64, len(five))
	if n := testing.AllocsPerRun(100, func() { m.Predict(rows[:4], dst) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPredictRefusesRowsOfAnotherLength(t *testing.T) {
	m := mustFit(t, []float32{1, 2}, []float64{1, 2}, []float64{0.5}, stump)
	defer func() {
		if text := fmt.Sprint(recover()); text != "boost: a row of 2 values and 1 quantiles, want 1 and 1" {
			t.Errorf("got %q", text)
		}
	}()
	predict(m, 1, 2)
}

func TestCancellationEndsAFit(t *testing.T) {
	rows, target := noise(stream(t, "cancel"), 2000, 4)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Fit(ctx, letters(4), rows, target, five, DefaultOptions(), 2); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// In the midst of a fit, too: the trees would take hours.
	o := DefaultOptions()
	o.Trees, o.RowShare = maxTrees, 0.99
	late := &lateContext{Context: context.Background(), left: 500}
	if _, err := Fit(late, letters(4), rows, target, five[:1], o, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if late.left < -5 {
		t.Errorf("%d more looks after the end", -late.left)
	}
}

// lateContext ends after it has been asked so often. It is for one worker.
type lateContext struct {
	context.Context
	left int
}

func (c *lateContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestFitRefuses(t *testing.T) {
	for _, c := range []struct {
		names  []string
		rows   []float32
		target []float64
		levels []float64
		want   string
	}{
		{nil, nil, []float64{1}, five, "boost: 0 features, want 1 to 1024"},
		{[]string{"a", ""}, []float32{1, 2}, []float64{1}, five, "boost: the name of feature 1 has 0 bytes, want 1 to 256"},
		{[]string{"a", "a"}, []float32{1, 2}, []float64{1}, five, `boost: two features have the name "a"`},
		{[]string{"a"}, nil, nil, five, "boost: 0 values of 1 features for 0 targets, want a row of values for each target"},
		{[]string{"a"}, []float32{1, 2}, []float64{1}, five,
			"boost: 2 values of 1 features for 1 targets, want a row of values for each target"},
		{[]string{"a"}, []float32{1, 2}, []float64{1, math.NaN()}, five, "boost: target 1 is NaN, want a finite number"},
		{[]string{"a"}, []float32{1}, []float64{math.Inf(1)}, five, "boost: target 0 is +Inf, want a finite number"},
		{[]string{"a"}, []float32{1}, []float64{1}, nil, "boost: 0 levels, want 1 to 256"},
		{[]string{"a"}, []float32{1}, []float64{1}, []float64{0.5, 0.5},
			"boost: level 1 is 0.5, want ascending levels between 0 and 1"},
		{[]string{"a"}, []float32{1}, []float64{1}, []float64{1},
			"boost: level 0 is 1, want ascending levels between 0 and 1"},
		{[]string{"a"}, []float32{1}, []float64{1}, []float64{math.NaN()},
			"boost: level 0 is NaN, want ascending levels between 0 and 1"},
	} {
		_, err := Fit(context.Background(), c.names, c.rows, c.target, c.levels, DefaultOptions(), 1)
		if fmt.Sprint(err) != c.want {
			t.Errorf("got  %v\nwant %v", err, c.want)
		}
	}
	if _, err := Fit(context.Background(), []string{"a"}, []float32{1}, []float64{1}, five, Options{},
		1); len(fault.All(err)) == 0 {
		t.Errorf("no options: got %v", err)
	}
}

func TestOptionsNameAllFaults(t *testing.T) {
	if err := DefaultOptions().Validate(); err != nil {
		t.Error(err)
	}
	bad := Options{Trees: 0, Leaves: 1, Bins: 256, MinLeaf: 0, Rate: 2, L2: -1, RowShare: 0, ColumnShare: math.NaN()}
	var keys []string
	for _, f := range fault.All(bad.Validate()) {
		keys = append(keys, f.Key)
	}
	if got, want := strings.Join(keys, " "), "trees leaves bins min_leaf rate l2 row_share column_share"; got != want {
		t.Errorf("faults of %s, want %s", got, want)
	}
}
