package sim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

func TestLabelsNameTheRung(t *testing.T) {
	for text, want := range map[string]string{
		"none": "none", "trace": "trace (submit-time)", "history": "history (causal)", "gbdt": "gbdt (causal)",
		"gbdt:noisy.bin": "gbdt:noisy.bin (causal)", "noisy:0.5": "noisy:0.5", "exact": "exact",
	} {
		e, err := sim.ParseEstimates(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Label(); got != want {
			t.Errorf("%s is shown as %q, want %q", text, got, want)
		}
	}
}

// What is printed reads back as the same estimates.
func TestEstimatesReadBack(t *testing.T) {
	for text, want := range map[string]struct {
		e      sim.Estimates
		rung   sim.Rung
		causal bool
	}{
		"none":           {sim.Estimates{Mode: sim.EstimateNone}, sim.RungNone, false},
		"trace":          {sim.Estimates{Mode: sim.EstimateTrace}, sim.RungSubmit, false},
		"history":        {sim.Estimates{Mode: sim.EstimateHistory}, sim.RungCausal, true},
		"gbdt":           {sim.Estimates{Mode: sim.EstimateGBDT}, sim.RungCausal, true},
		"gbdt:a/b.bin":   {sim.Estimates{Mode: sim.EstimateGBDT, File: "a/b.bin"}, sim.RungCausal, true},
		`gbdt:C:\a.bin`:  {sim.Estimates{Mode: sim.EstimateGBDT, File: `C:\a.bin`}, sim.RungCausal, true},
		"noisy:0":        {sim.Estimates{Mode: sim.EstimateNoisy}, sim.RungNoisy, false},
		"noisy:0.5":      {sim.Estimates{Mode: sim.EstimateNoisy, Sigma: 0.5}, sim.RungNoisy, false},
		"noisy:10":       {sim.Estimates{Mode: sim.EstimateNoisy, Sigma: 10}, sim.RungNoisy, false},
		"noisy:1.25e-05": {sim.Estimates{Mode: sim.EstimateNoisy, Sigma: 1.25e-5}, sim.RungNoisy, false},
		"exact":          {sim.Estimates{Mode: sim.EstimateExact}, sim.RungExact, false},
	} {
		if got, err := sim.ParseEstimates(text); err != nil || got != want.e || got.String() != text ||
			got.Rung() != want.rung || got.Causal() != want.causal {
			t.Errorf("%s reads as %+v (%v), on rung %v, causal %v, and is printed as %s", text, got, err, got.Rung(),
				got.Causal(), got)
		}
	}
	if got := fmt.Sprint(sim.RungNone, sim.RungSubmit, sim.RungCausal, sim.RungNoisy, sim.RungExact); got !=
		"none submit-time causal noisy exact" {
		t.Errorf("the rungs are %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		e := sim.Estimates{Mode: sim.EstimateNoisy, Sigma: rapid.Float64Range(0, 10).Draw(t, "sigma")}
		if rapid.Bool().Draw(t, "a file") {
			e = sim.Estimates{Mode: sim.EstimateGBDT, File: rapid.String().Draw(t, "file")}
		}
		if got, err := sim.ParseEstimates(e.String()); err != nil || got != e {
			t.Fatalf("%+v is printed as %q, which reads as %+v (%v)", e, e, got, err)
		}
	})
}

// JSON keeps the form of a number, so that a document written again has the same bytes, while String gives equal
// estimates one text.
func TestEstimatesInJSON(t *testing.T) {
	type doc struct {
		Always sim.Estimates `json:"always"`
		Maybe  sim.Estimates `json:"maybe,omitzero"`
	}
	for _, text := range []string{
		`{"always":""}`, `{"always":"none","maybe":"exact"}`, `{"always":"gbdt:a.bin"}`, `{"always":"noisy:0.5"}`,
		`{"always":"noisy:0.50","maybe":"noisy:5e-1"}`,
	} {
		var d doc
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		if b, err := json.Marshal(d); err != nil || string(b) != text {
			t.Errorf("%s is written as %s, error %v", text, b, err)
		}
		if d.Always.Mode == sim.EstimateNoisy && d.Always.String() != "noisy:0.5" {
			t.Errorf("%s is printed as %v", text, d.Always)
		}
	}
	var d doc
	if err := json.Unmarshal([]byte(`{"always":"rumours"}`), &d); err == nil || !d.Always.IsZero() {
		t.Errorf("rumours read as %+v, %v", d.Always, err)
	}
}

// What is not a form of the setting is refused with a sentence that quotes it and lists the forms; a slip is
// recognized.
func TestEstimatesThatAreRefused(t *testing.T) {
	for text, meant := range map[string]string{
		"": "", ":": "", " exact": "exact", "Exact": "exact", "exakt": "exact", "histroy": "history", "gbtd": "gbdt",
		"sjf": "", "causal": "", "submit-time": "",
		"exact:": "", "exact:1": "", "none:": "", "none:0": "", "trace:5": "", "history:": "", "history:20": "", "gbdt:": "",
		"noisy": "", "noisy:": "", "noisy:x": "", "noisy:-1": "", "noisy:10.01": "", "noisy:NaN": "", "noisy:Inf": "",
		"noisy:0.5:1": "", "noisy: 1": "", "noisy:1s": "",
		"gbdt\nexact": "",
	} {
		e, err := sim.ParseEstimates(text)
		if err == nil || e != (sim.Estimates{}) {
			t.Errorf("%q reads as %+v", text, e)
			continue
		}
		want := fmt.Sprintf("got %q, want %s", text, sim.EstimatesWanted)
		if got := err.Error(); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q: %s", text, got)
		} else if meant != "" && !strings.Contains(got[len(want):], meant) {
			t.Errorf("%q: %q does not guess %s", text, got, meant)
		}
	}
}

// Noise depends on the seed and the job's name alone, multiplies the work by e^(σZ), and stays within what a
// time.Duration holds.
func TestNoiseIsTheJobs(t *testing.T) {
	const n = 4000
	e := sim.Estimates{Mode: sim.EstimateNoisy, Sigma: 0.5, Seed: 7}
	sum, squares, differ := 0.0, 0.0, 0
	for i := range n {
		j := job(fmt.Sprint("j", i), time.Duration(i)*second, time.Hour, 1)
		other := job(j.ID, 0, time.Hour, 8)
		if e.OfJob(&j) != e.OfJob(&other) {
			t.Fatalf("%s: %v and %v", j.ID, e.OfJob(&j), e.OfJob(&other))
		}
		z := math.Log(float64(e.OfJob(&j)) / float64(j.Work))
		sum, squares = sum+z, squares+z*z
		if reseeded := (sim.Estimates{Mode: e.Mode, Sigma: e.Sigma, Seed: 8}); reseeded.OfJob(&j) != e.OfJob(&j) {
			differ++
		}
		wild := sim.Estimates{Mode: e.Mode, Sigma: 10, Seed: 7}
		less := time.Duration(1)
		for _, work := range []time.Duration{0, 1, time.Hour, traces.MaxTime} {
			j.Work = work
			d := wild.OfJob(&j)
			if d < less || d > 1<<61 {
				t.Fatalf("work %v is estimated as %d, less as %d", work, d, less)
			}
			less = d
		}
	}
	mean := sum / n
	if sd := math.Sqrt(squares/n - mean*mean); math.Abs(mean) > 0.03 || math.Abs(sd-0.5) > 0.03 || differ < n-1 {
		t.Errorf("the logarithms have mean %v and deviation %v, %d of %d depend on the seed", mean, sd, differ, n)
	}
}

// says is a predictor that says the same of all jobs.
type says predict.Forecast

func (s says) New() predict.Predictor { return s }
func (says) String() string           { return "says" }

func (says) Reset(time.Duration)                                        {}
func (s says) Predict(time.Duration, int, *traces.Job) predict.Forecast { return predict.Forecast(s) }
func (says) Started(time.Duration, int)                                 {}
func (says) Stopped(time.Duration, int, time.Duration)                  {}
func (says) Finished(time.Duration, int, time.Duration)                 {}
func (says) Dropped(time.Duration, int)                                 {}
func (says) AppendSnapshot(dst []byte) []byte                           { return dst }
func (says) RestoreSnapshot([]byte) error                               { return nil }

// A job of 100 s that runs at half its speed, so for 200 s, outlives every estimate. One number doubles; a forecast
// gives way to the quantiles at 3/4, 7/8, 15/16 and so on, those above 0.9 of Pareto's tail through the last two; equal
// quantiles double. A job that waits has run for as long as before.
func TestEstimatesOfJobsThatOutliveThem(t *testing.T) {
	forecast := says{Q: [predict.Quantiles]time.Duration{second, 5 * second, 10 * second, 20 * second, 40 * second},
		Seen: 9}
	equal := says{Q: [predict.Quantiles]time.Duration{3 * second, 3 * second, 3 * second, 3 * second, 3 * second}}
	// 20·2^(5/6) = 35.636, 40·1.6^x = 57.078, 40·3.2^x = 96.425, 40·6.4^x = 162.896 and 40·12.8^x = 275.190 with x = ln
	// 2/ln 2.5.
	at := []time.Duration{0, 9 * second, 10 * second, 25 * second, 36 * second, 60 * second, 110 * second, 199 * second}
	for _, c := range []struct {
		text string
		by   predict.Maker
		want [8]float64
	}{
		{"exact", nil, [8]float64{100, 100, 100, 100, 100, 100, 200, 200}},
		{"noisy:0", nil, [8]float64{100, 100, 100, 100, 100, 100, 200, 200}},
		{"trace", nil, [8]float64{10, 10, 20, 40, 40, 80, 160, 320}},
		{"none", nil, [8]float64{}},
		{"history", forecast, [8]float64{10, 10, 20, 35.636, 57.078, 96.425, 162.896, 275.190}},
		{"gbdt", forecast, [8]float64{10, 10, 20, 35.636, 57.078, 96.425, 162.896, 275.190}},
		{"gbdt:a.bin", equal, [8]float64{3, 12, 12, 48, 48, 96, 192, 384}},
	} {
		e, err := sim.ParseEstimates(c.text)
		if err != nil {
			t.Fatal(err)
		}
		cfg := sim.DefaultConfig()
		cfg.Predictor = c.by
		spec := cluster.Spec{Speeds: map[string]float64{"slow": 0.5},
			Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "slow"}}}}}
		j := job("A", 0, 100*second, 1)
		j.Estimate = 10 * second
		s := start(t, cfg, spec, []traces.Job{j})
		v := s.View()
		check := func(ran time.Duration, want float64) {
			t.Helper()
			if v.Ran(0) != ran {
				t.Fatalf("%s: A has run for %v, want %v", c.text, v.Ran(0), ran)
			}
			lasting, left := e.Lasting(v, 0), e.Left(v, 0)
			if math.Abs(lasting.Seconds()-want) > 1e-3 || left != max(0, lasting-ran) || want > 0 && left < 1 {
				t.Errorf("%s: after %v A is expected to run for %v, want %v s, and for %v more", c.text, ran, lasting, want, left)
			}
		}
		advance(t, s)
		check(0, c.want[0])
		if of := e.Of(v, 0); math.Abs(of.Seconds()-c.want[0]) > 1e-9 {
			t.Errorf("%s: the estimate is %v", c.text, of)
		}
		apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{0}})
		for i, ran := range at[1:] {
			apply(t, s, sim.Decision{Until: ran})
			advance(t, s)
			check(ran, c.want[i+1])
		}
		apply(t, s, sim.Decision{Op: sim.PreemptJob, Job: 0})
		apply(t, s, sim.Decision{Until: 1000 * second})
		advance(t, s)
		check(199*second, c.want[7])
	}
}

// A job that has no estimate says so in one sentence, when its estimate is first needed.
func TestEstimatesThatARunCannotGive(t *testing.T) {
	told, silent := job("told", 0, second, 1), job("silent", 0, second, 1)
	told.Estimate = second
	for _, c := range []struct {
		text string
		by   predict.Maker
		want [2]string // of told and silent
	}{
		{"exact", nil, [2]string{}},
		{"noisy:1", nil, [2]string{}},
		{"none", nil, [2]string{}},
		{"trace", nil,
			[2]string{
				1: "job silent has no estimate in its trace; use estimates history, exact or noisy:SIGMA, or trace.limit, a time that stands for those that are missing"}},
		{"history", says{}, [2]string{}},
		{"history", nil, [2]string{"estimates history come from a predictor, and this run has none",
			"estimates history come from a predictor, and this run has none"}},
		{"gbdt:a.bin", nil, [2]string{"estimates gbdt:a.bin come from a predictor, and this run has none",
			"estimates gbdt:a.bin come from a predictor, and this run has none"}},
	} {
		e, err := sim.ParseEstimates(c.text)
		if err != nil {
			t.Fatal(err)
		}
		cfg := sim.DefaultConfig()
		cfg.Predictor = c.by
		s := start(t, cfg, short(t, "pool:2"), []traces.Job{told, silent})
		advance(t, s)
		for j, want := range c.want {
			got := ""
			if err := e.Check(s.View(), sim.Job(j)); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s: job %d: %q, want %q", c.text, j, got, want)
			}
		}
	}
}
