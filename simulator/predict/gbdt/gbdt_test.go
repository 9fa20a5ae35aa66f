package gbdt_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/internal/snap"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/boost"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/predict/predicttest"
	"clustergym/traces"
)

const magic = "CGgbdt1"

// With the first fit well before the end.
func TestContract(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestWorkers, which takes less time; make unit runs this test")
	}
	const n = 1200
	p := gbdt.New(1).New()
	p.Reset(0)
	all := predicttest.Play(p, predicttest.Draw(rand.New(rand.NewPCG(n, 77)), n, 5))
	if got := all[n*8/10].Seen; got < gbdt.First {
		t.Fatalf("only %d jobs have ended after eight tenths of the run", got)
	}
	predicttest.Run(t, gbdt.New(1), magic, n)
}

func drawn(r *rand.Rand, n int) (jobs []traces.Job) {
	for _, e := range predicttest.Draw(r, n, 5) {
		if e.Kind == predicttest.Submit {
			jobs = append(jobs, e.Job)
		}
	}
	return jobs
}

// Until First jobs have ended forecasts are history's, and then others.
func TestTheFirstForecastsAreHistorys(t *testing.T) {
	p, h := gbdt.New(2).New(), history.NewArchive(nil).New()
	p.Reset(0)
	h.Reset(0)
	jobs := drawn(rand.New(rand.NewPCG(1, 1)), gbdt.First+1)
	for i := range jobs {
		j := &jobs[i]
		f, g := p.Predict(j.Submit, 0, j), h.Predict(j.Submit, 0, j)
		if early := i < gbdt.First; (f == g) != early {
			t.Fatalf("job %d: %v, history says %v", i, f, g)
		}
		for _, p := range []predict.Predictor{p, h} {
			p.Started(j.Submit, 0)
			p.Finished(j.Submit, 0, j.Work)
		}
	}
}

// The number of workers changes nothing.
func TestWorkers(t *testing.T) {
	jobs := drawn(rand.New(rand.NewPCG(2, 2)), 1500)
	events := predicttest.Draw(rand.New(rand.NewPCG(2, 3)), 900, 5)
	var want []predict.Forecast
	for _, workers := range []int{1, 3} {
		p := gbdt.NewArchive(jobs, workers).New()
		p.Reset(jobs[1200].Submit)
		got := predicttest.Play(p, events)
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("%d workers forecast otherwise", workers)
		}
	}
}

// A run that begins in the middle of a trace begins with trees fitted to what had ended at one of the Slices points
// before, and depends on nothing that ends later.
func TestTheArchiveKnowsNothingOfLaterEnds(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestWorkers, which takes less time; make unit runs this test")
	}
	r := rand.New(rand.NewPCG(3, 3))
	jobs := drawn(r, 1500)
	events := predicttest.Draw(r, 60, 5)
	play := func(jobs []traces.Job, origin time.Duration) []predict.Forecast {
		p := gbdt.NewArchive(jobs, 2).New()
		p.Reset(origin)
		return predicttest.Play(p, events)
	}
	for _, at := range []int{300, 800, 1000, 1400} {
		origin := jobs[at].Submit
		var other []traces.Job
		for i := range jobs {
			j := jobs[i]
			if j.Submit+j.Work >= origin {
				j.Work = max(0, origin-j.Submit) + time.Duration(r.IntN(1e12))
				j.User, j.Name, j.CPUMilli = "u1", "u1 n1", 1000
			}
			other = append(other, j)
		}
		want := play(jobs, origin)
		if !slices.Equal(play(other, origin), want) {
			t.Errorf("job %d: forecasts depend on jobs that end at %v or later", at, origin)
		}
		p := history.NewArchive(jobs).New()
		p.Reset(origin)
		ofHistory := slices.Equal(predicttest.Play(p, events), want)
		if early := at < gbdt.First; ofHistory != early {
			t.Errorf("job %d: forecasts are history's: %t, want %t", at, ofHistory, early)
		}
	}
}

// A file that is not a model, or one of other features or quantiles, is refused in one sentence; a good one gives
// forecasts from the first job on, with any archive.
func TestModelsOfFiles(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestWorkers, which takes less time; make unit runs this test")
	}
	model := func(names []string, levels []float64) []byte {
		const n = 200
		r := rand.New(rand.NewPCG(4, 4))
		x, y := make([]float32, n*len(names)), make([]float64, n)
		for i := range x {
			x[i] = r.Float32()
		}
		for i := range y {
			y[i] = 3 * r.Float64()
		}
		m, err := boost.Fit(t.Context(), names, x, y, levels, boost.DefaultOptions(), 1)
		if err != nil {
			t.Fatal(err)
		}
		b := snap.Begin(nil, "clustergym gbdt 1\n") // as AppendBinary writes it, which knows no other features
		b = snap.String(b, "a trace")
		b = snap.Int(b, 0)
		b = snap.Int(b, 0)
		return snap.Seal(snap.Bytes(b, m.AppendBinary(nil)), 0)
	}
	read := func(b []byte, archive []traces.Job) (*gbdt.Maker, error) {
		f, err := gbdt.Parse(b)
		if err != nil {
			return nil, err
		}
		return gbdt.NewFitted(f, archive, 1), nil
	}
	names, levels := gbdt.Features(), predict.Levels[:]
	good := model(names, levels)
	renamed, swapped := slices.Clone(names), slices.Clone(names)
	renamed[3] += "x"
	swapped[0], swapped[1] = swapped[1], swapped[0]
	for what, b := range map[string][]byte{
		"nothing":          nil,
		"text":             []byte("hello, I am no model\n"),
		"a part":           good[:len(good)/2],
		"a changed byte":   append(slices.Clone(good[:100]), append([]byte{good[100] ^ 1}, good[101:]...)...),
		"fewer features":   model(names[:5], levels),
		"another feature":  model(renamed, levels),
		"another order":    model(swapped, levels),
		"fewer quantiles":  model(names, levels[:3]),
		"other quantiles":  model(names, []float64{0.1, 0.2, 0.5, 0.75, 0.9}),
		"another snapshot": history.NewArchive(nil).New().AppendSnapshot(nil),
	} {
		m, err := read(b, nil)
		if err == nil || m != nil {
			t.Errorf("%s is read", what)
			continue
		}
		if s := err.Error(); strings.Contains(s, "\n") || len(s) > 250 || len(s) < 20 {
			t.Errorf("%s: the error is no sentence: %q", what, s)
		}
	}
	jobs := drawn(rand.New(rand.NewPCG(5, 5)), 300)
	for _, archive := range [][]traces.Job{nil, jobs} {
		m, err := read(good, archive)
		if err != nil {
			t.Fatal(err)
		}
		p, h := m.New(), history.NewArchive(archive).New()
		p.Reset(jobs[200].Submit)
		h.Reset(jobs[200].Submit)
		if p.Predict(0, 0, &jobs[0]) == h.Predict(0, 0, &jobs[0]) {
			t.Error("the first forecast is not the model's")
		}
		if other, _ := read(model(names, levels), archive); other.String() != m.String() {
			t.Errorf("the same model has the names %q and %q", m, other)
		}
	}
	one, _ := read(good, nil)
	two, _ := read(good, jobs)
	all := []string{one.String(), two.String(), gbdt.New(1).String(), gbdt.NewArchive(jobs, 1).String(),
		gbdt.NewArchive(jobs[:299], 1).String()}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("different makers have one name: %q", all)
	}
	t.Run("contract", func(t *testing.T) { predicttest.Run(t, two, magic, 150) })
}

// Jobs are replayed in order: each ends before any job that is submitted at its end or later, and jobs that end
// together in order of the trace.
func TestReplay(t *testing.T) {
	jobs := []traces.Job{{ID: "a", Work: 5}, {ID: "b", Submit: 1, Work: 4}, {ID: "c", Submit: 1, Work: 1},
		{ID: "d", Submit: 2, Work: 9}, {ID: "e", Submit: 5}}
	l := &listener{Predictor: history.NewArchive(nil).New()}
	gbdt.Replay(jobs, l, func(end time.Duration, _ int, j *traces.Job) { l.log += fmt.Sprint(" ", j.ID, "@", int(end)) })
	if want := " +a +b +c c@2 +d a@5 b@5 +e e@5 d@11"; l.log != want {
		t.Errorf("replayed as %q\nwant        %q", l.log, want)
	}
}

type listener struct {
	predict.Predictor
	log string
}

func (l *listener) Predict(now time.Duration, n int, j *traces.Job) predict.Forecast {
	l.log += " +" + j.ID
	return l.Predictor.Predict(now, n, j)
}
