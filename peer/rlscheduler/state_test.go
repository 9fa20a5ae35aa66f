package rlscheduler

import (
	"context"
	"math"
	"testing"
)

// By hand, at second 100 on 10 processors: 4 are free; 3 come back at 160, 3 at 400. Job a (5 processors, 50 s, waits
// 100 s) fits at 160, job b (8, 20 s, waits 40 s) at 400, job c (2, 100 s, waits 0 s) now.
func TestTraitsOfTheStateByHand(t *testing.T) {
	jobs := []Job{
		{ID: "x", Run: 160, Request: 160, Procs: 3}, {ID: "y", Run: 400, Request: 400, Procs: 3},
		{ID: "a", Submit: 0, Run: 50, Request: 50, Procs: 5}, {ID: "b", Submit: 60, Run: 20, Request: 20, Procs: 8},
		{ID: "c", Submit: 100, Run: 100, Request: 100, Procs: 2},
	}
	pace := 1.0/50 + 1.0/20 + 1.0/100
	traits := map[string][StateTraits]float64{
		"a": {1, math.Log1p(60.0 / 60), math.Log1p(60 * pace), math.Log(150.0 / 50), math.Log(50)},
		"b": {1, math.Log1p(300.0 / 60), math.Log1p(300 * pace), math.Log(60.0 / 20), math.Log(20)},
		"c": {0, 0, 0, 0, 0},
	}
	m := NewMachine(10, false)
	m.jobs, m.next, m.now, m.free = jobs, len(jobs), 100, 4
	m.waiting = []int32{2, 3, 4}
	m.running = []ending{{at: 160, asked: 160, procs: 3}, {at: 400, asked: 400, seq: 1, procs: 3}}
	r := seeded(t)
	chosen := map[int]int{}
	for range 300 {
		k := &StateKey{}
		for i := range k.Job {
			k.Job[i] = r.NormFloat64() / 10
		}
		for i := range k.State {
			k.State[i] = r.NormFloat64()
		}
		want, least := 0, math.Inf(1)
		for i, at := range m.waiting {
			x := k.Job.Key(&jobs[at])
			for c, v := range traits[jobs[at].ID] {
				x += k.State[c] * v
			}
			if x < least {
				want, least = i, x
			}
		}
		s := NewStated(k)
		s.Reset(m)
		if got := s.Choose(m); got != want {
			t.Fatalf("key %v: job %s, want %s", *k, m.Job(got).ID, m.Job(want).ID)
		}
		chosen[want]++
	}
	if len(chosen) < 3 {
		t.Errorf("the test shows little: choices %v", chosen)
	}
}

// Without weights of the state the policy plays as the key alone does, and choosing allocates nothing.
func TestWithoutTheStateItIsTheKey(t *testing.T) {
	r := seeded(t)
	for _, backfill := range []bool{false, true} {
		jobs := crowd(r, 300)
		k := &StateKey{}
		for i := range k.Job {
			k.Job[i] = r.NormFloat64()
		}
		m := NewMachine(16, backfill)
		want := PlayKeyed(m, NewKeyed(&k.Job), jobs)
		s := NewStated(k)
		if got := PlayStated(m, s, jobs); got != want {
			t.Errorf("back-filling %v: %v, want %v", backfill, got, want)
		}
		k.State = [StateTraits]float64{1, 1, 1, 1, 1}
		if n := testing.AllocsPerRun(5, func() { PlayStated(m, s, jobs) }); n > 0 {
			t.Errorf("a play allocates %v times", n)
		}
	}
}

// The search finds a key about as good in its forty windows as the one it begins at, or better, the same for any number
// of workers.
func TestTuneState(t *testing.T) {
	jobs := crowd(seeded(t), 900)
	cfg := TuneConfig{Starts: 3, Generations: 20, Population: 12, Windows: 2, Length: 200}
	from := Linear{1, 1}
	one, err := TuneState(context.Background(), 16, false, jobs, from, cfg, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	three, err := TuneState(context.Background(), 16, false, jobs, from, cfg, 5, 3)
	if err != nil || one != three {
		t.Errorf("one worker finds %v, three find %v, %v", one, three, err)
	}
	m := NewMachine(16, false)
	keyed, stated := NewKeyed(&from), NewStated(&one)
	before := spread(func(jobs []Job) float64 { return PlayKeyed(m, keyed, jobs) }, jobs, 200)
	if after := spread(func(jobs []Job) float64 { return PlayStated(m, stated, jobs) }, jobs, 200); after > 1.1*before {
		t.Errorf("the key of the state has %v, the key it began at %v", after, before)
	}
	if _, err := TuneState(context.Background(), 16, false, jobs[:10], from, cfg, 5, 1); err == nil {
		t.Error("ten jobs are enough for windows of 200")
	}
}
