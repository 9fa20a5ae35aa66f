package benchmark

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clustergym/internal/statistic"
)

// rliable are scores, [task][run], with what rliable 1.2.0 makes of them: five runs X and three runs Y of eight tasks.
type rliable struct {
	X, Y                   Scores
	IQM, Mean, Median, Gap [2]float64 // of X and of Y
	Taus, Profile          []float64  // of X
	POI                    float64    // of X over Y
	CIRuns                 [2]float64 `json:"ci_runs"`  // of the IQM of X
	CITasks                [2]float64 `json:"ci_tasks"` // with tasks drawn too
	CIPOI                  [2]float64 `json:"ci_poi"`
}

func TestAggregatesAreThoseOfRliable(t *testing.T) {
	b, err := os.ReadFile("testdata/rliable.json")
	if err != nil {
		t.Fatal(err)
	}
	var r rliable
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	same := func(what string, got, want, within float64) {
		t.Helper()
		if !(math.Abs(got-want) <= within) {
			t.Errorf("%s is %v, rliable has %v", what, got, want)
		}
	}
	for i, s := range []Scores{r.X, r.Y} {
		same("IQM", s.IQM(), r.IQM[i], 1e-12)
		same("mean", s.Mean(), r.Mean[i], 1e-12)
		same("median", s.Median(), r.Median[i], 1e-12)
		same("optimality gap", s.Gap(), r.Gap[i], 1e-12)
	}
	same("probability of improvement", r.X.Improvement(r.Y), r.POI, 1e-12)
	for i, got := range r.X.Profile(r.Taus) {
		same("profile", got, r.Profile[i], 1e-12)
	}
	// Intervals come from other draws: 2000 of ours, 20000 of theirs. The seed is fixed.
	runs, tasks, poi := r.X.Interval(1, false,
		Scores.IQM), r.X.Interval(1, true, Scores.IQM), r.X.ImprovementInterval(1, r.Y)
	for i := range 2 {
		same("interval over runs", runs[i], r.CIRuns[i], .02)
		same("interval over tasks", tasks[i], r.CITasks[i], .02)
		same("interval of the probability", poi[i], r.CIPOI[i], .03)
	}
}

// plainIQM sorts and cuts whole scores, as scipy's trimmed mean does.
func plainIQM(s Scores) float64 {
	var all []float64
	for _, runs := range s {
		all = append(all, runs...)
	}
	slices.Sort(all)
	cut := len(all) / 4
	return statistic.Mean(all[cut : len(all)-cut])
}

// plainImprovement ranks both samples together and takes U from the sum of ranks.
func plainImprovement(a, b Scores) float64 {
	sum := 0.0
	for t := range a {
		both := append(slices.Clone(a[t]), b[t]...)
		slices.Sort(both)
		ranks := 0.0
		for _, x := range a[t] {
			first, n := slices.Index(both, x), 0
			for _, y := range both {
				if y == x {
					n++
				}
			}
			ranks += float64(first) + float64(n+1)/2
		}
		n := float64(len(a[t]))
		sum += (ranks - n*(n+1)/2) / (n * float64(len(b[t])))
	}
	return sum / float64(len(a))
}

func TestStatisticsEqualPlainOnes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tasks := 4 * rapid.IntRange(1, 4).Draw(r, "tasks/4")
		draw := func(name string) Scores {
			runs := rapid.IntRange(1, 6).Draw(r, name+" runs")
			s := make(Scores, tasks)
			for i := range s {
				for range runs {
					s[i] = append(s[i], float64(rapid.IntRange(-20, 40).Draw(r, name))/20)
				}
			}
			return s
		}
		a, b := draw("a"), draw("b")
		if got, want := a.IQM(), plainIQM(a); math.Abs(got-want) > 1e-12 {
			r.Fatalf("IQM %v, want %v", got, want)
		}
		p := a.Improvement(b)
		if want := plainImprovement(a, b); math.Abs(p-want) > 1e-12 {
			r.Fatalf("probability %v, want %v", p, want)
		}
		if q := b.Improvement(a); math.Abs(p+q-1) > 1e-12 || a.Improvement(a) != .5 {
			r.Fatalf("probabilities %v and %v of two rows, %v of a row and itself", p, q, a.Improvement(a))
		}
		taus := []float64{-2, 0, .5, 1, 3}
		prof := a.Profile(taus)
		if prof[0] != 1 || prof[4] != 0 ||
			!slices.IsSortedFunc(prof, func(x, y float64) int { return int(math.Copysign(1, y-x)) * boolInt(x != y) }) {
			r.Fatalf("profile %v does not fall from 1 to 0", prof)
		}
	})
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A task with one run weighs as much as one with five.
func TestTasksWeighAlike(t *testing.T) {
	s := Scores{{1}, {0, 0, 0, 0, 0}}
	// Whatever the numbers of runs, it is as if each task had as many: the least common multiple of 1, 2 and 3 is 6.
	some := Scores{{.9}, {.2, .4}, {.3, .1, 1.2}, {-.1}}
	var same Scores
	for _, runs := range some {
		same = append(same, slices.Repeat(runs, 6/len(runs)))
	}
	for what, of := range map[string]func(Scores) float64{
		"IQM": Scores.IQM, "mean": Scores.Mean, "median": Scores.Median, "gap": Scores.Gap,
		"profile": func(s Scores) float64 { return s.Profile([]float64{.3})[0] },
	} {
		if got, want := of(some), of(same); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s %v, want %v", what, got, want)
		}
	}
	// By hand: of the 24 values -0.1×6, 0.1×2, 0.2×3, 0.3×2, 0.4×3, 0.9×6, 1.2×2 the first and the last 6 are cut.
	if got, want := some.IQM(), (2*.1+3*.2+2*.3+3*.4+2*.9)/12; math.Abs(got-want) > 1e-12 {
		t.Errorf("IQM %v, want %v", got, want)
	}
	// whose least common multiple is 971 million
	many := Scores{slices.Repeat([]float64{1}, 997), slices.Repeat([]float64{0}, 991), slices.Repeat([]float64{.5}, 983)}
	if got := many.IQM(); math.Abs(got-.5) > 1e-9 {
		t.Errorf("IQM of many runs %v, want 0.5", got)
	}
	if s.Mean() != .5 || s.Profile([]float64{.5})[0] != .5 || s.Gap() != .5 || s.IQM() != .5 {
		t.Errorf("mean %v, profile %v, gap %v, IQM %v; want 0.5 each", s.Mean(), s.Profile([]float64{.5}), s.Gap(), s.IQM())
	}
}

func TestIntervalsSayWhatVaries(t *testing.T) {
	rule := Scores{{0}, {1}, {.5}, {.25}}
	if ci := rule.Interval(1, false, Scores.Mean); ci[0] != ci[1] {
		t.Errorf("of single runs nothing varies but tasks, got %v", ci)
	}
	if ci := rule.Interval(1, true, Scores.Mean); ci[0] >= rule.Mean() || ci[1] <= rule.Mean() {
		t.Errorf("over tasks %v does not hold %v", ci, rule.Mean())
	}
	if a, b := rule.Interval(1, true, Scores.IQM), rule.Interval(1, true, Scores.IQM); a != b {
		t.Errorf("the same numbers give %v and %v", a, b)
	}
}
