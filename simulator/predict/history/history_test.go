package history_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/predict/predicttest"
	"clustergym/traces"
)

const magic = "CGhist1"

func TestContract(t *testing.T) {
	predicttest.Run(t, history.NewArchive(nil), magic, 400)
}

func TestContractWithAnArchive(t *testing.T) {
	predicttest.Run(t, history.NewArchive(drawn(rand.New(rand.NewPCG(1, 1)), 300)), magic, 150)
}

// drawn returns n jobs of a trace, in order of submit, within about two hours.
func drawn(r *rand.Rand, n int) (jobs []traces.Job) {
	for _, e := range predicttest.Draw(r, n, 5) {
		if e.Kind == predicttest.Submit {
			jobs = append(jobs, e.Job)
		}
	}
	return jobs
}

// plain is package history written a second time from its documentation, without regard to speed.
type plain struct {
	ended  map[string][]float64 // run times by key, in order of their ends
	starts map[string][]*alive  // of finest keys
	in     map[int]*alive
	widen  predict.Calibration
}

type alive struct {
	keys  []string
	unit  float64
	runs  bool
	since time.Duration // moved back by what it had run before
	ran   time.Duration
	q     [predict.Quantiles]time.Duration
}

func newPlain() *plain {
	p := &plain{ended: map[string][]float64{}, starts: map[string][]*alive{}, in: map[int]*alive{}}
	p.widen.Reset()
	return p
}

func plainKeys(j *traces.Job) (keys []string) {
	suffix := fmt.Sprint(" requested ", j.Estimate > 0)
	gpus := fmt.Sprint(" gpus ", j.GPUs, " of ", j.GPUMilli)
	if j.User != "" {
		if j.Name != "" {
			keys = append(keys, "name "+j.Name+" user "+j.User+gpus+suffix)
		}
		keys = append(keys, "user "+j.User+gpus+suffix, "user "+j.User+suffix)
	}
	return append(keys, "vc "+j.VC+gpus+suffix, "all"+suffix)
}

func (p *plain) sample(key string) []float64 {
	all := p.ended[key]
	return all[max(0, len(all)-history.Keep):]
}

// interpolated is the quantile of a sample by the Weibull rule.
func interpolated(x []float64, level float64) float64 {
	x = slices.Sorted(slices.Values(x))
	at := math.Min(math.Max(level*float64(len(x)+1), 1), float64(len(x)))
	lo := int(at)
	if lo == len(x) {
		return x[lo-1]
	}
	return x[lo-1] + (at-float64(lo))*(x[lo]-x[lo-1])
}

// productLimit is the Kaplan–Meier estimate as textbooks write it: the product over the distinct times t of events of
// 1 − d/n, where d events happen at t and n observations are not before it.
func productLimit(events, censored []float64, level float64) (q float64, reached bool) {
	times := slices.Compact(slices.Sorted(slices.Values(events)))
	s := 1.0
	for _, t := range times {
		d, n := 0.0, 0.0
		for _, x := range events {
			if x == t {
				d++
			}
			if x >= t {
				n++
			}
		}
		for _, x := range censored {
			if x >= t {
				n++
			}
		}
		s *= 1 - d/n
		if s <= 1-level+1e-11 {
			return t, true
		}
	}
	return 0, false
}

func (p *plain) predict(now time.Duration, j *traces.Job) (f predict.Forecast, a *alive) {
	a = &alive{keys: plainKeys(j), unit: 1}
	base := []float64{10e9, 60e9, 600e9, 3600e9, 21600e9}
	if j.Estimate > 0 {
		a.unit, base = float64(j.Estimate), []float64{0.01, 0.05, 0.3, 0.7, 1}
	}
	var q [predict.Quantiles]float64
	copy(q[:], base)
	seen := 0
	for i, key := range a.keys {
		x := p.sample(key)
		if len(x) == 0 {
			continue
		}
		seen = len(x)
		for k, level := range predict.Levels {
			q[k] = interpolated(x, level)
		}
		if i == 0 {
			var longer []float64
			last := p.starts[key]
			for _, b := range last[max(0, len(last)-history.Recent):] {
				if ran := float64(now-b.since) / b.unit; b.runs && ran > interpolated(x, 0.5) {
					longer = append(longer, ran)
				}
			}
			if len(longer) > 0 {
				seen += len(longer)
				longest := math.Max(slices.Max(x), slices.Max(longer))
				for k, level := range predict.Levels {
					at, ok := productLimit(x, longer, level)
					if !ok {
						longest *= 1.5
						at = longest
					}
					q[k] = at
				}
			}
		}
		if len(x) < history.Enough {
			ratio := base
			for _, coarser := range a.keys[i+1:] {
				if y := p.sample(coarser); len(y) >= history.Enough && interpolated(y, 0.5) > 0 {
					ratio = nil
					for _, level := range predict.Levels {
						ratio = append(ratio, interpolated(y, level))
					}
					break
				}
			}
			m := q[2]
			for k := range q {
				q[k] = m * ratio[k] / ratio[2]
			}
		}
		break
	}
	p.widen.Apply(&q)
	for k := range q {
		if q[k] *= a.unit; j.Estimate > 0 {
			q[k] = math.Min(q[k], float64(j.Estimate))
		}
	}
	f = predict.Of(&q, seen)
	return f, a
}

func (p *plain) hear(e *predicttest.Event) {
	a := p.in[e.Number]
	switch e.Kind {
	case predicttest.Start:
		a.runs, a.since = true, e.At-a.ran
		// A start stands for itself: a job that is stopped and starts again has two, of which the first no longer runs.
		b := *a
		p.in[e.Number] = &b
		p.starts[a.keys[0]] = append(p.starts[a.keys[0]], &b)
	case predicttest.Stop:
		a.runs, a.ran = false, e.Ran
		b := *a
		p.in[e.Number] = &b
	case predicttest.Finish:
		a.runs = false
		for _, k := range a.keys {
			p.ended[k] = append(p.ended[k], float64(e.Ran)/a.unit)
		}
		p.widen.Learn(&a.q, e.Ran)
		delete(p.in, e.Number)
	case predicttest.Drop:
		a.runs = false
		delete(p.in, e.Number)
	}
}

// Every forecast of drawn runs is that of the plain implementation: order of keys, the last Keep, too small samples,
// shares of requests, jobs that run, and the calibration.
func TestForecastsAreThoseOfThePlainWay(t *testing.T) {
	var censored, few, shares int
	var keys [6]int
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		events := predicttest.Draw(r, 50+r.IntN(400), 1+r.IntN(6))
		p, want := history.NewArchive(nil).New(), newPlain()
		p.Reset(0)
		for i := range events {
			e := &events[i]
			got := predicttest.Play(p, events[i:i+1])
			if e.Kind != predicttest.Submit {
				want.hear(e)
				continue
			}
			f, a := want.predict(e.At, &e.Job)
			for k := range f.Q {
				if d := math.Abs(float64(f.Q[k] - got[0].Q[k])); d > 2+1e-9*float64(f.Q[k]) {
					t.Fatalf("seed %d, job %d %+v: %v, want %v", seed, i, e.Job, got[0], f)
				}
			}
			if got[0].Seen != f.Seen {
				t.Fatalf("seed %d, job %d: from %d jobs, want %d", seed, i, got[0].Seen, f.Seen)
			}
			first := slices.IndexFunc(a.keys, func(k string) bool { return len(want.sample(k)) > 0 })
			keys[first+1]++
			if first >= 0 {
				n := len(want.sample(a.keys[first]))
				if int(f.Seen) > n {
					censored++
				}
				if n < history.Enough {
					few++
				}
			}
			if e.Job.Estimate > 0 {
				shares++
			}
			a.q = got[0].Q
			want.in[e.Number] = a
		}
	}
	for what, n := range map[string]int{"jobs that run": censored, "small samples": few, "requests": shares,
		"nothing":        keys[0],
		"the finest key": keys[1], "the second": keys[2], "the third": keys[3], "the fourth": keys[4]} {
		if n < 20 {
			t.Errorf("only %d forecasts with %s", n, what)
		}
	}
}

// No forecast depends on a job of the archive that has not ended before the run begins: it may run for another time, be
// another's, be missing, or there may be more. One that has ended does count.
func TestTheArchiveKnowsNothingOfLaterEnds(t *testing.T) {
	told := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		jobs := drawn(r, 200)
		events := predicttest.Draw(r, 40, 5)
		origin := jobs[r.IntN(len(jobs))].Submit + time.Duration(r.IntN(3)-1)
		var other []traces.Job
		for i := range jobs {
			j := jobs[i]
			if j.Submit+j.Work >= origin {
				switch r.IntN(4) {
				case 0:
					continue
				case 1:
					j.Work = max(0, origin-j.Submit) + time.Duration(r.IntN(1e12))
				case 2:
					j.User, j.Name, j.VC, j.GPUs = "u1", "u1 n1", "vc1", 1
				case 3:
					more := j
					more.Work = max(0, origin-j.Submit)
					other = append(other, more)
				}
			}
			other = append(other, j)
		}
		play := func(jobs []traces.Job) []predict.Forecast {
			p := history.NewArchive(jobs).New()
			p.Reset(origin)
			return predicttest.Play(p, events)
		}
		want := play(jobs)
		if !slices.Equal(play(other), want) {
			t.Fatalf("seed %d: forecasts depend on jobs that end at %v or later", seed, origin)
		}
		if !slices.Equal(play(nil), want) {
			told++
		}
	}
	if told < 100 {
		t.Errorf("only %d archives said anything", told)
	}
}

// An archive knows what a run knows that has seen the same jobs start when they were submitted, and end.
func TestAnArchiveIsAReplay(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 4))
		jobs := drawn(r, 300)
		origin := jobs[100+r.IntN(200)].Submit
		past, live := history.NewArchive(jobs).New(), history.NewArchive(nil).New()
		past.Reset(origin)
		live.Reset(0)
		type end struct {
			at     time.Duration
			number int
		}
		var ends []end
		for i := range jobs {
			if e := jobs[i].Submit + jobs[i].Work; e < origin {
				live.Predict(jobs[i].Submit, i, &jobs[i])
				ends = append(ends, end{e, i})
			}
		}
		slices.SortStableFunc(ends, func(a, b end) int { return int(a.at - b.at) })
		for _, e := range ends {
			live.Finished(e.at, e.number, jobs[e.number].Work)
		}
		a, b := make([]float32, len(history.FeatureNames())), make([]float32, len(history.FeatureNames()))
		for i := range 100 {
			j := drawn(r, 1)[0]
			past.Predict(0, i, &j)
			live.Predict(origin, 1000+i, &j)
			past.(*history.Predictor).Features(i, a)
			live.(*history.Predictor).Features(1000+i, b)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("seed %d, %+v:\n%v of the archive\n%v of the run", seed, j, a, b)
			}
		}
	}
}

// Archives that give other forecasts have other names, so that snapshots and scenarios tell them apart.
func TestNamesOfArchives(t *testing.T) {
	jobs := drawn(rand.New(rand.NewPCG(5, 5)), 50)
	jobs[20].User, jobs[20].Estimate = "u1", time.Hour
	name := history.NewArchive(jobs).String()
	if again := history.NewArchive(slices.Clone(jobs)).String(); again != name {
		t.Errorf("the same jobs are %q, then %q", name, again)
	}
	for what, change := range map[string]func(j *traces.Job){
		"work":     func(j *traces.Job) { j.Work++ },
		"submit":   func(j *traces.Job) { j.Submit++ },
		"user":     func(j *traces.Job) { j.User += "x" },
		"name":     func(j *traces.Job) { j.Name += "x" },
		"vc":       func(j *traces.Job) { j.VC += "x" },
		"gpus":     func(j *traces.Job) { j.GPUs++ },
		"share":    func(j *traces.Job) { j.GPUMilli-- },
		"request":  func(j *traces.Job) { j.Estimate++ },
		"cores":    func(j *traces.Job) { j.CPUMilli++ },
		"memory":   func(j *traces.Job) { j.MemBytes++ },
		"one less": nil,
	} {
		other := slices.Clone(jobs)
		if change == nil {
			other = other[:49]
		} else {
			change(&other[20])
		}
		if history.NewArchive(other).String() == name {
			t.Errorf("another %s gives the same name", what)
		}
	}
}
