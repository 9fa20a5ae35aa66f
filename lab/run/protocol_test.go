package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/env"
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
		cfg.Eval.Streams.Jobs, cfg.Eval.Streams.Warm = jobs, 300-jobs // the same draws
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
	for i := range n {
		fmt.Fprintf(&b, "%d,%d,%d,u%d\n", 400*i, 300+i*977%9000, 1<<(i*7%4), i%5)
	}
	name := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
