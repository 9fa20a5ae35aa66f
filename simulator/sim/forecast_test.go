package sim_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/snap"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/gbdt"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// owned gives jobs users and names, so that some jobs resemble each other.
func owned(r *rand.Rand, jobs []traces.Job) []traces.Job {
	for i := range jobs {
		j := &jobs[i]
		if j.User = []string{"", "u", "v"}[r.IntN(3)]; j.User != "" {
			j.Name = []string{"", "train"}[r.IntN(2)]
		}
		if r.IntN(4) == 0 {
			j.Estimate = j.Work*2 + second
		}
	}
	return jobs
}

// forecasts writes down every point and what is expected of every job in the system.
type forecasts struct {
	lines
	n int
}

func (f *forecasts) Observe(v *sim.View, p *sim.Point) error {
	for _, list := range [][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			g := v.Forecast(j)
			if !g.Valid() {
				return fmt.Errorf("the forecast for %s is %+v", v.Trace(j).ID, g)
			}
			e := sim.Estimates{Mode: sim.EstimateHistory}
			if e.Lasting(v, j) <= v.Ran(j) || e.Left(v, j) < 1 || e.Of(v, j) != g.Median() {
				return fmt.Errorf("%s has run for %v and is expected to run for %v of %v", v.Trace(j).ID, v.Ran(j), e.Lasting(v, j),
					g)
			}
			fmt.Fprint(&f.b, v.Pos(j), *g, e.Lasting(v, j), " ")
			f.n++
		}
	}
	return f.lines.Observe(v, p)
}

// A run with a predictor is saved at a random moment and restored in a new simulator. It continues identically,
// forecasts included, with stops, failures, moves and jobs that are dropped.
func TestRunsWithAPredictorContinueIdentically(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		stop := rapid.IntRange(0, 120).Draw(t, "decisions before")
		r := rand.New(rand.NewPCG(seed, 3))
		spec, cfg := richSpec(r), richConfig(r, second)
		past := owned(r, mixed(r, 40, 4, second))
		origin := past[r.IntN(len(past))].Submit
		cfg.Predictor = []predict.Maker{history.NewArchive(nil), history.NewArchive(past), gbdt.New(1)}[rapid.IntRange(0,
			2).Draw(t, "predictor")]
		jobs := owned(r, rich(r, 40, 4, second))
		stream := func() *traces.Slice {
			s := new(traces.Slice)
			s.ResetAt(jobs, origin)
			return s
		}
		s := start(t, cfg, spec, nil)
		if err := s.Reset(stream()); err != nil {
			t.Fatal(err)
		}
		c := newChaos(t, r)
		c.legal, c.moves = true, true
		open := c.until(t, s, stop)
		saved := s.AppendSnapshot([]byte("before"))[len("before"):]
		fork := start(t, cfg, spec, jobs[:0])
		if err := fork.RestoreSnapshot(saved, stream()); err != nil {
			t.Fatal(err)
		}
		if again := fork.AppendSnapshot(nil); !bytes.Equal(again, saved) {
			t.Fatal("the snapshot of the restored run differs")
		}
		var logs [2]forecasts
		for k, one := range []*sim.Simulator{s, fork} {
			c := newChaos(t, rand.New(rand.NewPCG(seed, 4)))
			c.legal, c.moves = true, true
			if open {
				c.play(t, one)
			}
			runChaos(t, one, c, &logs[k])
		}
		if a, b := logs[0].b.String(), logs[1].b.String(); a != b {
			t.Fatalf("straight on:\n%s\nrestored:\n%s", a, b)
		}
	})
}

// savedForecasts returns a run midway with every feature on and a predictor.
func savedForecasts(t fatal) (cfg sim.Config, spec cluster.Spec, jobs []traces.Job, snapshot []byte) {
	cfg, spec, _, _ = savedRich(t)
	cfg.Predictor = history.NewArchive(nil)
	r := rand.New(rand.NewPCG(5, 5))
	jobs = owned(r, rich(r, 20, 4, second))
	s := start(t, cfg, spec, jobs)
	c := newChaos(t, r)
	c.legal, c.moves = true, true
	for s.View().Ended() < 6 {
		advance(t, s)
		c.play(t, s)
	}
	advance(t, s)
	return cfg, spec, jobs, s.AppendSnapshot(nil)
}

// A run does not continue under another predictor, and says so in one sentence.
func TestSnapshotsOfOtherPredictorsAreRefused(t *testing.T) {
	cfg, spec, jobs, with := savedForecasts(t)
	none := cfg
	none.Predictor = nil
	s := start(t, none, spec, jobs)
	advance(t, s)
	without := s.AppendSnapshot(nil)
	for name, c := range map[string]struct {
		predictor predict.Maker
		snapshot  []byte
	}{
		"none instead of history":    {nil, with},
		"gbdt instead of history":    {gbdt.New(1), with},
		"an archive instead of none": {history.NewArchive(jobs), with},
		"history instead of none":    {history.NewArchive(nil), without},
		"gbdt instead of none":       {gbdt.New(1), without},
	} {
		to := cfg
		to.Predictor = c.predictor
		s := start(t, to, spec, jobs)
		before := s.AppendSnapshot(nil)
		err := s.RestoreSnapshot(c.snapshot, &traces.Slice{Jobs: jobs})
		if !errors.Is(err, sim.ErrSnapshot) || strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), "another configuration") {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(s.AppendSnapshot(nil), before) {
			t.Errorf("%s: the refused snapshot changed the run", name)
		}
	}
	if err := start(t, cfg, spec, nil).RestoreSnapshot(with, &traces.Slice{Jobs: jobs}); err != nil {
		t.Error(err)
	}
}

// FuzzRestoreForecasts changes what a snapshot says of the predictor, behind right checksums: it is refused, or gives a
// run that can be played.
func FuzzRestoreForecasts(f *testing.F) {
	const magic, inner = "CGsim2", "CGhist1"
	cfg, spec, jobs, good := savedForecasts(f)
	at := bytes.Index(good, []byte(inner))
	size := int(binary.LittleEndian.Uint64(good[at-8:]))
	head, body, tail := good[:at-8], good[at+len(inner):at+size-4], good[at+size:len(good)-4]
	f.Add(bytes.Clone(body), bytes.Clone(tail))
	for _, x := range []byte{1, 0x80, 0xff} {
		for i := 0; i < len(body); i += 29 {
			bad := bytes.Clone(body)
			bad[i] ^= x
			f.Add(bad, tail)
		}
		for i := 0; i < len(tail); i += 7 {
			bad := bytes.Clone(tail)
			bad[i] ^= x
			f.Add(body, bad)
		}
	}
	f.Add([]byte{}, tail)
	f.Add(body, []byte{})
	f.Fuzz(func(t *testing.T, body, tail []byte) {
		s := start(t, cfg, spec, jobs)
		before := s.AppendSnapshot(nil)
		whole := snap.Bytes(bytes.Clone(head), snap.Seal(append(snap.Begin(nil, inner), body...), 0))
		whole = snap.Seal(append(whole, tail...), 0)
		if err := s.RestoreSnapshot(whole, &traces.Slice{Jobs: jobs}); err != nil {
			if !errors.Is(err, sim.ErrSnapshot) {
				t.Fatal(err)
			}
			if !bytes.Equal(s.AppendSnapshot(nil), before) {
				t.Fatalf("refused (%v), and has changed the run", err)
			}
			return
		}
		if err := s.RestoreSnapshot(s.AppendSnapshot(nil), &traces.Slice{Jobs: jobs}); err != nil {
			t.Fatalf("what was restored cannot be restored again: %v", err)
		}
		c, v := newChaos(t, rand.New(rand.NewPCG(1, 1))), s.View()
		c.legal, c.moves = true, true
		c.play(t, s)
		var l forecasts
		for range 50 {
			p, err := s.Advance(context.Background())
			if err != nil {
				return
			}
			if err := l.Observe(v, p); err != nil {
				t.Fatal(err)
			}
			if v.Over() {
				return
			}
			c.play(t, s)
		}
	})
}

// spy is a predictor that writes down what it is told.
type spy struct {
	predict.Predictor
	log bytes.Buffer
}

func (s *spy) New() predict.Predictor { return s }
func (s *spy) String() string         { return "spy" }

func (s *spy) Reset(origin time.Duration) { s.Predictor.Reset(origin) }
func (s *spy) Predict(now time.Duration, n int, j *traces.Job) predict.Forecast {
	fmt.Fprintln(&s.log, now, sim.Submit, n, j.ID)
	return s.Predictor.Predict(now, n, j)
}

func (s *spy) Started(now time.Duration, n int) { fmt.Fprintln(&s.log, now, sim.Start, n) }
func (s *spy) Stopped(now time.Duration, n int, ran time.Duration) {
	fmt.Fprintln(&s.log, now, "stop", n, ran)
}

func (s *spy) Finished(now time.Duration, n int, ran time.Duration) {
	fmt.Fprintln(&s.log, now, sim.Finish, n, ran)
}
func (s *spy) Dropped(now time.Duration, n int) { fmt.Fprintln(&s.log, now, sim.Drop, n) }

// A predictor is told of every arrival, start, stop, finish and drop, in order, with how long the job has run.
func TestPredictorsAreToldWhatHappens(t *testing.T) {
	kinds := map[sim.EventKind]int{}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		spec, cfg := richSpec(r), richConfig(r, second)
		p := &spy{Predictor: history.NewArchive(nil).New()}
		cfg.Predictor = p
		s := start(t, cfg, spec, rich(r, 30, 4, second))
		c := newChaos(t, r)
		c.legal, c.moves = true, true
		var want bytes.Buffer
		ran, since := map[sim.Job]time.Duration{}, map[sim.Job]time.Duration{}
		runChaos(t, s, c, observed(func(v *sim.View, p *sim.Point) error {
			for _, e := range p.Events {
				switch kinds[e.Kind]++; e.Kind {
				case sim.Submit:
					ran[e.Job] = 0
					fmt.Fprintln(&want, e.At, e.Kind, e.Job, v.Trace(e.Job).ID)
				case sim.Start:
					since[e.Job] = e.At
					fmt.Fprintln(&want, e.At, e.Kind, e.Job)
				case sim.Preempt, sim.Fail:
					ran[e.Job] += e.At - since[e.Job]
					fmt.Fprintln(&want, e.At, "stop", e.Job, ran[e.Job])
				case sim.Finish:
					fmt.Fprintln(&want, e.At, e.Kind, e.Job, ran[e.Job]+e.At-since[e.Job])
				case sim.Drop:
					fmt.Fprintln(&want, e.At, e.Kind, e.Job)
				}
			}
			return nil
		}))
		if p.log.String() != want.String() {
			t.Fatalf("seed %d: told\n%s\nwant\n%s", seed, p.log.String(), want.String())
		}
	}
	for _, k := range []sim.EventKind{sim.Submit, sim.Start, sim.Preempt, sim.Finish, sim.Drop} {
		if kinds[k] < 50 {
			t.Errorf("only %d times %v", kinds[k], k)
		}
	}
}

type observed func(v *sim.View, p *sim.Point) error

func (f observed) Observe(v *sim.View, p *sim.Point) error { return f(v, p) }

// In steady state a run with history allocates nothing.
func TestHistoryAllocatesNothing(t *testing.T) {
	if checked {
		t.Skip("checking the books after every change allocates")
	}
	r := rand.New(rand.NewPCG(7, 7))
	jobs := owned(r, plain(2000, 32))
	cfg := sim.DefaultConfig()
	cfg.Predictor = history.NewArchive(owned(r, plain(500, 32)))
	s := start(t, cfg, short(t, "pool:32"), jobs)
	var src traces.Slice
	sch := newGreedy(t, "best-fit")
	run := func() {
		src.ResetAt(jobs, 1000*second)
		if err := s.Reset(&src); err != nil {
			t.Fatal(err)
		}
		if err := play(ctx, s, sch, func(*sim.Point) {}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		run()
	}
	if n := testing.AllocsPerRun(3, run); n != 0 {
		t.Errorf("%v allocations in a run of %d jobs", n, len(jobs))
	}
}

// BenchmarkHistory plays workloads of users who repeat their jobs, with and without a predictor in turn: extra-ns/job
// is the processor time that the predictor adds to a job, between the shortest runs of each and between the medians.
// Rows differ in the number of users, each with five names of jobs.
func BenchmarkHistory(b *testing.B) {
	for _, n := range []int{1, 10, 1000, 100_000} {
		for _, jobsOf := range []int{20_000, 200_000} {
			b.Run(fmt.Sprintf("users=%d/jobs=%d", n, jobsOf), func(b *testing.B) {
				jobs := plain(jobsOf, 256)
				r := rand.New(rand.NewPCG(1, 1))
				users, rest := make([]string, n), [10]string{} // strings are shared, as readers of traces share them
				for u := range users {
					users[u], rest[u%10] = fmt.Sprint("user", u), fmt.Sprint("group", u%10)
				}
				for i := range jobs {
					u := r.IntN(n)
					jobs[i].User, jobs[i].VC, jobs[i].Name = users[u], rest[u%10], rest[r.IntN(5)]
				}
				var src traces.Slice
				sch := newGreedy(b, "first-fit")
				var all [2][]time.Duration
				var runs [2]*sim.Simulator
				for k := range runs {
					cfg := sim.DefaultConfig()
					if k == 1 {
						cfg.Predictor = history.NewArchive(nil)
					}
					runs[k] = start(b, cfg, short(b, "pool:256"), nil)
				}
				run := func(k int) {
					began := cpuTime()
					src.Reset(jobs)
					if err := runs[k].Reset(&src); err != nil {
						b.Fatal(err)
					}
					if err := play(ctx, runs[k], sch, func(*sim.Point) {}); err != nil {
						b.Fatal(err)
					}
					all[k] = append(all[k], cpuTime()-began)
				}
				run(0)
				run(1)
				b.ReportAllocs()
				for b.Loop() {
					run(0)
					run(1)
				}
				slices.Sort(all[0])
				slices.Sort(all[1])
				for what, i := range map[string]int{"best": 0, "median": len(all[0]) / 2} {
					b.ReportMetric(float64(all[1][i]-all[0][i])/float64(jobsOf), what+"-extra-ns/job")
					b.ReportMetric(float64(all[0][i])/float64(jobsOf), what+"-without-ns/job")
				}
			})
		}
	}
}
