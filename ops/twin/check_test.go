package twin

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/traces"
)

var midnight = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

func TestPinballByHand(t *testing.T) {
	q := Quantiles{0, 0, 0, 10, 20, 20, 20}
	// Above the first three by 10: 10·(0.05 + 0.1 + 0.25); on the median; below the others by 10: 10·(0.25 + 0.1 + 0.05).
	if got, want := q.pinball(10), (4.0+4.0)/7; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if _, low, high := q.interval(80); low != 0 || high != 20 {
		t.Errorf("%v to %v", low, high)
	}
	if got := (Stretch{2, 2}).of(Quantiles{0, 5, 5, 10, 20, 20, Seconds(math.Inf(1))}); got !=
		(Quantiles{0, 5, 5, 20, 80, 80, Seconds(math.Inf(1))}) {
		t.Error(got)
	}
	if got := quantile([]float64{1, 2, 3}, 0.5); got != 2 {
		t.Error(got)
	}
}

// sayings are forecasts of waits that are exp(N(8, 1)) seconds, whose intervals are spread times as wide as they should
// be, and what came of them.
func sayings(t *testing.T, spread, shift float64) ([]line, *Truth) {
	t.Helper()
	const seed = 4
	t.Logf("seed %d", seed)
	r := rng.Stream(seed, "twin-test/sayings")
	truth := NewTruth()
	truth.whole = true
	z := Quantiles{-1.645, -1.282, -0.674, 0, 0.674, 1.282, 1.645}
	var lines []line
	for i := range 200 {
		at := midnight.Add(time.Duration(i) * time.Hour)
		x := line{Log: logName, Report: Report{At: at, Horizon: 1e6}}
		for k := range 10 {
			f := JobForecast{ID: fmt.Sprint(i, "-", k), GPUs: 1, Submit: at.Add(-time.Minute)}
			for n := range f.Start {
				f.Start[n] = Seconds(math.Exp(8 + shift + spread*float64(z[n])))
			}
			x.Waiting = append(x.Waiting, f)
			truth.add(StartLine{f.ID, 1, f.Submit, at.Add(time.Duration(math.Exp(8+r.NormFloat64()) * float64(time.Second)))})
		}
		lines = append(lines, x)
	}
	return lines, truth
}

func TestCheckTellsGoodForecastsFromBad(t *testing.T) {
	raced.Alone(t)
	lines, truth := sayings(t, 1, 0)
	c := check(lines, truth, 1)
	if c.Forecasts != 2000 || !strings.Contains(c.Verdict, "hold") || c.Recal != nil ||
		math.Abs(c.Coverage[1].Share-.8) > .03 {
		t.Errorf("%+v", c)
	}
	lines, truth = sayings(t, 0.4, 0)
	if c := check(lines, truth, 1); !strings.Contains(c.Verdict, "over-confident") || c.Recal == nil ||
		c.Recal.Spread < 1.7 || math.Abs(c.Recal.Median-1) > 0.15 {
		t.Errorf("%+v", c)
	}
	lines, truth = sayings(t, 2.5, 0)
	if c := check(lines, truth, 1); !strings.Contains(c.Verdict, "under-confident") || c.Recal == nil ||
		c.Recal.Spread > 0.6 {
		t.Errorf("%+v", c)
	}
	lines, truth = sayings(t, 1, -math.Ln2)
	if c := check(lines, truth, 1); c.Recal == nil || c.Recal.Median < 1.7 ||
		!strings.Contains(c.Verdict, "mostly later") {
		t.Errorf("%+v", c)
	}
}

// Whether a forecast counts is decided by what was said alone: the latest start must have passed. A job that waited
// longer is late, whether it still waits or was withdrawn then; of one that was withdrawn before nobody knows.
func TestOpenForecasts(t *testing.T) {
	at := func(n int, waiting ...string) line {
		x := line{Log: logName, Report: Report{At: midnight.Add(time.Duration(n) * time.Hour), Horizon: 1e6}}
		for _, id := range waiting {
			x.Waiting = append(x.Waiting,
				JobForecast{ID: id, GPUs: 1, Submit: midnight, Start: Quantiles{1, 2, 3, 4, 5, 6, 7200}})
		}
		return x
	}
	truth := NewTruth()
	lines := []line{at(0, "a", "b", "d", "e"), at(1, "b", "c", "e"), at(3, "b", "c", "e", "f"), at(4, "b", "c")}
	lines[2].Started = []StartLine{{"a", 1, midnight, midnight.Add(90 * time.Minute)}}
	lines[3].Started = []StartLine{{"f", 1, midnight, midnight.Add(3*time.Hour + time.Minute)}}
	truth.lines(lines)
	c := check(lines, truth, 1)
	// Of the first look a holds, b and e are late, d is unknown; of the second b and c are late, e unknown, as it was last
	// seen after two hours; those of the last two are not due, f among them, although it is known that it has started.
	if c.Forecasts != 5 || c.NotDue != 6 || c.Waited != 4 || c.Unknown != 2 || c.Coverage[2].Late != 0.8 ||
		math.Abs(c.Coverage[2].Share-0.2) > 1e-9 || math.Abs(c.Coverage[2].Least-1./7) > 1e-9 {
		t.Errorf("%+v", c)
	}
	var b strings.Builder
	if err := c.WriteText(&b); err != nil || !strings.Contains(b.String(), "would have held 0 %") ||
		!strings.Contains(b.String(), "These are 4 jobs only") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// Logs of steer and of twin say who waited until when, so that jobs that never start are late, and not left out.
func TestLogsSayWhoWaited(t *testing.T) {
	steer := `{"observed":"2026-01-05T00:00:00Z","waiting":2,"jobs":[{"id":"a","gpus":1},{"id":"b","gpus":1},{"id":"r","gpus":1,"start":"2026-01-04T00:00:00Z"}]}
{"observed":"2026-01-05T01:00:00Z","waiting":3,"arrived":[{"id":"c","gpus":1}]}
{"observed":"2026-01-05T02:00:00Z","waiting":1,"started":[{"id":"a","gpus":1,"start":"2026-01-05T01:30:00Z"}],"ended":[{"id":"b","gpus":1}]}
`
	twin := `{"log":"clustergym-twin/1","at":"2026-01-05T03:00:00Z","waiting":[{"id":"d"}],"blocked":[{"id":"e"}]}`
	truth := NewTruth()
	for _, text := range []string{steer, twin} {
		if err := truth.readLog(strings.NewReader(text), "log"); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int{"a": 1, "b": 1, "c": 2, "d": 3, "e": 3}
	if len(truth.waits) != len(want) || !truth.until.Equal(midnight.Add(3*time.Hour)) {
		t.Errorf("%+v", truth)
	}
	for id, hour := range want {
		if got := truth.waits[id]; !got.Equal(midnight.Add(time.Duration(hour) * time.Hour)) {
			t.Errorf("%s waited until %v, want hour %d", id, got, hour)
		}
	}
}

func TestStartsAreRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sacct": "JobID|Submit|Start|End|AllocTRES\n7|1767571200|1767571260|1767571300|cpu=1,gres/gpu=4\n7.batch|1767571200|1767571999|1|\n8|1767571200|Unknown|Unknown|\n",
		"swf":   "; a header\n7 1767571200 60 100 4 -1 -1 4 900 -1 1 1 1 -1 -1 -1 -1 -1\n",
		"steer": `{"at":"2026-01-05T00:02:00Z","cluster":"x","started":[{"id":"7","gpus":4,"submit":"2026-01-05T00:00:00Z","start":"2026-01-05T00:01:00Z"}]}` + "\n" + `{"at":"2026-`,
		"twin":  `{"log":"clustergym-twin/1","at":"2026-01-05T00:02:00Z","started":[{"id":"7","gpus":4,"submit":"2026-01-05T00:00:00Z","start":"2026-01-05T00:01:00Z"}]}`,
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		truth := NewTruth()
		if err := truth.Read(file); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if start, ok := truth.of("7", midnight); !ok || !start.Equal(midnight.Add(time.Minute)) || len(truth.starts) != 1 ||
			truth.starts["7"][0].GPUs != 4 {
			t.Errorf("%s: %+v", name, truth.starts)
		}
	}
}

// Arrivals come at the hour of the week at which they came before, and more days change nothing in the earlier ones.
func TestArrivalsKeepTheHourOfTheWeek(t *testing.T) {
	var history []traces.Job
	for d := range 30 { // on working days at nine
		if d%7 < 5 {
			history = append(history,
				traces.Job{ID: fmt.Sprint(d), Submit: time.Duration(d)*day + 9*time.Hour, Work: time.Hour, GPUs: 1})
		}
	}
	a, err := newArrivals(history, day, nil)
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seed uint64, days int) (at []time.Duration) {
		c := caster{cfg: &Config{Seed: seed}, arrivals: a}
		var x actor
		c.arrivals.draw(&x.future, seed, 3, time.Hour, 30*day, days)
		for i := range x.future.Jobs {
			at = append(at, x.future.Jobs[i].Submit)
		}
		return at
	}
	for seed := range uint64(50) {
		for _, at := range draw(seed, 14) {
			if h := at + 30*day; h%day != 9*time.Hour || h/day%7 >= 5 {
				t.Fatalf("seed %d: one comes at %v of day %d of a week", seed, h%day, h/day%7)
			}
		}
		if long, short := draw(seed, 14), draw(seed, 3); fmt.Sprint(long[:len(short)]) != fmt.Sprint(short) {
			t.Fatalf("seed %d: %v and %v", seed, short, long)
		}
	}
}

// FuzzStarts: nothing that is read panics.
func FuzzStarts(f *testing.F) {
	f.Add("JobID|Start\n7|1767571260\n")
	f.Add("7 0 60 100 4 -1 -1 4 900 -1 1 1 1 -1 -1 -1 -1 -1\n")
	f.Add(`{"at":"2026-01-05T00:02:00Z"}`)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = recorded(strings.NewReader(text), "file")
		_ = NewTruth().readLog(strings.NewReader(text), "file")
	})
}
