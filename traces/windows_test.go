package traces

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func many(n int) []Job {
	jobs := make([]Job, n)
	for i := range jobs {
		jobs[i] = Job{ID: fmt.Sprint(i), Submit: time.Duration(i/3) * s, Work: s, GPUs: 1, GPUMilli: 1000}
	}
	return jobs
}

func TestWindowsByHand(t *testing.T) {
	// 100 jobs: training 0-69, validation 70-79, test 80-99. Windows of 4 with 3 before.
	w, err := NewWindows(many(100), 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p            Part
		count, start int
	}{{Training, 16, 3}, {Validation, 1, 73}, {Test, 4, 83}} {
		if n := w.Count(c.p); n != c.count {
			t.Errorf("%v: %d windows, want %d", c.p, n, c.count)
		}
		for i := range c.count {
			at, err := w.At(c.p, 99, i)
			warm, counted, first := at.Before(), at.Counting(), at.First
			if at := c.start + 4*i; err != nil || first != at || counted[0].ID != fmt.Sprint(at) || len(counted) != 4 ||
				warm[0].ID != fmt.Sprint(at-3) || len(warm) != 3 {
				t.Errorf("%v window %d: first %d, %d warm, %d counted, %v", c.p, i, first, len(warm), len(counted), err)
			}
		}
		for _, i := range []int{-2, c.count, math.MaxInt} {
			if _, err := w.At(c.p, 0, i); err == nil {
				t.Errorf("%v window %d: no error", c.p, i)
			}
		}
	}
	if len(w.Jobs(Validation)) != 10 || w.Jobs(Test)[0].ID != "80" || w.Jobs(9) != nil || w.Count(9) != 0 ||
		w.Length() != 4 || w.Warm() != 3 {
		t.Error("Jobs, Count, Length or Warm")
	}
	if _, err := w.At(9, 0, 0); err == nil {
		t.Error("part 9")
	}
}

func TestNoJobBelongsToTwoParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := many(rapid.IntRange(0, 400).Draw(t, "n"))
		length, warm := rapid.IntRange(1, 40).Draw(t, "length"), rapid.IntRange(0, 40).Draw(t, "warm")
		w, err := NewWindows(jobs, length, warm)
		if err != nil {
			if len(jobs)*7/10 >= length+warm {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		seeds := []uint64{0, 1, rapid.Uint64().Draw(t, "seed")}
		owner := map[string]Part{}
		counted := map[string]int{}
		for p := Training; p <= Test; p++ {
			n := w.Count(p)
			if n == 0 {
				if _, err := w.At(p, 0, -1); err == nil {
					t.Fatal("a window of a part without windows")
				}
				continue
			}
			for i := -1; i < n; i++ {
				for k, seed := range seeds {
					at, err := w.At(p, seed, i)
					before, in, first := at.Before(), at.Counting(), at.First
					if err != nil || len(before) != warm || len(in) != length || &in[0] != &jobs[first] ||
						warm > 0 && &before[0] != &jobs[first-warm] {
						t.Fatalf("%v window %d: %v", p, i, err)
					}
					for _, j := range append(append([]Job{}, before...), in...) {
						if o, ok := owner[j.ID]; ok && o != p {
							t.Fatalf("job %s is in %v and %v", j.ID, o, p)
						}
						owner[j.ID] = p
					}
					if i >= 0 && k == 0 {
						for _, j := range in {
							counted[j.ID]++
						}
					}
				}
			}
		}
		for id, k := range counted {
			if k != 1 {
				t.Fatalf("job %s is counted in %d windows", id, k)
			}
		}
	})
}

func TestTrainingWindowsAreDrawnUniformlyFromTheSeedAlone(t *testing.T) {
	w, err := NewWindows(many(30), 4, 3) // training 0-20: starts 3 to 17
	if err != nil {
		t.Fatal(err)
	}
	const n = 60000
	var hits [30]int
	for seed := range uint64(n) {
		at, err := w.At(Training, seed, -1)
		first := at.First
		if err != nil {
			t.Fatal(err)
		}
		hits[first]++
	}
	for i, h := range hits {
		want := 0.0
		if i >= 3 && i <= 17 {
			want = n / 15
		}
		if math.Abs(float64(h)-want) > 5*math.Sqrt(want) {
			t.Errorf("start %d drawn %d times, want about %.0f", i, h, want)
		}
	}
	at, _ := w.At(Training, 12345, -1)
	first := at.First
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if again, _ := w.At(Training, 12345, -1); again.First != first {
					t.Error("the same seed gave another window")
				}
			}
		})
	}
	wg.Wait()
}

func TestTooFewJobsIsOneSentenceWithTheNumberNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length, warm, n := rapid.IntRange(1,
			300).Draw(t, "length"), rapid.IntRange(0, 300).Draw(t, "warm"), rapid.IntRange(0, 3000).Draw(t, "n")
		w := &Windows{jobs: many(n), length: length, warm: warm}
		for p := Training; p <= Test; p++ {
			var need int
			msg := w.tooFew(p).Error()
			if _, err := fmt.Sscanf(msg[strings.LastIndex(msg, "needs"):], "needs %d jobs", &need); err != nil {
				t.Fatal(msg)
			}
			least := func(n int) int {
				w := Windows{jobs: many(n), length: length, warm: warm}
				return min(w.Count(Training), w.Count(Validation), w.Count(Test))
			}
			if least(need) < 1 || least(need-1) > 0 {
				t.Fatalf("%s, but %d jobs give every part %d windows and %d give %d", msg, need, least(need), need-1, least(need-1))
			}
		}
	})
	if _, err := NewWindows(many(100), 256, 256); err == nil || !strings.Contains(err.Error(), "needs 5114 jobs") {
		t.Errorf("%v", err)
	}
	w, err := NewWindows(many(732), 256, 256)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.At(Test, 0, 0); err == nil ||
		!strings.Contains(err.Error(), "test part (20 %) has 147 of the 732") ||
		!strings.Contains(err.Error(), "needs 5114 jobs") {
		t.Errorf("%v", err)
	}
}

func TestNewWindowsRefusesDisorderAndNonsense(t *testing.T) {
	jobs := many(50)
	jobs[20].Submit = 0
	if _, err := NewWindows(jobs, 4, 4); err == nil || !strings.Contains(err.Error(), "job 20") {
		t.Errorf("%v", err)
	}
	for _, c := range [][2]int{{0, 4}, {4, -1}, {-4, 0}} {
		if _, err := NewWindows(many(50), c[0], c[1]); err == nil {
			t.Errorf("windows of %d with %d before", c[0], c[1])
		}
	}
}

func TestAtAllocatesNothing(t *testing.T) {
	w, err := NewWindows(many(1000), 10, 10)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		seed++
		if _, err := w.At(Training, seed, -1); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAt(b *testing.B) {
	w, err := NewWindows(many(72000), 256, 256)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	seed := uint64(0)
	for b.Loop() {
		seed++
		if _, err := w.At(Training, seed, -1); err != nil {
			b.Fatal(err)
		}
	}
}
