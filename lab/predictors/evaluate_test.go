package predictors

import (
	"context"
	"math"
	"testing"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// some makes forecasts of jobs whose run times have ties, with medians that have ties too.
func some(t *testing.T, n int) []Forecast {
	const seed = 1
	t.Logf("seed %d", seed)
	src := rng.Stream(seed, t.Name())
	var all []Forecast
	for i := range n {
		work := time.Duration(1+src.IntN(20)) * time.Second
		m := time.Duration(1+src.IntN(10))*time.Second + work/2
		f := Forecast{Submit: time.Duration(i) * time.Minute, Work: work}
		for k := range f.Q {
			f.Q[k] = m * time.Duration(1+k) / 3
		}
		all = append(all, f)
	}
	return all
}

func columnsOf(all []Forecast) (x, y []float64) {
	for _, f := range all {
		x, y = append(x, float64(f.Q[predict.Quantiles/2])), append(y, float64(f.Work))
	}
	return x, y
}

// inOrder is concordance by its definition.
func inOrder(x, y []float64) float64 {
	right, pairs := 0.0, 0.0
	for i := range x {
		for j := range x {
			if y[i] >= y[j] {
				continue
			}
			pairs++
			switch {
			case x[i] < x[j]:
				right++
			case x[i] == x[j]:
				right += 0.5
			}
		}
	}
	if pairs == 0 {
		return 0.5
	}
	return right / pairs
}

func TestPairsAreThoseOfTheDefinition(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 17, 300} {
		x, y := columnsOf(some(t, n))
		if got, want := concordance(x, y), inOrder(x, y); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d jobs: %v, want %v", n, got, want)
		}
	}
	up, same := []float64{1, 2, 3}, []float64{4, 4, 4}
	for _, c := range []struct {
		x, y []float64
		want float64
	}{{up, up, 1}, {[]float64{3, 2, 1}, up, 0}, {same, up, 0.5}, {up, same, 0.5}} {
		if got := concordance(c.x, c.y); got != c.want {
			t.Errorf("%v and %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}

// The data are an example of textbooks: IQ and hours of television of ten people, rho = -29/165. With ties, the ranks
// are means, and 1 - 6·Σd²/(n·(n²-1)) no longer holds.
func TestRankCorrelations(t *testing.T) {
	iq := []float64{106, 100, 86, 101, 99, 103, 97, 113, 112, 110}
	hours := []float64{7, 27, 2, 50, 28, 29, 20, 12, 6, 17}
	if got, want := correlation(ranks(iq), ranks(hours)), -29.0/165; math.Abs(got-want) > 1e-12 {
		t.Errorf("rho %v, want %v", got, want)
	}
	// Ranks 0, 1.5, 1.5, 3 and 0, 1, 2.5, 2.5: deviations from 1.5 have the products 2.25, 0, 0, 1.5, and 4.5 as the sum
	// of the squares of each.
	if got, want := correlation(ranks([]float64{10, 20, 20, 30}), ranks([]float64{1, 2, 3, 3})),
		3.75/4.5; math.Abs(got-want) > 1e-12 {
		t.Errorf("rho with ties %v, want %v", got, want)
	}
	if got := correlation(ranks([]float64{5, 5, 5}), ranks([]float64{1, 2, 3})); got != 0 {
		t.Errorf("rho of a constant %v, want 0", got)
	}
}

func TestQualityByHand(t *testing.T) {
	s := time.Second
	all := []Forecast{
		{Work: 10 * s, Q: [predict.Quantiles]time.Duration{5 * s, 8 * s, 10 * s, 20 * s, 50 * s}},
		{Work: 20 * s, Q: [predict.Quantiles]time.Duration{5 * s, 8 * s, 10 * s, 20 * s, 50 * s}},
		{Work: 60 * s, Q: [predict.Quantiles]time.Duration{6 * s, 20 * s, 30 * s, 40 * s, 60 * s}},
		{Work: 90 * s, Q: [predict.Quantiles]time.Duration{9 * s, 20 * s, 30 * s, 40 * s, 90*s - 1}},
	}
	q := Measure(all)
	if want := [predict.Quantiles]float64{0, 0, 0.25, 0.5, 0.75}; q.Below != want {
		t.Errorf("shares below the quantiles %v, want %v", q.Below, want)
	}
	if want := (0 + math.Ln2 + math.Ln2 + math.Log(3)) / 4; math.Abs(q.LogError-want) > 1e-12 {
		t.Errorf("mean log error %v, want %v", q.LogError, want)
	}
	if want := math.Log(10); math.Abs(q.Width-want) > 1e-9 {
		t.Errorf("width %v, want %v", q.Width, want)
	}
	// Of six pairs, those of the two medians of 10 s and of 30 s count half.
	q.Intervals(all)
	if q.Jobs != 4 || q.Pairs != 5.0/6 || q.SpearmanCI != nil {
		t.Errorf("%d jobs, %v of pairs, interval %v", q.Jobs, q.Pairs, q.SpearmanCI)
	}
	if empty := Measure(nil); empty.Jobs != 0 || empty.LogError != 0 {
		t.Errorf("nothing measured: %+v", empty)
	}
}

// A resample is measured by sums over blocks. It must be what Measure says of its jobs written out.
func TestResamplesOfBlocksAreMeasuredExactly(t *testing.T) {
	all := some(t, 213)
	x, y := columnsOf(all)
	block := make([]int, len(all))
	for i := range block {
		block[i] = i * Blocks / len(all)
	}
	xx, yy, xy := products(below(x, block), below(y, block), block)
	right, pairs := concordances(x, y, block)
	src := rng.Stream(2, t.Name())
	for range 5 {
		var w [Blocks]float64
		for range Blocks {
			w[src.IntN(Blocks)]++
		}
		var u, v []float64
		for i, b := range block {
			for range int(w[b]) {
				u, v = append(u, x[i]), append(v, y[i])
			}
		}
		n := float64(len(u))
		mean := n * n * n / 4
		if got, want := (triple(&w, xy)-mean)/math.Sqrt((triple(&w, xx)-mean)*(triple(&w, yy)-mean)),
			correlation(ranks(u), ranks(v)); math.Abs(got-want) > 1e-9 {
			t.Errorf("rho %v, want %v", got, want)
		}
		if got, want := double(&w, right)/double(&w, pairs), inOrder(u, v); math.Abs(got-want) > 1e-12 {
			t.Errorf("pairs %v, want %v", got, want)
		}
	}
	q := Measure(all)
	q.Intervals(all)
	for _, c := range []struct {
		name  string
		value float64
		ci    *[2]float64
	}{{"rho", q.Spearman, q.SpearmanCI}, {"pairs", q.Pairs, q.PairsCI}, {"log error", q.LogError, q.LogErrorCI}} {
		if c.ci == nil || !(c.ci[0] < c.value && c.value < c.ci[1]) {
			t.Errorf("%s %v is not within %v", c.name, c.value, c.ci)
		}
	}
}

// Forecasts of the exact rung are perfect, and those of a predictor cover what they say on jobs that repeat one
// distribution.
func TestCollectMeasuresTheJobsFromATimeOn(t *testing.T) {
	src := rng.Stream(3, t.Name())
	var jobs []traces.Job
	for i := range 4000 {
		j := traces.Job{ID: "j" + time.Duration(i).String(), Submit: time.Duration(i) * time.Minute, GPUs: 1, GPUMilli: 1000}
		j.Work = time.Duration(math.Exp(6+src.NormFloat64()) * float64(time.Second))
		if i == 3000 {
			j.Work = 0 // is not measured
		}
		jobs = append(jobs, j)
	}
	from := jobs[1000].Submit
	for name, check := range map[string]func(q Quality) bool{
		"exact": func(q Quality) bool { return q.Spearman == 1 && q.Pairs == 1 && q.LogError == 0 },
		"history": func(q Quality) bool {
			for i, b := range q.Below {
				if math.Abs(b-predict.Levels[i]) > 0.05 {
					return false
				}
			}
			return math.Abs(q.Spearman) < 0.1 && q.Width > 1
		},
	} {
		est, err := sim.ParseEstimates(name)
		if err != nil {
			t.Fatal(err)
		}
		by, err := Maker(est, nil)
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		all, err := collect(context.Background(), jobs, est, by, cluster.Spec{}, from, func(n int) { last = n })
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 2999 || all[0].Job != jobs[1000].ID || last < 3000 {
			t.Errorf("%s: %d jobs are measured, the first is %s; progress %d", name, len(all), all[0].Job, last)
		}
		if q := Measure(all); !check(q) {
			t.Errorf("%s: %+v", name, q)
		}
	}
}
