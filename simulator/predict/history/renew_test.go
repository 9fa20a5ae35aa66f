package history_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/internal/testseed"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/predict/predicttest"
	"clustergym/traces"
)

// A renewed forecast is the one that an equal job would get at its submit now, and changes nothing.
func TestARenewedForecastIsThatOfAnEqualJob(t *testing.T) {
	seed := testseed.Or(71)
	r := rand.New(rand.NewPCG(seed, 1))
	p := history.New(history.NewArchive(nil))
	p.Reset(0)
	waiting := map[int]*traces.Job{}
	differ, next := 0, 1<<10
	for _, e := range predicttest.Draw(r, 150, 5) {
		predicttest.Play(p, []predicttest.Event{e})
		switch e.Kind {
		case predicttest.Submit:
			job := e.Job
			waiting[e.Number] = &job
			first := p.Predict(e.At, next, &job)
			p.Dropped(e.At, next)
			if got := p.Renew(e.At, e.Number, &job); got != first {
				t.Fatalf("seed %d: at its submit %v, renewed at once %v", seed, first, got)
			}
		default:
			delete(waiting, e.Number) // it runs, or has left
		}
		for number, job := range waiting {
			before := p.AppendSnapshot(nil)
			got := p.Renew(e.At, number, job)
			if !bytes.Equal(p.AppendSnapshot(nil), before) {
				t.Fatalf("seed %d: a renewed forecast changes what is known", seed)
			}
			want := p.Predict(e.At, next, job)
			p.Dropped(e.At, next)
			if got != want {
				t.Fatalf("seed %d: at %v job %d would be forecast to run for %v, renewed %v", seed, e.At, number, want, got)
			}
			if got != p.Renew(e.At, number, job) {
				t.Fatal("asked again it says something else")
			}
			differ++
		}
	}
	if differ < 100 {
		t.Errorf("%d forecasts were renewed", differ)
	}
}

// Two jobs of a script run for a minute, and a third waits. Both ends are news for it. That a job runs itself is no
// news for it, but it is for the others.
func TestNewsOfEqualJobs(t *testing.T) {
	p := history.New(history.NewArchive(nil))
	p.Reset(0)
	j := traces.Job{User: "u", Name: "n", GPUs: 1, GPUMilli: 1000}
	var first predict.Forecast
	for i := range 3 {
		first = p.Predict(0, i, &j)
	}
	p.Started(0, 0)
	p.Started(0, 1)
	if got := p.Renew(30*time.Second, 2, &j); got != first {
		t.Errorf("nothing has ended, and the forecast is %v, want %v", got, first)
	}
	p.Finished(time.Minute, 0, time.Minute)
	if got := p.Renew(time.Minute, 2, &j); got.Median() != time.Minute || got.Seen != 1 {
		t.Errorf("after one end the forecast is %v of %d jobs, want a median of a minute of 1", got.Median(), got.Seen)
	}
	// The second has outlived the median: it counts for the third, not for itself.
	if itself, other := p.Renew(time.Hour, 1, &j), p.Renew(time.Hour, 2, &j); itself.Seen != 1 || other.Seen != 2 {
		t.Errorf("the forecast is of %d jobs for the one that runs and of %d for the other, want 1 and 2", itself.Seen,
			other.Seen)
	}
}
