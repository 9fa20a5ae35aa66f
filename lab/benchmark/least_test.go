package benchmark

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDelaysWorkedByHand(t *testing.T) {
	for _, c := range []struct {
		what string
		jobs []job
		want float64
	}{
		{"one job", []job{{at: 7, time: 3, size: 0.25, weight: 1}}, 3},
		{"one after the other, the shorter first: 1 + 4", []job{{time: 3, size: 1, weight: 1}, {time: 1, size: 1, weight: 1}},
			5},
		{"at once", []job{{time: 2, size: 0.5, weight: 1}, {time: 2, size: 0.5, weight: 1}}, 4},
		// The second stops the first: it is served from 1 to 2, in the mean at 1.5, and ends half a second later. The first
		// is served from 0 to 1 and from 2 to 5, in the mean at 2.75, and ends two seconds later. The second comes at 1: 2 +
		// 4.75 − 1.
		{"one that comes later", []job{{time: 4, size: 1, weight: 1}, {at: 1, time: 1, size: 1, weight: 1}}, 5.75},
		{"weights: 3 × 3 + 4", []job{{time: 3, size: 1, weight: 4}, {time: 1, size: 1, weight: 1}}, 16},
		{"a gap", []job{{time: 1, size: 1, weight: 1}, {at: 100, time: 1, size: 1, weight: 1}}, 2},
		{"nothing to do", []job{{time: 0, size: 1, weight: 1}, {time: 1, size: 0, weight: 1}}, 1},
	} {
		if got := leastDelay(c.jobs); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: got %v, expected %v", c.what, got, c.want)
		}
	}
}

// No schedule gets below the bound: lists in many orders, each job as early as its gang fits.
func TestNoScheduleIsBetter(t *testing.T) {
	const gpus = 8
	src := rand.New(rand.NewPCG(1, 2))
	closest := math.Inf(1)
	for range 300 {
		jobs := make([]job, 1+src.IntN(8))
		wide := make([]int, len(jobs))
		for i := range jobs {
			wide[i] = 1 << src.IntN(4)
			jobs[i] = job{at: float64(src.IntN(20)), time: float64(1 + src.IntN(30)), size: float64(wide[i]) / gpus,
				weight: 1 + src.Float64()}
		}
		least := leastDelay(append([]job(nil), jobs...))
		for range 20 {
			sum := 0.0
			used := make([]int, 1000) // by second
			for _, i := range src.Perm(len(jobs)) {
				j, start := &jobs[i], 0
				for start = int(j.at); ; start++ {
					fits := true
					for s := range int(j.time) {
						fits = fits && used[start+s]+wide[i] <= gpus
					}
					if fits {
						break
					}
				}
				for s := range int(j.time) {
					used[start+s] += wide[i]
				}
				sum += j.weight * (float64(start) + j.time - j.at)
			}
			if sum < least*(1-1e-9) {
				t.Fatalf("%+v: a schedule has %v, and the bound is %v", jobs, sum, least)
			}
			closest = min(closest, sum/least)
		}
	}
	if closest > 1.0001 {
		t.Errorf("no schedule is closer to its bound than %v times", closest)
	}
}
