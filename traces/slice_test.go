package traces

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const s = time.Second

// sent makes jobs of one GPU and 10 s, submitted at the given seconds, whose IDs are their positions.
func sent(at ...int) []Job {
	jobs := make([]Job, len(at))
	for i, t := range at {
		jobs[i] = Job{ID: fmt.Sprint(i), Submit: time.Duration(t) * s, Work: 10 * s, GPUs: 1, GPUMilli: 1000}
	}
	return jobs
}

func ids(jobs []Job) (out string) {
	for _, j := range jobs {
		out += j.ID
	}
	return out
}

// Sorting moves each job once; the order is that of a stable sort.
func TestSortStableIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := sent(rapid.SliceOfN(rapid.IntRange(0, 12), 0, 60).Draw(t, "submits")...)
		want := slices.Clone(jobs)
		slices.SortStableFunc(want, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
		if SortStable(jobs); !reflect.DeepEqual(jobs, want) {
			t.Fatalf("%s, want %s", ids(jobs), ids(want))
		}
	})
}

func TestSortStableCountsTheRowsBehindALaterOne(t *testing.T) {
	jobs := sent(5, 1, 5, 3, 6, 6)
	if moved := SortStable(jobs); moved != 2 || ids(jobs) != "130245" {
		t.Errorf("moved %d, order %s", moved, ids(jobs))
	}
	if moved := SortStable(jobs); moved != 0 {
		t.Errorf("sorted again: %d", moved)
	}
	rapid.Check(t, func(t *rapid.T) {
		jobs := sent(rapid.SliceOfN(rapid.IntRange(0, 9), 0, 30).Draw(t, "at")...)
		want := 0
		for i := range jobs {
			if slices.ContainsFunc(jobs[:i], func(a Job) bool { return a.Submit > jobs[i].Submit }) {
				want++
			}
		}
		if got := SortStable(jobs); got != want {
			t.Fatalf("moved %d, want %d", got, want)
		}
		for i := 1; i < len(jobs); i++ {
			a, b := jobs[i-1], jobs[i]
			if a.Submit > b.Submit || a.Submit == b.Submit && len(a.ID) == len(b.ID) && a.ID > b.ID {
				t.Fatalf("out of order: %s", ids(jobs))
			}
		}
	})
}

func TestScaleSubmitMovesSubmitsAndDeadlinesOnly(t *testing.T) {
	jobs := sent(100, 110, 130)
	jobs[2].Deadline = 190 * s
	before := slices.Clone(jobs)
	got, err := ScaleSubmit(nil, jobs, 2.5)
	if err != nil {
		t.Fatal(err)
	}
	want := sent(100, 125, 175)
	want[2].Deadline = (190 + 45) * s
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(jobs, before) {
		t.Error("the original changed")
	}
	if got, err := ScaleSubmit(sent(7), jobs, 1); err != nil || len(got) != 4 || !reflect.DeepEqual(got[1:], before) {
		t.Errorf("factor 1: %+v, %v", got, err)
	}
	for _, f := range []float64{0, -1, math.NaN(), math.Inf(1), 1e300} {
		if got, err := ScaleSubmit(nil, jobs, f); err == nil || len(got) != 0 {
			t.Errorf("factor %v: %v", f, got)
		}
	}
	buf := make([]Job, 0, 3)
	if n := testing.AllocsPerRun(100, func() { buf, _ = ScaleSubmit(buf[:0], jobs, 0.3) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLoadFactorGivesTheLoad(t *testing.T) {
	// By hand: 2 GPUs for 100 s and half a GPU for 40 s are 220 GPU-seconds; over 10 s on 4 GPUs that is load 5.5.
	jobs := []Job{{Work: 100 * s, GPUs: 2, GPUMilli: 1000}, {Submit: 10 * s, Work: 40 * s, GPUs: 1, GPUMilli: 500}}
	if f := LoadFactor(jobs, 4, 1.1); math.Abs(f-5) > 1e-12 {
		t.Errorf("factor %v, want 5", f)
	}
	for _, c := range []struct {
		jobs []Job
		gpus int
		load float64
	}{{nil, 4, 1}, {jobs[:1], 4, 1}, {jobs, 0, 1}, {jobs, 4, 0}, {jobs, 4, math.NaN()}, {jobs, 4, math.Inf(1)},
		{[]Job{{}, {Submit: s}}, 4, 1}} {
		if f := LoadFactor(c.jobs, c.gpus, c.load); f != 1 {
			t.Errorf("%d jobs, %d GPUs, load %v: %v, want 1", len(c.jobs), c.gpus, c.load, f)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "n")
		jobs := make([]Job, n)
		area := 0.0
		for i := range jobs {
			jobs[i] = Job{Submit: time.Duration(i*i+i) * s, Work: time.Duration(rapid.IntRange(1, 1e6).Draw(t, "work")) * s,
				GPUs: rapid.IntRange(1, 64).Draw(t, "gpus"), GPUMilli: 1000}
			area += jobs[i].Work.Seconds() * float64(jobs[i].GPUs)
		}
		scaled, err := ScaleSubmit(nil, jobs, LoadFactor(jobs, 32, 1.1))
		if err != nil {
			t.Fatal(err)
		}
		if load := area / (32 * scaled[n-1].Submit.Seconds()); math.Abs(load-1.1) > 1e-8 {
			t.Fatalf("load %v", load)
		}
	})
	if n := testing.AllocsPerRun(100, func() { LoadFactor(jobs, 4, 1.1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFilterCountsWhatItLeavesOut(t *testing.T) {
	jobs := sent(0, 1, 2, 3, 4)
	jobs[0].GPUs = 9
	jobs[1].Work = 0
	jobs[2].GPUs = 0
	jobs[3].GPUs = 8
	before := slices.Clone(jobs)
	kept, large, workless := Filter(jobs, 8)
	if ids(kept) != "34" || large != 1 || workless != 2 {
		t.Errorf("kept %s, large %d, workless %d", ids(kept), large, workless)
	}
	kept[0].ID = "changed"
	if !reflect.DeepEqual(jobs, before) {
		t.Error("the original changed")
	}
	if kept, large, _ := Filter(jobs, 0); len(kept) != 3 || large != 0 {
		t.Errorf("no limit: kept %d, large %d", len(kept), large)
	}
}

// A deadline that is as late as a time can be stays there; it must not wrap around into the past.
func TestLateDeadlinesDoNotWrapAround(t *testing.T) {
	jobs := []Job{{Submit: 0, Deadline: math.MaxInt64}, {Submit: time.Hour, Deadline: math.MaxInt64 - 1}}
	got, err := ScaleSubmit(nil, jobs, 3)
	if err != nil || got[0].Deadline != math.MaxInt64 || got[1].Deadline != math.MaxInt64 {
		t.Errorf("%v, %v", got, err)
	}
}
