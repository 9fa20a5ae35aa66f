package traces

import (
	"math"
	"reflect"
	"testing"
	"time"
)

func TestSummarizeByHand(t *testing.T) {
	jobs := []Job{
		{Submit: 7200 * s, Work: 3600 * s, GPUs: 2, GPUMilli: 1000, User: "b", VC: "x", Name: "train", Group: "g",
			Estimate: s, Status: Failed},
		{Submit: 0, Work: 1800 * s, GPUs: 1, GPUMilli: 500, User: "a", Model: "m", Name: "train", Group: "g",
			Status: Completed},
		{Submit: 3600 * s, Work: 0, GPUs: 2, GPUMilli: 1000, User: "b", VC: "y", Name: "train", Group: "h",
			Status: Completed},
		{Submit: 3600 * s, Work: 100 * s, GPUs: 0, GPUMilli: 1000, VC: "x", Name: "train"},
	}
	got, err := Summarize(&Slice{Jobs: jobs})
	if err != nil {
		t.Fatal(err)
	}
	want := Stats{
		Jobs: 4, First: 0, Last: 7200 * s, Span: 7200 * s, JobsPerHour: 2,
		Work:     Spread{P50: 1800 * s, P90: 3600 * s, P99: 3600 * s, Mean: 1375 * s, Max: 3600 * s},
		GPUHours: 2.25,
		Sizes:    []Size{{0, 1, 0}, {500, 1, .25}, {2000, 2, 2}},
		Users:    []Count{{"b", 2}, {"a", 1}}, VCs: []Count{{"x", 2}, {"y", 1}}, Models: []Count{{"m", 1}},
		Groups: []Count{{"g", 2}, {"h", 1}}, Names: []Count{{"train", 4}}, Repeats: 1, // of b; who sent the last is not known
		Statuses: [4]int{1, 2, 1, 0}, NoEstimate: 3, ZeroWork: 1, Shared: 1,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if n := got.Between(1, 2000); n != 1 || got.Between(500, 0) != 3 {
		t.Errorf("between: %d, %d", n, got.Between(500, 0))
	}
	if st, err := Summarize(&Slice{}); err != nil || !reflect.DeepEqual(st, Stats{}) {
		t.Errorf("no jobs: %+v, %v", st, err)
	}
}

func TestQuantilesAreNearestRank(t *testing.T) {
	d := make([]time.Duration, 100)
	for i := range d {
		d[i] = time.Duration(i)
	}
	if got := SpreadOf(d); got != (Spread{P50: 50, P90: 90, P99: 99, Mean: 49, Max: 99}) {
		t.Errorf("%+v", got)
	}
	if got := SpreadOf(d[7:8]); got != (Spread{7, 7, 7, 7, 7}) {
		t.Errorf("%+v", got)
	}
}

func TestSumsDoNotOverflow(t *testing.T) {
	d := []time.Duration{math.MaxInt64 - 4, math.MaxInt64 - 2, math.MaxInt64}
	if got := SpreadOf(d).Mean; got != math.MaxInt64-2 {
		t.Errorf("mean %d", got)
	}
	jobs := []Job{{Work: math.MaxInt64, GPUs: 1 << 30, GPUMilli: 1000},
		{Work: math.MaxInt64, GPUs: 1 << 30, GPUMilli: 1000}}
	st, err := Summarize(&Slice{Jobs: jobs})
	if want := 2 * float64(1<<30) * time.Duration(math.MaxInt64).Hours(); err != nil ||
		math.Abs(st.GPUHours/want-1) > 1e-12 {
		t.Errorf("%v GPU-hours, %v; want %v", st.GPUHours, err, want)
	}
}
