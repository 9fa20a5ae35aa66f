package gbdt

import (
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// A predictor that is fitted once has the same trees at the end of a run, and those depend on nothing that ends after
// the job at which they were fitted. One with an archive fits anew.
func TestFixedTreesAreFittedOnce(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestWorkers, which takes less time; make unit runs this test")
	}
	c := synth.DefaultConfig()
	c.Jobs = 2400
	jobs, err := synth.Generate(c, 5)
	if err != nil {
		t.Fatal(err)
	}
	const first = 1200
	origin := jobs[first].Submit
	later := append([]traces.Job(nil), jobs...)
	for i := range later {
		if j := &later[i]; j.Submit+j.Work >= origin {
			j.Work += 100 * time.Hour
		}
	}
	own := append([]traces.Job(nil), jobs[first:]...)
	for i := range own {
		own[i].Submit -= origin
	}
	row := make([]float32, columns)
	say := func(p *predictor) (q [5]float64) {
		p.model.Predict(row, q[:])
		return q
	}
	run := func(m *Maker) (before, after [5]float64, p *predictor) {
		p = m.New().(*predictor)
		Replay(own, atOrigin{p, origin, func() { before = say(p) }}, func(time.Duration, int, *traces.Job) {})
		return before, say(p), p
	}
	before, after, p := run(NewFixed(jobs, first, 1))
	if before != after || p.fitted != 0 {
		t.Errorf("fitted once: %v at the start, %v at the end, %d jobs", before, after, p.fitted)
	}
	if other, _, _ := run(NewFixed(later, first, 1)); other != before {
		t.Errorf("jobs that end later change the trees: %v and %v", other, before)
	}
	if _, _, p := run(NewArchive(jobs, 1)); p.fitted == 0 {
		t.Error("a predictor with an archive has not fitted anew")
	}
	if a, b := NewFixed(jobs, first, 1).String(), NewArchive(jobs, 1).String(); a == b ||
		NewFixed(jobs, first+1, 1).String() == a {
		t.Errorf("the makers are called %q and %q", a, b)
	}
}

// atOrigin begins a replay at its own origin.
type atOrigin struct {
	*predictor
	origin time.Duration
	begun  func()
}

func (a atOrigin) Reset(time.Duration) {
	a.predictor.Reset(a.origin)
	a.begun()
}
