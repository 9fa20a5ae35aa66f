package queuerank_test

import (
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// starts remembers when each job starts, by its position.
type starts []time.Duration

func (s *starts) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Start {
			for v.Pos(e.Job) >= len(*s) {
				*s = append(*s, -1)
			}
			(*s)[v.Pos(e.Job)] = e.At
		}
	}
	return nil
}

// endless makes jobs like drawn's until it has made n, without memory of its own.
type endless struct {
	r    *rand.Rand
	at   time.Duration
	n    int
	gaps int // seconds between two jobs, at most
}

func (s *endless) Next(j *traces.Job) error {
	if s.n == 0 {
		return io.EOF
	}
	s.n--
	s.at += time.Duration(s.r.IntN(s.gaps)) * time.Second
	*j = job(s.at, time.Duration(1+s.r.IntN(2000))*time.Second, 1+s.r.IntN(64))
	return nil
}

// A stream and an episode of the same jobs and choices start every job at the same time, whatever is known of run times
// and whether or not jobs are back-filled.
func TestAStreamIsAnEpisode(t *testing.T) {
	var jobs []traces.Job
	from := &endless{r: rand.New(rand.NewPCG(8, 8)), n: 1500, gaps: 240}
	for {
		var j traces.Job
		if from.Next(&j) == io.EOF {
			break
		}
		j.Submit -= j.Submit % (4 * time.Minute) // several come together
		jobs = append(jobs, j)
	}
	first := jobs[0].Submit
	for i := range jobs {
		jobs[i].Submit -= first
	}
	for _, backfill := range []string{"none", "easy"} {
		for _, rule := range []string{"fifo", "sjf", "unicep"} {
			cfg := queuerank.DefaultConfig()
			cfg.Reward, cfg.Backfill, cfg.Visible = "minus", backfill, 16
			e, ts := open(t, cfg, cluster.Spec{Pool: 256}, jobs...)
			actor, err := queuerank.NewRule(rule, e)
			if err != nil {
				t.Fatal(err)
			}
			choose := func(ts *env.TimeStep) (int32, error) { return actor.Action(ts.Mask, nil) }
			var want, got starts
			e.Watch(&want)
			if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
				t.Fatal(err)
			}
			play(t, e, ts, func() int {
				slot, err := choose(ts)
				if err != nil {
					t.Fatal(err)
				}
				return int(slot)
			})
			e.Watch(&got)
			all, err := e.Stream(ctx, &traces.Slice{Jobs: jobs}, env.NewTimeStep(e.Spec()), choose)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if len(got) != len(want) || got[i] != want[i] {
					t.Fatalf("%s, back-filling %s: job %d of %d starts at %v, in an episode at %v", rule, backfill, i, len(got),
						got[i], want[i])
				}
			}
			if all.Jobs != len(jobs) || all.Choices == 0 || all.Longest < 17 ||
				math.Abs(all.BSLD-ts.Info[queuerank.InfoBSLD]) > 1e-9*all.BSLD {
				t.Errorf("%s, back-filling %s: %+v, in an episode a bounded slowdown of %v", rule, backfill, all,
					ts.Info[queuerank.InfoBSLD])
			}
			// An episode is what it was before.
			if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What an environment does not take is left out and counted; an empty log has no jobs; a slot that is not there is an
// error.
func TestStreamsOfFewJobs(t *testing.T) {
	cfg := queuerank.DefaultConfig()
	cfg.MaxGPUs = 2
	e, ts := open(t, cfg, cluster.Spec{Pool: 4}, job(0, time.Second, 1))
	zero := func(*env.TimeStep) (int32, error) { return 0, nil }
	jobs := []traces.Job{job(0, time.Second, 3), job(0, 0, 1), job(0, 9*time.Second, 2), job(0, 9*time.Second, 2),
		job(time.Second, time.Second, 5)}
	all, err := e.Stream(ctx, &traces.Slice{Jobs: jobs}, ts, zero)
	if err != nil || all.Jobs != 2 || all.Refused != 3 || all.Choices != 1 || all.BSLD != 1 || all.JCT != 9 {
		t.Errorf("%+v, %v", all, err)
	}
	if all, err = e.Stream(ctx, &traces.Slice{Jobs: jobs[:2]}, ts, zero); err != nil || all.Jobs != 0 || all.Refused != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err = e.Stream(ctx, &traces.Slice{Jobs: jobs}, ts, func(*env.TimeStep) (int32, error) { return 7, nil }); err ==
		nil {
		t.Error("slot 7 of 2 was taken")
	}
	if err := e.Step(ctx, env.Action{Disc: []int32{0}}, ts); err == nil {
		t.Error("a stream leaves an episode")
	}
}

// A longer log needs no more memory, and no more allocations.
func TestAStreamAllocatesNothing(t *testing.T) {
	if checked {
		t.Skip("the checks of the simulator allocate")
	}
	cfg := queuerank.DefaultConfig()
	cfg.Backfill = "easy"
	e, ts := open(t, cfg, cluster.Spec{Pool: 256}, job(0, time.Second, 1))
	actor, err := queuerank.NewRule("sjf", e)
	if err != nil {
		t.Fatal(err)
	}
	choose := func(ts *env.TimeStep) (int32, error) { return actor.Action(ts.Mask, nil) }
	made := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := e.Stream(ctx, &endless{r: rand.New(rand.NewPCG(8, 8)), n: n, gaps: 400}, ts, choose); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	made(40000)
	if few, many := made(1000), made(40000); many > few+1000 {
		t.Errorf("%d allocations for 1,000 jobs, %d for 40,000", few, many)
	}
}
