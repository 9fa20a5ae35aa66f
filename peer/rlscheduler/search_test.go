package rlscheduler

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/testseed"
)

// seeded returns a generator whose seed is printed if the test fails; CLUSTERGYM_TEST_SEED chooses it.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := testseed.Or(1)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s=%d repeats this run", testseed.Key, seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// crowd returns n jobs for a machine of 16 processors, on which a queue builds up.
func crowd(r *rand.Rand, n int) []Job {
	var jobs []Job
	at := int64(0)
	for i := range n {
		at += int64(r.ExpFloat64() * 300)
		run := 1 + int64(math.Exp(r.Float64()*8))
		jobs = append(jobs, Job{ID: fmt.Sprint(i), Submit: at, Run: run, Request: run, Procs: 1 + int32(r.IntN(16))})
	}
	return jobs
}

func newSearch(t testing.TB, pool []Job, change func(*SearchConfig)) *Search {
	t.Helper()
	cfg := SearchConfig{Candidates: 3, Futures: 8, Horizon: 30, Confidence: 1}
	if change != nil {
		change(&cfg)
	}
	s, err := NewSearch(&Linear{0: 1, 1: 1}, [][]Job{pool}, cfg, 7)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decisions plays jobs by p and returns what it chose, up to the first decision at or after the time end.
func decisions(m *Machine, p Policy, jobs []Job, end int64) (chosen []int) {
	m.Reset(jobs)
	for !m.Done() && m.Now() < end {
		i := p.Choose(m)
		chosen = append(chosen, m.Place(i))
		m.Commit(i)
	}
	return chosen
}

// What comes later changes no decision: neither other jobs in the place of those that have not arrived, nor an end of
// the jobs; nor do run times that differ from the requests, before they end.
func TestASearchDoesNotKnowTheFuture(t *testing.T) {
	r := seeded(t)
	pool := crowd(r, 2000)
	for _, backfill := range []bool{false, true} {
		jobs := crowd(r, 200)
		cut := 60 + r.IntN(80)
		end := jobs[cut].Submit
		m := NewMachine(16, backfill)
		want := decisions(m, newSearch(t, pool, nil), jobs, end)
		if len(want) == 0 {
			t.Fatal("no decisions")
		}
		other := slices.Clone(jobs[:cut])
		for _, j := range crowd(r, 50) {
			j.Submit += end
			other = append(other, j)
		}
		for name, jobs := range map[string][]Job{"other jobs": other, "no more jobs": jobs[:cut]} {
			if got := decisions(m, newSearch(t, pool, nil), jobs, end); !slices.Equal(got[:min(len(got), len(want))],
				want[:min(len(got), len(want))]) {
				t.Errorf("back-filling %v, %s: decisions change", backfill, name)
			}
		}
	}
	// Two jobs, one of which ends long before its request, are the same to a search while they run.
	early := []Job{{Run: 50, Request: 4000, Procs: 16}, {Submit: 1, Run: 5, Request: 5, Procs: 3}}
	late := slices.Clone(early)
	late[0].Run = 4000
	for i, j := range crowd(r, 20) {
		j.Submit = int64(2 + i)
		early, late = append(early, j), append(late, j)
	}
	// The second is committed to at 1 and holds the queue until the first ends, so what a search sees is compared at that
	// point.
	a, b := newSearch(t, pool, nil), newSearch(t, pool, nil)
	m, o := NewMachine(16, false), NewMachine(16, false)
	m.Reset(early)
	o.Reset(late)
	m.Commit(0)
	o.Commit(0)
	a.begin(m)
	b.begin(o)
	if !slices.Equal(a.root.running, b.root.running) || !slices.Equal(a.jobs, b.jobs) {
		t.Errorf("a search sees %v and %v running", a.root.running, b.root.running)
	}
}

// Where a gain must exceed a hundred standard errors no decision deviates: the schedule is the base's.
func TestWithoutConfidenceASearchIsItsBase(t *testing.T) {
	r := seeded(t)
	pool, jobs := crowd(r, 2000), crowd(r, 150)
	for _, backfill := range []bool{false, true} {
		m := NewMachine(16, backfill)
		want := PlayKeyed(m, NewKeyed(&Linear{0: 1, 1: 1}), jobs)
		s := newSearch(t, pool, func(c *SearchConfig) { c.Confidence = 100; c.Futures = 40 })
		m.Reset(jobs)
		got := Play(m, s)
		if n := s.Tally(); n.Deviated == 0 && got != want || n.Decisions == 0 {
			t.Errorf("back-filling %v: %v, want the base's %v; %+v", backfill, got, want, n)
		}
	}
}

// One job needs the whole machine for two days; short jobs follow it. A policy that commits to the long job first
// pays for it in every future. The base does, and the search does not.
func TestASearchLetsShortJobsGoFirst(t *testing.T) {
	var pool []Job
	for i := range 3000 {
		pool = append(pool, Job{Submit: int64(600 * i), Run: 10, Request: 10, Procs: 1})
	}
	cfg := SearchConfig{Candidates: 2, Futures: 16, Horizon: 40, Confidence: 3}
	s, err := NewSearch(&Linear{0: -1}, [][]Job{pool}, cfg, 1) // the longest first
	if err != nil {
		t.Fatal(err)
	}
	m := NewMachine(8, false)
	m.Reset([]Job{{Run: 100, Request: 100, Procs: 8}, {Submit: 1, Run: 50, Request: 50, Procs: 8},
		{Submit: 2, Run: 2 * day, Request: 2 * day, Procs: 8}, {Submit: 3, Run: 10, Request: 10, Procs: 1}})
	m.Commit(0)
	m.Commit(0)
	if m.Waiting() != 2 || m.Job(NewKeyedOn(m, &Linear{0: -1}).Choose(m)).Run != 2*day {
		t.Fatalf("%d jobs wait", m.Waiting())
	}
	if got := m.Job(s.Choose(m)).Run; got != 10 {
		t.Errorf("the search commits to the job of %d s, want that of 10 s", got)
	}
}

// NewKeyedOn returns the policy of a key for a machine's jobs.
func NewKeyedOn(m *Machine, key Key) *Keyed {
	k := NewKeyed(key)
	k.Reset(m)
	return k
}

// A queue that an observer has left in another order changes no decision.
func TestASearchDoesNotDependOnTheOrderOfTheQueue(t *testing.T) {
	r := seeded(t)
	pool, jobs := crowd(r, 2000), crowd(r, 120)
	m, o := NewMachine(16, false), NewMachine(16, false)
	a, b := newSearch(t, pool, nil), newSearch(t, pool, nil)
	m.Reset(jobs)
	o.Reset(jobs)
	sjf, err := NewRule("sjf")
	if err != nil {
		t.Fatal(err)
	}
	for !m.Done() {
		sjf.sort(o)
		i, k := a.Choose(m), b.Choose(o)
		if m.Place(i) != o.Place(k) {
			t.Fatalf("job %d, and %d with another order", m.Place(i), o.Place(k))
		}
		m.Commit(i)
		o.Commit(k)
	}
}

func TestADecisionAllocatesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	pool, jobs := crowd(r, 2000), crowd(r, 200)
	s := newSearch(t, pool, nil)
	m := NewMachine(16, true)
	decisions(m, s, jobs, math.MaxInt64) // memory grows to what it needs
	m.Reset(jobs)
	for m.Waiting() < 10 {
		m.Commit(0)
	}
	if n := testing.AllocsPerRun(20, func() { s.Choose(m) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestSearchMistakes(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	if _, err := NewSearch(&Linear{}, [][]Job{crowd(r, 20)}, SearchConfig{Candidates: 1, Futures: 4, Horizon: 30},
		1); err == nil || !strings.Contains(err.Error(), "has 30 jobs after a day") {
		t.Error(err)
	}
	if _, err := NewSearch(&Linear{}, nil, SearchConfig{Confidence: -1}, 1); err == nil ||
		strings.Count(err.Error(), "want") != 4 {
		t.Error(err)
	}
	if _, err := Tune(context.Background(), 16, false, crowd(r, 20),
		TuneConfig{Starts: 1, Generations: 1, Population: 4, Windows: 1, Length: 30}, 1, 1); err == nil ||
		!strings.Contains(err.Error(), "20 jobs to tune a key on, want a window of 30") {
		t.Error(err)
	}
}

// A tuned key is far better than where the tuning began with the signs turned, no worse than first come, first served,
// and the same for any number of workers.
func TestTuning(t *testing.T) {
	r := seeded(t)
	jobs := crowd(r, 1500)
	cfg := TuneConfig{Starts: 3, Generations: 20, Population: 16, Windows: 3, Length: 200}
	one, err := Tune(context.Background(), 16, false, jobs, cfg, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	three, err := Tune(context.Background(), 16, false, jobs, cfg, 5, 3)
	if err != nil || one != three {
		t.Errorf("one worker finds %v, three find %v, %v", one, three, err)
	}
	m := NewMachine(16, false)
	fcfs, err := NewRule("fcfs")
	if err != nil {
		t.Fatal(err)
	}
	keyed := NewKeyed(&one)
	tuned := spread(func(jobs []Job) float64 { return PlayKeyed(m, keyed, jobs) }, jobs, 200)
	if oldest := PlayKeyed(m, NewKeyed(fcfs), jobs); tuned > oldest {
		t.Errorf("the tuned key has %v in windows, first come first served %v in all", tuned, oldest)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Tune(stopped, 16, false, jobs, cfg, 5, 1); err == nil {
		t.Error("a cancelled tuning ends without an error")
	}
}

// The cost of one rollout of 256 jobs: 56 that wait and 200 that arrive.
func BenchmarkRollout(b *testing.B) {
	for _, backfill := range []bool{false, true} {
		b.Run(fmt.Sprintf("back-filling=%v", backfill), func(b *testing.B) {
			r := rand.New(rand.NewPCG(5, 5))
			pool, jobs := crowd(r, 3000), crowd(r, 400)
			s := newSearch(b, pool, func(c *SearchConfig) { c.Horizon = 200 })
			m := NewMachine(16, backfill)
			m.Reset(jobs)
			for i := range jobs[:56] {
				jobs[i].Submit = 0
			}
			m.Reset(jobs)
			for m.Waiting() < 56 && m.next < 57 {
				m.event()
			}
			s.begin(m)
			s.future(m.now)
			b.ReportAllocs()
			for b.Loop() {
				s.rollout(0)
			}
		})
	}
}
