package asrpt

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"clustergym/internal/raced"
)

func TestTheForestLearns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var rows [][]float64
	var target []float64
	truth := func(x []float64) float64 {
		if x[0] > .5 {
			return 3 + x[1]
		}
		return -1
	}
	draw := func() []float64 { return []float64{r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64(), 7} }
	for range 2000 {
		x := draw()
		rows, target = append(rows, x), append(target, truth(x)+.1*r.NormFloat64())
	}
	f := fit(rows, target, 40, 1)
	sum, blind := 0., 0.
	for range 500 {
		x := draw()
		got := f.predict(x)
		if got < -1.5 || got > 4.5 {
			t.Fatalf("%v is outside of all targets", got)
		}
		sum += math.Abs(got-truth(x)) / 500
		blind += math.Abs(1.25-truth(x)) / 500
	}
	if sum > blind/5 {
		t.Errorf("mean error %v, of the mean %v", sum, blind)
	}
	if !reflect.DeepEqual(f, fit(rows, target, 40, 1)) || reflect.DeepEqual(f, fit(rows, target, 40, 2)) {
		t.Error("a forest depends on its seed, and on nothing else")
	}
	same := fit(rows[:100], make([]float64, 100), 3, 1)
	if len(same.trees[0]) != 1 || same.predict(rows[0]) != 0 {
		t.Error("equal targets need no splits")
	}
}

// A leaf has enough rows.
func TestLeavesAreLarge(t *testing.T) {
	rows, target := [][]float64{}, []float64{}
	for i := range 2*minLeaf - 1 {
		rows, target = append(rows, []float64{float64(i)}), append(target, float64(i))
	}
	if f := fit(rows, target, 5, 1); len(f.trees[0]) != 1 {
		t.Error("too few rows were split")
	}
}

// learned returns what is known before a workload, and the workload.
func learned(t *testing.T, change func(own []job)) (*knowledge, []job) {
	t.Helper()
	net := network{NIC: 3.125, Link: 20, Server: 8}
	jobs := newMaker(net, 16).generate(3, 900)
	before, own := window(jobs, 800, 100, 700)
	if len(before) != 700 || len(own) != 100 || own[0].submit != 0 || before[699].submit > 0 {
		t.Fatal("the window is wrong")
	}
	change(own)
	k, err := learn(before, own, 10, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	return k, own
}

// No predictor but exact knows anything of a job's iterations before it has ended.
func TestPredictorsLookBackOnly(t *testing.T) {
	raced.Alone(t)
	k, own := learned(t, func([]job) {})
	other, _ := learned(t, func(own []job) {
		for i := range own {
			own[i].iterations *= 7
			own[i].meta.Work *= 7
		}
	})
	for _, name := range named() {
		p, q := k.predictor(name), other.predictor(name)
		differ := false
		for i := range own {
			a, b := p.submitted(own[i].submit, i), q.submitted(own[i].submit, i)
			if a <= 0 || math.IsNaN(a) || math.IsInf(a, 0) {
				t.Fatalf("%s expects %v iterations", name, a)
			}
			differ = differ || !near(a, b)
		}
		if differ != (name == byExact) {
			t.Errorf("%s: it knows of iterations that nobody has seen: %v", name, differ)
		}
	}
}

// Predictors learn what ends, and begin anew in every run.
func TestPredictorsLearnFromFinishes(t *testing.T) {
	k, own := learned(t, func(own []job) {
		for i := range own {
			own[i].iterations *= 1000
			own[i].meta.Work *= 1000
			own[i].meta.User, own[i].meta.Name, own[i].meta.Group = "new", "new", "new"
		}
	})
	for _, name := range []string{byMean, byForest, byHistory} {
		p := k.predictor(name)
		first := p.submitted(0, 0)
		for i := 1; i < 50; i++ {
			p.submitted(own[i].submit, i)
			p.finished(own[50].submit, i)
		}
		if later := p.submitted(own[50].submit, 50); later < 3*first {
			t.Errorf("%s: %v iterations at first, %v after 50 that had a thousand times as many", name, first, later)
		}
		if again := k.predictor(name).submitted(0, 0); again != first {
			t.Errorf("%s: %v iterations in a second run, %v in the first", name, again, first)
		}
	}
}

func TestStatisticsByHand(t *testing.T) {
	s := stats{}
	a, b := simple(0, math.E, 1), simple(0, math.Exp(3), 1)
	for i, j := range []*job{&a, &b} {
		j.meta.User, j.meta.Group = "u", []string{"g", "h"}[i]
		s.add(j)
	}
	row, seen := s.features(&b)
	// Of the group h: one job with logarithm 3. Of the user and size, and of all: two, with mean 2 and spread 1.
	want := []float64{math.Ln2, 3, 3, 0, math.Log(3), 2, 3, 1, math.Log(3), 2, 3, 1}
	if !seen || len(row) != 6+len(want) || row[groupMean] != row[7] {
		t.Fatalf("features %v", row)
	}
	for i, w := range want {
		if math.Abs(row[6+i]-w) > 1e-7 {
			t.Errorf("feature %d is %v, want %v", 6+i, row[6+i], w)
		}
	}
	if _, seen := (stats{}).features(&a); seen {
		t.Error("nothing had ended")
	}
}

func TestErrorsHaveTheirSpread(t *testing.T) {
	jobs := make([]job, 4000)
	for i := range jobs {
		jobs[i].iterations = 10
	}
	n := &noisy{jobs: jobs, sigma: .5, seed: 3}
	squares := 0.
	for i := range jobs {
		x := math.Log(n.submitted(0, i) / 10)
		squares += x * x / 4000
	}
	if s := math.Sqrt(squares); s < .48 || s > .52 {
		t.Errorf("standard deviation %v, want .5", s)
	}
}

// The generated jobs are at the load that is asked for.
func TestLoads(t *testing.T) {
	net := network{NIC: 3.125, Link: 20, Server: 8}
	jobs := loaded(newMaker(net, 4).generate(5, 300), 32, .8)
	work := 0.
	for i := range jobs {
		work += jobs[i].solo() * float64(jobs[i].graph.gpus)
		if i > 0 && jobs[i].submit < jobs[i-1].submit {
			t.Fatal("jobs are not in order of submit")
		}
	}
	if got := work / 32 / jobs[299].submit; !near(got, .8) {
		t.Errorf("load %v, want .8", got)
	}
}
