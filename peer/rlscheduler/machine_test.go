package rlscheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clustergym/traces"
)

// first chooses the first of the queue.
type first struct{}

func (first) Choose(*Machine) int { return 0 }

func played(procs int, backfill bool, p Policy, jobs ...Job) string {
	m := NewMachine(procs, backfill)
	starts := make([]int64, len(jobs))
	m.OnStart = func(j int, at int64) { starts[j] = at }
	m.Reset(jobs)
	Play(m, p)
	return strings.Trim(fmt.Sprint(starts), "[]")
}

// j is a job that asks for its run time.
func j(submit, run int64, procs int32) Job {
	return Job{Submit: submit, Run: run, Request: run, Procs: procs}
}

func TestSchedulesByHand(t *testing.T) {
	sjf, err := NewRule("sjf")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		backfill bool
		policy   Policy
		jobs     []Job
		want     string
	}{
		{"in order", false, first{}, []Job{j(5, 10, 2), j(6, 10, 2), j(7, 10, 1)}, "5 15 15"},
		// The second is held from 1 on; the third, which is shorter and would fit, waits behind it.
		{"a job is committed to", false, sjf, []Job{j(0, 10, 2), j(1, 5, 3), j(2, 1, 1)}, "0 10 15"},
		// It ends at 3, before the shadow time 10.
		{"back-filled", true, sjf, []Job{j(0, 10, 2), j(1, 5, 3), j(2, 1, 1)}, "0 10 2"},
		// It would end at 10, which is not before the shadow time.
		{"not back-filled", true, sjf, []Job{j(0, 10, 2), j(1, 5, 3), j(2, 8, 1)}, "0 10 15"},
		// The request counts: the first is asked to run until 10 and ends at 4, the third would run for 3 s and asks for 9.
		{"by requests", true, sjf, []Job{{Run: 4, Request: 10, Procs: 2}, j(1, 5, 3),
			{Submit: 2, Run: 3, Request: 9, Procs: 1}}, "0 4 9"},
		// At 10 the third arrives before the first ends, so both wait; the second is held already.
		{"arrivals first", false, sjf, []Job{j(0, 10, 3), j(1, 5, 3), j(10, 1, 3), j(10, 2, 3)}, "0 10 15 16"},
		// Nobody waits at 0 after the first has started: the second is asked about alone, though a shorter one comes in the
		// same second.
		{"one arrival at a time", false, sjf, []Job{j(0, 10, 3), j(0, 5, 3), j(0, 1, 3)}, "0 10 15"},
	} {
		if got := played(3, c.backfill, c.policy, c.jobs...); got != c.want {
			t.Errorf("%s: jobs start at %s, want %s", c.name, got, c.want)
		}
	}
}

func TestSlowdownIsBounded(t *testing.T) {
	for _, c := range []struct {
		run, wait int64
		want      float64
	}{{10, 0, 1}, {100, 50, 1.5}, {1, 5, 1}, {1, 19, 2}, {5, 0, 1}} {
		if got := (&Job{Run: c.run}).Slowdown(c.wait); got != c.want {
			t.Errorf("a job of %d s that waits for %d s: %v, want %v", c.run, c.wait, got, c.want)
		}
	}
}

func TestJobsOfALog(t *testing.T) {
	second := time.Second
	got := Jobs([]traces.Job{
		{ID: "a", Submit: 3 * second, Work: 2 * second, GPUs: 4},
		{ID: "idle", Submit: 3 * second, GPUs: 4},
		{ID: "wide", Submit: 3 * second, Work: second, GPUs: 5},
		{ID: "b", Submit: 4 * second, Work: 2 * second, Estimate: 9 * second, GPUs: 1},
	}, 4)
	if want := "[{a 3 2 2 4} {b 4 2 9 1}]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// A look, or a copy of the machine that plays on, changes nothing for the machine.
func TestCopiesAreApart(t *testing.T) {
	var jobs []Job
	for i := range 300 {
		jobs = append(jobs, j(int64(i*7%11+3*i), int64(1+i*37%101), int32(1+i*13%7)))
	}
	for i := 1; i < len(jobs); i++ {
		jobs[i].Submit = max(jobs[i].Submit, jobs[i-1].Submit)
	}
	for _, backfill := range []bool{false, true} {
		want := played(8, backfill, first{}, jobs...)
		m, other := NewMachine(8, backfill), NewMachine(8, backfill)
		starts := make([]int64, len(jobs))
		m.OnStart = func(j int, at int64) { starts[j] = at }
		m.Reset(jobs)
		for !m.Done() {
			other.CopyFrom(m)
			other.Commit(other.Waiting() - 1)
			Play(other, first{})
			if other.Started() != len(jobs) {
				t.Fatalf("a copy has started %d jobs, want %d", other.Started(), len(jobs))
			}
			m.Commit(0)
		}
		if got := strings.Trim(fmt.Sprint(starts), "[]"); got != want {
			t.Errorf("back-filling %v: starts %s, want %s", backfill, got, want)
		}
	}
}

func TestAnUnknownRule(t *testing.T) {
	if _, err := NewRule("f9"); err == nil ||
		!strings.Contains(err.Error(), `rule "f9" is unknown, want one of fcfs, sjf,`) {
		t.Error(err)
	}
}
