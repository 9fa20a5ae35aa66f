package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
)

// streamRun compares few policies on twelve short draws.
func streamRun() config.Config {
	c := config.Default()
	c.Trace.Synth.Jobs = 2000
	jobSelect(&c).Visible = 4
	c.Eval.Streams.Draws, c.Eval.Streams.Jobs, c.Eval.Streams.Warm = 12, 60, 40
	c.Eval.Policies = []string{"sjf@slots", "fifo+skip", "sjf+skip"}
	return c
}

// compared evaluates on streams, and returns the report with its document.
func compared(t *testing.T, cfg config.Config, opt arena.EvalOptions) (*report.StreamReport, string) {
	t.Helper()
	if opt.Workers == 0 {
		opt.Workers = 2
	}
	c, err := arena.Compare(t.Context(), cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*report.StreamReport), string(b)
}

// streamRow finds a policy's row.
func streamRow(t *testing.T, r *report.StreamReport, name string) *report.StreamPolicy {
	t.Helper()
	for i := range r.Policies {
		if r.Policies[i].Name == name {
			return &r.Policies[i]
		}
	}
	t.Fatalf("there is no row %s", name)
	return nil
}

// A program that plays SJF on the streams gets exactly the row of sjf@slots, whichever player plays which stream.
func TestAnExternalPolicyPlaysStreams(t *testing.T) {
	for name, play := range map[string]func(ctx context.Context, m *server.Made) error{
		"one after the other": func(ctx context.Context, m *server.Made) error {
			return playRule(ctx, m.Envs[0], "sjf", 12)
		},
		"a stream is begun again": func(ctx context.Context, m *server.Made) error {
			ts := env.NewTimeStep(m.Envs[0].Spec())
			for range 2 {
				if err := m.Envs[0].Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
					return err
				}
				if err := playOn(ctx, m.Envs[0], "fifo", ts, 30); err != nil {
					return err
				}
			}
			return playRule(ctx, m.Envs[0], "sjf", 12)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var meta map[string]any
			r, _ := compared(t, streamRun(), arena.EvalOptions{External: atHome(30*time.Second,
				func(ctx context.Context, f server.Factory) error {
					m, err := open(ctx, f, "x", 1)
					if err != nil {
						return err
					}
					meta = m.Meta.(map[string]any)
					return errors.Join(play(ctx, m), closeAll(m))
				}, "x")})
			got, like := streamRow(t, r, "x"), streamRow(t, r, "sjf@slots")
			if got.Kind != "external" || got.Missing != "" || fmt.Sprint(got.Metrics) != fmt.Sprint(like.Metrics) {
				t.Errorf("got %+v, want the row of sjf@slots: %+v", got, like)
			}
			if meta["windows"] != 12 || meta["streams"] != 12 {
				t.Errorf("meta is %v, want 12 windows and streams", meta)
			}
			if ref, agent := r.Reference(); ref != "x" || !agent || len(r.Paired) != 3 {
				t.Errorf("the comparison is about %s, with %d pairs", ref, len(r.Paired))
			}
		})
	}
}

// What a program sees of a stream, in text and in infos, depends neither on how many jobs count nor on how many come.
func TestAProgramDoesNotSeeWhichJobsCount(t *testing.T) {
	seen := func(jobs int) (text string) {
		cfg := streamRun()
		cfg.Eval.Streams.Jobs, cfg.Eval.Streams.Warm = jobs, 700-jobs // the same draws
		x := atHome(time.Millisecond, func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 1)
			if err != nil {
				return err
			}
			e := m.Envs[0]
			ts := env.NewTimeStep(e.Spec())
			var b bytes.Buffer
			for range 2 {
				if err := e.Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
					return err
				}
				for range 15 {
					if err := playOn(ctx, e, "sjf", ts, 1); err != nil {
						return err
					}
					metrics, err := e.(server.Caller).Call("metrics", nil)
					if err != nil {
						return err
					}
					fmt.Fprint(&b, ts.Reward, ts.Info, ts.Obs, ts.Elapsed, metrics, "\n")
					if err := e.(env.Renderer).Render(&b, "ansi"); err != nil {
						return err
					}
				}
			}
			text = b.String()
			return closeAll(m)
		}, "x")
		compared(t, cfg, arena.EvalOptions{External: x})
		return text
	}
	a, b := seen(60), seen(80)
	if a == "" || a != b {
		t.Errorf("with 60 and 80 counted jobs a program sees\n%.1500s\nand\n%.1500s", a, b)
	}
}

// A player that has no stream left plays one that does not count, and a stream that is left counts for nothing.
func TestOnceOnStreams(t *testing.T) {
	cfg := streamRun()
	cfg.Eval.Streams.Draws = 2
	cfg.Eval.Policies = []string{"sjf@slots"}
	begun := 0
	play := func(n int) func(ctx context.Context, f server.Factory) error {
		return func(ctx context.Context, f server.Factory) error {
			m, err := open(ctx, f, "x", 1)
			if err != nil {
				return err
			}
			return errors.Join(playRule(ctx, m.Envs[0], "sjf", n), closeAll(m))
		}
	}
	all, err := arena.Scores(t.Context(), cfg, arena.EvalOptions{Workers: 1, External: once(&begun, play(4))})
	if err != nil || begun != 1 || fmt.Sprint(all[0].Values) != fmt.Sprint(all[1].Values) || len(all[0].Values[0]) != 2 {
		t.Errorf("%v, %d, %+v", err, begun, all)
	}
	_, err = arena.Scores(t.Context(), cfg, arena.EvalOptions{Workers: 1, External: once(&begun,
		func(ctx context.Context, f server.Factory) error {
			m, err := f.Make(ctx, arena.EvalEnv, wire.Map{{Key: "policy", Value: "x"}}, 1)
			if err != nil {
				return err
			}
			ts := env.NewTimeStep(m.Envs[0].Spec())
			if err := m.Envs[0].Reset(ctx, env.Episode{Window: -1}, ts); err != nil {
				return err
			}
			return errors.Join(playOn(ctx, m.Envs[0], "sjf", ts, 5), closeAll(m))
		})})
	if err == nil || !strings.Contains(err.Error(), "left stream 0 before its end, and each stream is played once") {
		t.Errorf("got %v", err)
	}
}

// A program that does not finish is missing, and the rest is compared.
func TestAnUnfinishedProgramIsMissingOnStreams(t *testing.T) {
	x := atHome(20*time.Millisecond, func(ctx context.Context, f server.Factory) error {
		m, err := open(ctx, f, "x", 1)
		if err != nil {
			return err
		}
		return errors.Join(playRule(ctx, m.Envs[0], "sjf", 3), closeAll(m))
	}, "x")
	r, text := compared(t, streamRun(), arena.EvalOptions{External: x})
	if p := streamRow(t, r, "x"); p.Missing != "finished 3 of 12 streams" || p.Metrics != nil {
		t.Errorf("%+v", p)
	}
	if len(r.Paired) != 2 || !strings.Contains(text, `"missing":"finished 3 of 12 streams"`) {
		t.Errorf("%d pairs, %.600s", len(r.Paired), text)
	}
}

// Streams that workers play give the document of one machine, to the last digit, for any number of workers, with
// random policies, and with blocks of a recorded trace.
func TestStreamsOnWorkersGiveTheSameDocument(t *testing.T) {
	t.Chdir(t.TempDir()) // results of games are kept in runs/
	recorded := streamRun()
	recorded.Trace.File = logOf(t, 3000)
	for name, cfg := range map[string]config.Config{"draws": streamRun(), "a log": recorded} {
		cfg.Eval.Policies, cfg.Eval.Seeds = append(cfg.Eval.Policies, "random@slots"), 2
		_, want := compared(t, cfg, arena.EvalOptions{Workers: 1})
		if _, got := compared(t, cfg, arena.EvalOptions{Workers: 5}); got != want {
			t.Errorf("%s: five workers give another document", name)
		}
		open, check := hired(t, 2, 0)
		_, got := compared(t, cfg, arena.EvalOptions{Queue: open})
		check()
		if got != want {
			t.Errorf("%s: workers give another document:\n%.900s\nwant\n%.900s", name, got, want)
		}
	}
}

// logOf writes a recorded trace of n jobs of some load, and returns its name.
func logOf(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu,user\n")
	r := rand.New(rng.Source(1, "test log"))
	at := 0.0
	for i := range n {
		at += 900 * r.ExpFloat64()
		fmt.Fprintf(&b, "%.0f,%.0f,%d,u%d\n", at, 60+3000*r.ExpFloat64(), 1<<r.IntN(4), i%5)
	}
	name := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// On each rung policies play the same draws: one that asks for no run times loses nothing, and one that does is judged
// against itself, with the correction for the number of policies. Workers give the same document.
func TestRungsOnStreams(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := streamRun()
	cfg.Eval.Policies = []string{"fifo+skip", "sjf+skip", "hold"}
	rungs, err := arena.ParseRungs([]string{"none", "history", "exact"})
	if err != nil {
		t.Fatal(err)
	}
	base, err := rungs.Base(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ladder := func(opt arena.EvalOptions) (*report.StreamLadder, string) {
		c, err := arena.CompareRungs(t.Context(), base, rungs, opt)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return c.(*report.StreamLadder), string(b)
	}
	l, want := ladder(arena.EvalOptions{Workers: 2})
	if len(l.Policies) != 3 || l.Policies[0].Name != "fifo+skip" || l.Metric != "jct_s" {
		t.Fatalf("%+v", l)
	}
	for i, c := range l.Policies[0].Rungs {
		if *c.Mean != *l.Policies[0].Rungs[0].Mean || i < 2 && c.Loss.Difference != 0 {
			t.Errorf("fifo+skip loses on rung %d: %+v", i, c)
		}
	}
	for _, p := range l.Policies[1:] {
		if p.Rungs[0].Mean != nil || p.Rungs[0].Absent == "" || p.Rungs[0].Loss != nil || p.Rungs[2].Loss != nil {
			t.Errorf("%s: %+v", p.Name, p)
		}
		d := p.Rungs[1].Loss
		if d == nil || d.Units != 12 || !d.CI95.Known() || d.PHolm < d.P ||
			float64(d.Difference) != 100*(float64(*p.Rungs[1].Mean)/float64(*p.Rungs[2].Mean)-1) &&
				math.Abs(float64(d.Difference)-100*(float64(*p.Rungs[1].Mean)/float64(*p.Rungs[2].Mean)-1)) > 1e-9 {
			t.Errorf("%s on history: %+v", p.Name, d)
		}
	}
	var table bytes.Buffer
	if err := l.WriteTable(&table); err != nil || !strings.Contains(table.String(), "lost on history") ||
		!strings.Contains(table.String(), "The streams are the same on every rung.") ||
		!strings.Contains(table.String(), "–: ranks by run times, and there are none: sjf+skip, hold.") {
		t.Errorf("%v\n%s", err, table.String())
	}
	c, err := report.Read([]byte(want))
	if read, ok := c.(*report.StreamLadder); err != nil || !ok || len(read.Rungs) != 3 ||
		fmt.Sprint(read.Policies[0].Rungs[0].Loss) != fmt.Sprint(l.Policies[0].Rungs[0].Loss) {
		t.Errorf("read again: %v, %T", err, c)
	}
	open, check := hired(t, 2, 0)
	_, got := ladder(arena.EvalOptions{Queue: open})
	check()
	if got != want {
		t.Errorf("workers give another document:\n%.900s\nwant\n%.900s", got, want)
	}
}

// Scores are one value for each draw, or one for each block of a recorded stream, whose mean is the mean over jobs.
func TestScoresOfStreams(t *testing.T) {
	cfg := streamRun()
	r, _ := compared(t, cfg, arena.EvalOptions{})
	all, err := arena.Scores(t.Context(), cfg, arena.EvalOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		if fmt.Sprint(s.Values[0]) != fmt.Sprint(r.Policies[i].Metrics.JCT.Per) {
			t.Errorf("%s: %v, want %v", s.Name, s.Values[0], r.Policies[i].Metrics.JCT.Per)
		}
	}
	cfg.Trace.File = logOf(t, 6000)
	r, _ = compared(t, cfg, arena.EvalOptions{})
	if all, err = arena.Scores(t.Context(), cfg, arena.EvalOptions{Workers: 2}); err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		mean := statistic.Mean(s.Values[0])
		if n := len(s.Values[0]); n != max(1, r.Streams.Units) ||
			math.Abs(mean/float64(r.Policies[i].Metrics.JCT.Mean)-1) > 1e-9 {
			t.Errorf("%s: %d values with mean %v, want %d with %v", s.Name, n, mean, r.Streams.Units,
				r.Policies[i].Metrics.JCT.Mean)
		}
	}
}

// A recorded stream with too few blocks has means and neither intervals nor verdicts, and one with too few jobs is
// refused, as are searches of whole windows.
func TestStreamsSayWhatTheyCannotSay(t *testing.T) {
	cfg := streamRun()
	cfg.Eval.Policies = []string{"fifo+skip", "sjf+skip"}
	cfg.Trace.File = logOf(t, 400)
	own := jobSelect(&cfg)
	own.Window, own.Warm = 16, 16
	r, text := compared(t, cfg, arena.EvalOptions{})
	p := r.Paired[0]
	if r.Streams.Units >= 10 || p.CI95.Known() || p.Verdict != statistic.TooFew || !strings.Contains(text, `"ci95":null`) {
		t.Errorf("%d blocks: %+v", r.Streams.Units, p)
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil || !strings.Contains(table.String(), "too few units") ||
		!strings.Contains(table.String(), "blocks are too few for intervals and verdicts: a longer log has more") {
		t.Errorf("%v\n%s", err, table.String())
	}
	cfg.Trace.File = logOf(t, 120)
	own = jobSelect(&cfg)
	own.Window, own.Warm = 4, 0
	_, err := arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	if err != nil {
		t.Errorf("24 jobs: %v", err)
	}
	cfg.Trace.File = logOf(t, 60)
	_, err = arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	refused(t, "12 jobs", err, "the test part has 12 jobs: too few for a stream, which needs 20; use a longer trace")
	cfg = streamRun()
	cfg.Eval.Policies = []string{"hindsight:sjf+skip"}
	_, err = arena.Compare(t.Context(), cfg, arena.EvalOptions{Workers: 1})
	refused(t, "hindsight", err, "searches whole windows for a schedule and cannot play streams")
}
