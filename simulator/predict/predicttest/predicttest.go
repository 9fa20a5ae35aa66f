// Package predicttest tests implementations of predict.Predictor: Run checks the contract, and Draw draws the events of
// a run for tests of their own.
package predicttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"clustergym/simulator/predict"
	"clustergym/traces"
)

// Kind says what an event tells a predictor.
type Kind uint8

// The kinds, in the order in which a job can go through them.
const (
	Submit Kind = iota // Predict
	Start
	Stop
	Finish
	Drop
)

// Event is one call of a predictor.
type Event struct {
	Kind   Kind
	At     time.Duration
	Number int
	Ran    time.Duration // in all, of Stop and Finish
	Job    traces.Job    // of Submit
}

// life is a job in the system.
type life struct {
	number  int
	ran     time.Duration
	started time.Duration
	runs    bool
	work    time.Duration
}

// Draw draws the events of a run in which n jobs are submitted. Jobs have up to users users, with names of their own,
// or none; some have requested times. They start, are stopped, start again, finish or are dropped, and numbers are used
// again. A third of the jobs is in the system at the end.
func Draw(r *rand.Rand, n, users int) (events []Event) {
	var (
		in    []life
		spare []int
		next  int
		now   time.Duration
	)
	leave := func(i int) {
		spare = append(spare, in[i].number)
		in[i] = in[len(in)-1]
		in = in[:len(in)-1]
	}
	for submitted := 0; submitted < n; {
		if r.IntN(3) > 0 {
			now += time.Duration(r.ExpFloat64() * float64(10*time.Second))
		}
		if len(in) == 0 || len(in) < n/3 && r.IntN(3) == 0 {
			number := next
			if k := len(spare); k > 0 {
				number, spare = spare[k-1], spare[:k-1]
			} else {
				next++
			}
			j := job(r, users, submitted, now)
			events = append(events, Event{Kind: Submit, At: now, Number: number, Job: j})
			in = append(in, life{number: number, work: j.Work})
			submitted++
			continue
		}
		i := r.IntN(len(in))
		l := &in[i]
		switch {
		case !l.runs && r.IntN(8) == 0:
			events = append(events, Event{Kind: Drop, At: now, Number: l.number})
			leave(i)
		case !l.runs:
			l.runs, l.started = true, now
			events = append(events, Event{Kind: Start, At: now, Number: l.number})
		case r.IntN(6) == 0:
			l.runs = false
			l.ran += now - l.started
			events = append(events, Event{Kind: Stop, At: now, Number: l.number, Ran: l.ran})
		case l.ran+now-l.started >= l.work:
			l.ran += now - l.started
			events = append(events, Event{Kind: Finish, At: now, Number: l.number, Ran: l.ran})
			leave(i)
		}
	}
	return events
}

func job(r *rand.Rand, users, i int, now time.Duration) traces.Job {
	j := traces.Job{ID: fmt.Sprint("j", i), Submit: now, GPUs: 1 << r.IntN(3), GPUMilli: 1000,
		VC: fmt.Sprint("vc", r.IntN(2))}
	if u := r.IntN(users + 1); u > 0 {
		j.User = fmt.Sprint("u", u)
		if k := r.IntN(3); k > 0 {
			j.Name = fmt.Sprint(j.User, " n", k)
		}
	}
	j.Work = time.Duration(float64(time.Duration(len(j.User)+len(j.Name))*5*time.Second)*math.Exp(r.NormFloat64())) +
		time.Duration(r.IntN(2))
	if r.IntN(4) == 0 {
		j.Estimate = j.Work * time.Duration(1+r.IntN(5))
	}
	if r.IntN(3) == 0 {
		j.CPUMilli, j.MemBytes = 4000, 1<<34
	}
	return j
}

// Play tells p the events and returns its forecasts.
func Play(p predict.Predictor, events []Event) []predict.Forecast { return play(p, events, nil) }

// play is Play, which appends to all.
func play(p predict.Predictor, events []Event, all []predict.Forecast) []predict.Forecast {
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case Submit:
			all = append(all, p.Predict(e.At, e.Number, &e.Job))
		case Start:
			p.Started(e.At, e.Number)
		case Stop:
			p.Stopped(e.At, e.Number, e.Ran)
		case Finish:
			p.Finished(e.At, e.Number, e.Ran)
		case Drop:
			p.Dropped(e.At, e.Number)
		}
	}
	return all
}
