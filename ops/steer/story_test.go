package steer_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/lab/decisionlog"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
)

// The log of a loop, also one cut into files, tells of every job when it came, started and ended, and on which nodes.
func TestStoryIsWhatTheClusterDid(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestModes, which takes less time; make unit runs this test")
	}
	for _, most := range []int64{1 << 30, 60_000} {
		for _, x := range []struct{ mode, policy string }{{steer.Shadow, "sjf+skip"}, {steer.Gate, "sjf@slots"}} {
			c := livetest.New(livetest.Machines(2, 8)...)
			queue(c, 60)
			cfg := moved(c, x.mode, x.policy, 4000)
			file := filepath.Join(t.TempDir(), "log")
			var err error
			if cfg.Log, err = steer.OpenLog(file, most, 1000); err != nil {
				t.Fatal(err)
			}
			cfg.Wait = func(ctx context.Context, d time.Duration) error {
				cfg.Log.Flush()
				c.Advance(d)
				return ctx.Err()
			}
			if err := steer.Run(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			if err := cfg.Log.Close(); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			n, err := steer.Story(file, &b)
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			checkStory(t, fmt.Sprint(x, most), &b, c.History())
		}
	}
}

func checkStory(t *testing.T, name string, b *bytes.Buffer, jobs []live.Job) {
	t.Helper()
	start, end := map[string]time.Time{}, map[string]time.Time{}
	where, on := map[string][]string{}, map[string][]int32{}
	var h *decisionlog.Header
	var held []int
	decisions := 0
	err := decisionlog.Read(b, func(l *decisionlog.Line) error {
		switch {
		case l.Header != nil:
			h = l.Header
			held = make([]int, len(h.Nodes))
		case l.Event != nil:
			at := h.Zero.Add(time.Duration(l.Event.At * float64(time.Second))).Round(time.Second)
			switch l.Event.Kind {
			case "start":
				start[l.Event.Job], on[l.Event.Job] = at, l.Event.GPUs
				for _, g := range l.Event.GPUs {
					name := h.Names[int(g)/8]
					if held[int(g)/8]++; held[int(g)/8] > 8 {
						t.Errorf("%s: more than 8 GPUs of %s are held", name, name)
					}
					if !slices.Contains(where[l.Event.Job], name) {
						where[l.Event.Job] = append(where[l.Event.Job], name)
					}
				}
			case "finish":
				end[l.Event.Job] = at
				for _, g := range on[l.Event.Job] {
					held[int(g)/8]--
				}
			}
		case l.Decision != nil:
			decisions++
		}
		return nil
	})
	if err != nil || decisions < 100 {
		t.Fatalf("%s: %d decisions, %v", name, decisions, err)
	}
	for i := range jobs {
		j := &jobs[i]
		if d := start[j.ID].Sub(j.Start); d.Abs() > time.Second {
			t.Errorf("%s: job %s has started at %v, and the story says %v", name, j.ID, j.Start, start[j.ID])
		}
		if d := end[j.ID].Sub(j.End); j.State == live.Ended && d.Abs() > time.Second {
			t.Errorf("%s: job %s has ended at %v, and the story says %v", name, j.ID, j.End, end[j.ID])
		}
		var nodes []string
		for _, p := range j.Places {
			nodes = append(nodes, p.Node)
		}
		if len(nodes) > 0 && !slices.Equal(nodes, where[j.ID]) {
			t.Errorf("%s: job %s ran on %v, and the story says %v", name, j.ID, nodes, where[j.ID])
		}
	}
}
