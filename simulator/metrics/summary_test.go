package metrics_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"clustergym/simulator/metrics"
)

const second = time.Second

func done(pos int, submit, first, finish, run, work time.Duration, gpus int) metrics.Job {
	return metrics.Job{Pos: int32(pos), GPUs: int32(gpus), Milli: 1000, Submit: submit * second, First: first * second,
		Finish: finish * second,
		Run:    run * second, Work: work * second, GPUTime: float64(gpus) * (run * second).Seconds()}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Four jobs on 4 GPUs, worked out on paper.
//
//	     submit first finish run work GPUs   JCT  wait  first wait  slowdown  bounded
//	A    0      0     10     10  10   2      10   0     0           1         1
//	B    2      10    15     5   5    4      13   8     8           2.6       13/10
//	C    3      3     7      4   4    2      4    0     0           1         1 (4/10 < 1)
//	D    5      20    45     20  16   1      40   20    15          2.5       2.5 (overheads do not count)
func TestSummaryByHand(t *testing.T) {
	jobs := []metrics.Job{done(2, 3, 3, 7, 4, 4, 2), done(0, 0, 0, 10, 10, 10, 2), done(1, 2, 10, 15, 5, 5, 4),
		done(3, 5, 20, 45, 20, 16, 1)}
	jobs[3].Preemptions = 1
	s := metrics.Summarize(jobs, 4, 45*second)
	if s.Finished != 4 || s.Unfinished != 0 || s.Preemptions != 1 {
		t.Errorf("%d finished, %d not, %d preemptions", s.Finished, s.Unfinished, s.Preemptions)
	}
	near(t, "makespan", s.Makespan, 45)
	// JCT sorted: 4, 10, 13, 40; ranks (n−1)·q = 1.5, 2.7, 2.97.
	near(t, "JCT mean", s.JCT.Mean, 67.0/4)
	near(t, "JCT p50", s.JCT.P50, 11.5)
	near(t, "JCT p90", s.JCT.P90, 13+0.7*27)
	near(t, "JCT p99", s.JCT.P99, 13+0.97*27)
	near(t, "JCT max", s.JCT.Max, 40)
	near(t, "wait mean", s.Wait.Mean, 7)
	near(t, "wait p50", s.Wait.P50, 4)
	near(t, "first wait mean", s.FirstWait.Mean, 23.0/4)
	near(t, "slowdown mean", s.Slowdown.Mean, (1+2.6+1+2.5)/4)
	near(t, "slowdown max", s.Slowdown.Max, 2.6)
	near(t, "bounded slowdown mean", s.BoundedSlowdown.Mean, (1+1.3+1+2.5)/4)
	near(t, "utilisation", s.Utilization, (2.0*10+4*5+2*4+1*20)/(4*45))
	near(t, "effective", s.Effective, (2.0*10+4*5+2*4+1*16)/(4*45))
	// x = 1, 2.6, 1, 2.5: (Σx)² = 50.41, n·Σx² = 4·15.01.
	near(t, "Jain's index", s.Jain, 50.41/(4*15.01))
	near(t, "communication", s.Communication, 1-(1+1+1+0.8)/4)
}

func TestSharesCountByTheirShare(t *testing.T) {
	j := done(0, 0, 0, 10, 10, 10, 3)
	j.Milli, j.GPUTime = 250, 7.5
	near(t, "effective", metrics.Summarize([]metrics.Job{j}, 1, 10*second).Effective, 0.75)
}

func TestUnfinishedJobsAreCountedApart(t *testing.T) {
	jobs := []metrics.Job{done(0, 1, 1, 11, 10, 10, 1), done(1, 2, 5, 0, 15, 15, 1), done(2, 3, 0, 0, 0, 0, 1)}
	jobs[1].Finish, jobs[2].Finish, jobs[2].First = -1, -1, -1
	s := metrics.Summarize(jobs, 2, 20*second)
	if s.Finished != 1 || s.Unfinished != 2 {
		t.Errorf("%d finished, %d not", s.Finished, s.Unfinished)
	}
	near(t, "JCT", s.JCT.Max, 10) // of finished jobs only
	near(t, "makespan", s.Makespan, 19)
	near(t, "utilisation", s.Utilization, (10.0+15)/(2*19))
}

func TestNothingFinished(t *testing.T) {
	if s := metrics.Summarize(nil, 4, second); !reflect.DeepEqual(s, metrics.Summary{}) {
		t.Errorf("got %+v", s)
	}
	one := []metrics.Job{{Finish: -1, First: -1, GPUs: 1, Milli: 1000}}
	if s := metrics.Summarize(one, 4, 0); s.Unfinished != 1 || s.JCT != (metrics.Quantiles{}) || s.Utilization != 0 ||
		math.IsNaN(s.Communication) {
		t.Errorf("got %+v", s)
	}
	// A job that starts and ends at once gives no span to divide by.
	zero := []metrics.Job{done(0, 5, 5, 5, 0, 0, 1)}
	if s := metrics.Summarize(zero, 1, 5*second); s.Finished != 1 || s.Makespan != 0 || s.BoundedSlowdown.Max != 1 ||
		s.Slowdown.Max != 0 {
		t.Errorf("got %+v", s)
	}
}

// The sum of many long times overflows an int64; the mean must not.
func TestMeansDoNotOverflow(t *testing.T) {
	const huge = math.MaxInt64 / second / 2 // seconds, 146 years
	var jobs []metrics.Job
	for i := range 1000 {
		jobs = append(jobs, done(i, 0, huge/2, huge, huge/4, huge/4, 1))
	}
	s := metrics.Summarize(jobs, 1000, huge*second)
	near(t, "JCT mean", s.JCT.Mean, float64(huge))
	near(t, "wait mean", s.Wait.Mean, float64(huge-huge/4))
	near(t, "first wait mean", s.FirstWait.Mean, float64(huge/2))
}

// Means are integer sums divided once: the float64 nearest to the true mean, in any order of the jobs.
func TestMeansAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var jobs []metrics.Job
	sum := new(big.Int)
	for i := range 10_001 {
		jct := time.Duration(r.Int64N(int64(100 * time.Hour)))
		jobs = append(jobs, metrics.Job{Pos: int32(i), GPUs: 1, Milli: 1000, Finish: jct, Run: jct, Work: jct})
		sum.Add(sum, big.NewInt(int64(jct)))
	}
	want, _ := new(big.Rat).SetFrac(sum, big.NewInt(int64(len(jobs))*1e9)).Float64()
	a := metrics.Summarize(jobs, 1, 0)
	slices.Reverse(jobs)
	b := metrics.Summarize(jobs, 1, 0)
	if a.JCT.Mean != want || b.JCT.Mean != want {
		t.Errorf("%v and %v, want %v", a.JCT.Mean, b.JCT.Mean, want)
	}
}
