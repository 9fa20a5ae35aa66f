package encode_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// teller forecasts what the job's priority and user say: Priority p is the quantiles p, 2p, 3p, 4p, 6p of seconds from
// p jobs.
type teller struct {
	predict.Predictor
	user map[int]string
}

func (t *teller) New() predict.Predictor { return &teller{user: map[int]string{}} }

func (*teller) String() string { return "teller" }

func (t *teller) Reset(time.Duration) { clear(t.user) }

func (t *teller) Predict(_ time.Duration, number int, j *traces.Job) predict.Forecast {
	t.user[number] = j.User
	q := [predict.Quantiles]float64{1, 2, 3, 4, 6}
	for i := range q {
		q[i] *= float64(j.Priority) * float64(second)
	}
	return predict.Of(&q, j.Priority)
}

func (t *teller) Past(number int) (user, vc predict.Past) {
	if t.user[number] == "ann" {
		user = predict.Past{Ended: 7, Ratio: 10}
	}
	return user, predict.Past{Ended: 32, Ratio: 1e-9}
}

func (*teller) Started(time.Duration, int)                 {}
func (*teller) Stopped(time.Duration, int, time.Duration)  {}
func (*teller) Finished(time.Duration, int, time.Duration) {}
func (*teller) Dropped(time.Duration, int)                 {}

// told are windows with tellers.
type told struct{ *traces.Windows }

func (told) Predictor(sim.Estimates) (predict.Maker, error) { return new(teller), nil }

// tell returns JobSelect-v1 over jobs on four GPUs, without a warm-up, on a linear axis of 10 s a row.
func tell(t *testing.T, jobs []traces.Job, change func(c *jobselect.Config)) (*sched.Env, *env.TimeStep) {
	t.Helper()
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm, cfg.Load, cfg.Comm, cfg.Visible, cfg.MaxGPUs = len(jobs), 0, 0, "none", 2, 4
	cfg.TimeAxis, cfg.Row, cfg.Estimates = "linear", 10*second, sim.MustEstimates("history")
	change(&cfg)
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 4}}}}}
	all := append([]traces.Job(nil), jobs...)
	for len(all)*7/10 < len(jobs) {
		all = append(all, job("later", 1000*time.Hour, second, 1))
	}
	w, err := jobselect.NewWorkload(cfg, spec, all)
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, told{w.Windows}, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: 0}, ts); err != nil {
		t.Fatal(err)
	}
	if err := e.Spec().Check(ts); err != nil {
		t.Fatal(err)
	}
	return e, ts
}

func log1p(k, m float64) float64 { return math.Log1p(k) / math.Log1p(m) }

// ratio is the value of a ratio of medians.
func ratio(x float64) float64 { return 0.5 + math.Log(x)/(2*math.Log(1000)) }

func said(id, user, vc string, submit, work time.Duration, gpus, p int) traces.Job {
	j := job(id, submit, work, gpus)
	j.User, j.VC, j.Priority = user, vc, p
	return j
}

// Slots show quantiles, certainty, history and the jobs of user and virtual cluster by hand.
func TestForecastsByHand(t *testing.T) {
	jobs := []traces.Job{
		said("a", "ann", "x", 0, 100*second, 2, 10), said("b", "ann", "", 5*second, 100*second, 4, 600),
		said("c", "", "x", 25*second, 100*second, 1, 5), said("d", "bob", "x", 25*second, 100*second, 1, 5),
	}
	e, ts := tell(t, jobs, func(*jobselect.Config) {})
	rows := func() (first, second []float64) {
		x := wide(field(t, e, ts, "jobs"))
		n := len(x) / 2
		return x[n-encode.ForecastLen : n], x[2*n-encode.ForecastLen:]
	}
	q := func(p float64) []float64 {
		var out []float64
		for _, k := range []float64{1, 2, 3, 4, 6} {
			out = append(out, l(time.Duration(p*k*float64(second))))
		}
		return out
	}
	ann := []float64{log1p(7, 32), ratio(10), 1, 0} // the ratio of the virtual cluster is cut off
	one, other := rows()
	want(t, "a alone", one, append(append(q(10), log1p(10, 32)), append(ann, 0, log1p(1, 1024), 0, log1p(1, 1024))...)...)
	want(t, "an empty slot", other, make([]float64, encode.ForecastLen)...)
	want(t, "nothing runs", wide(field(t, e, ts, "held")), make([]float64, encode.HeldLen)...)

	step(t, e, 0, ts) // a starts; the next decision is at 25 s, when c has arrived
	if now := e.State().View.Now(); now != 25*second {
		t.Fatalf("the decision is at %v", now)
	}
	one, other = rows() // b and c or d wait, a has run for 25 s
	want(t, "b", one, append(append(q(600), 1), append(ann, log1p(1, 4), log1p(1, 1024), 0, 0)...)...)
	want(t, "c", other, append(append(q(5), log1p(5, 32)), 0, 0, 1, 0, 0, 0, log1p(1, 4), log1p(2, 1024))...)
	// Of 10, 20, 30, 40, 60 s the last three are left: 5, 15 and 35 s more, with half of the GPUs.
	w := 0.5 / (0.25 + 0.2 + 0.175)
	held := make([]float64, encode.HeldLen)
	held[0] = w * (0.25*0.5 + 0.2 + 0.175)
	held[1] = w * (0.2*0.5 + 0.175)
	held[2] = w * 0.175
	held[3] = w * 0.175 * 0.5
	want(t, "held", wide(field(t, e, ts, "held")), held...)
}

// Where estimates are not causal, a job has one quantile; without estimates it has none.
func TestForecastsOnOtherRungs(t *testing.T) {
	jobs := []traces.Job{said("a", "ann", "x", 0, 30*second, 2, 10), said("b", "ann", "x", 5*second, 70*second, 1, 600)}
	for _, c := range []struct {
		estimates   string
		quantile    time.Duration
		sure, share float64
	}{{"exact", 70 * second, 1, 0.5}, {"trace", 70 * second, 1, 0.5}, {"noisy:0", 70 * second, 1, 0.5},
		{"none", 0, 0, 0}} {
		e, ts := tell(t, jobs, func(cfg *jobselect.Config) {
			cfg.Estimates, cfg.Forecast = sim.MustEstimates(c.estimates), sched.ForecastOn
		})
		step(t, e, 0, ts)
		got := wide(field(t, e, ts, "jobs"))
		row := make([]float64, encode.ForecastLen)
		for i := range predict.Quantiles {
			row[i] = l(c.quantile)
		}
		if c.estimates == "exact" || c.estimates == "noisy:0" { // they may know more than a predictor
			row[6], row[7], row[8] = log1p(7, 32), ratio(10), 1
		}
		row[5], row[10], row[11], row[12], row[13] = c.sure, log1p(1, 4), log1p(1, 1024), log1p(1, 4), log1p(1, 1024)
		want(t, c.estimates, got[len(got)/2-encode.ForecastLen:len(got)/2], row...)
		held := make([]float64, encode.HeldLen)
		held[0], held[1], held[2] = c.share, c.share, c.share*0.5 // a has 25 s left
		want(t, c.estimates+" held", wide(field(t, e, ts, "held")), held...)
	}
}

// Off, and auto where estimates are not causal, is the observation that there was before.
func TestForecastsAreShownWhereTheKeySaysSo(t *testing.T) {
	jobs := []traces.Job{said("a", "ann", "x", 0, 30*second, 2, 10)}
	for _, c := range []struct {
		estimates string
		forecast  sched.Forecast
		shown     bool
	}{
		{"exact", sched.ForecastAuto, false}, {"noisy:1", sched.ForecastAuto, false}, {"none", sched.ForecastAuto, false},
		{"history", sched.ForecastAuto, true}, {"gbdt", sched.ForecastAuto, true}, {"exact", sched.ForecastOn, true},
		{"history", sched.ForecastOff, false}, {"exact", sched.ForecastOff, false},
	} {
		e, _ := tell(t, jobs, func(cfg *jobselect.Config) { cfg.Estimates, cfg.Forecast = sim.MustEstimates(c.estimates), c.forecast })
		fields, cols := 4, 10
		if c.shown {
			fields, cols = 5, 10+encode.ForecastLen
		}
		if s := e.Spec(); len(s.Obs) != fields || s.Obs[fields-2].Shape[1] != cols {
			t.Errorf("estimates %s, forecast %s: %v", c.estimates, c.forecast, s.Obs)
		}
	}
}

// Numbers stay between 0 and 1 whatever a predictor says, and ascend where they should.
func TestForecastsStayInBounds(t *testing.T) {
	const seed = 17
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var jobs []traces.Job
		for i := range 12 {
			p := int(math.Exp(r.Float64() * 21)) // up to 40 years
			users, vcs := []string{"", "ann", "bob"}, []string{"", "x"}
			work := time.Duration(math.Exp(r.Float64()*30)) * time.Microsecond
			jobs = append(jobs,
				said("j", users[r.IntN(3)], vcs[r.IntN(2)], time.Duration(i)*second*time.Duration(r.IntN(40)), max(1, work),
					1+r.IntN(4), max(1, p)))
			if i > 0 && jobs[i].Submit < jobs[i-1].Submit {
				jobs[i].Submit = jobs[i-1].Submit
			}
		}
		e, ts := tell(t, jobs, func(*jobselect.Config) {})
		for !ts.Kind.Last() {
			held := field(t, e, ts, "held")
			for i := 1; i < len(held); i++ {
				if held[i] > held[i-1]+1e-6 {
					t.Fatalf("seed %d: more GPUs are held later: %v", seed, held)
				}
			}
			x := field(t, e, ts, "jobs")
			for s := range 2 {
				row := x[s*(10+encode.ForecastLen):][10:]
				for i := 1; i < predict.Quantiles; i++ {
					if row[i] < row[i-1] {
						t.Fatalf("seed %d: quantiles %v", seed, row[:predict.Quantiles])
					}
				}
			}
			var legal []int
			for a, ok := range ts.Mask {
				if ok {
					legal = append(legal, a)
				}
			}
			step(t, e, legal[r.IntN(len(legal))], ts) // checks the bounds
		}
	}
}
