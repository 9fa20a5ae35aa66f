package sched_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// shown plays the first n decisions, always the first legal one, and renders.
func shown(t *testing.T, spec cluster.Spec, jobs []traces.Job, n int, change func(c *jobselect.Config)) string {
	t.Helper()
	e, ts := drawn(t, spec, jobs, change)
	for range n {
		if ts.Kind.Last() {
			break
		}
		a := 0
		for !ts.Mask[a] {
			a++
		}
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	return rendered(t, e)
}

func rendered(t *testing.T, e *sched.Env) string {
	t.Helper()
	var b bytes.Buffer
	if err := e.Render(&b, "ansi"); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if len(line) >= 120 || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("line %q: want less than 120 columns of plain text", line)
		}
	}
	return b.String()
}

func tree(racks, nodes, gpus int) cluster.Spec {
	return cluster.Spec{Racks: []cluster.RackSpec{{
		Count: cluster.Count(racks), Nodes: []cluster.NodeSpec{{Count: cluster.Count(nodes), GPUs: gpus}},
	}}}
}

// Pictures as they are drawn; rewritten with -update.
func TestPictures(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   cluster.Spec
		steps  int
		change func(c *jobselect.Config)
	}{
		{"machines-of-four", tree(2, 2, 4), 25, nil},
		{"counter", cluster.Spec{Pool: 12}, 25, nil},
		{"counter-of-many", cluster.Spec{Pool: 512}, 10, nil},
		{"many-machines", tree(3, 30, 8), 12, nil},
		{"blind", tree(1, 2, 4), 25, func(c *jobselect.Config) { c.Estimates = sim.MustEstimates("none") }},
		{"ended", tree(1, 2, 4), 1000, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shown(t, c.spec, workload(300), c.steps, c.change)
			path := filepath.Join("testdata", "render", c.name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the picture has changed (rewrite it with -update):\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Two jobs by hand: A holds two GPUs of the first machine, B waits for the three of which only two are free.
func TestAPictureByHand(t *testing.T) {
	jobs := []traces.Job{
		{ID: "A", Work: 100 * time.Second, GPUs: 2, GPUMilli: 1000},
		{ID: "B", Work: time.Hour, GPUs: 3, GPUMilli: 1000},
		{ID: "C", Work: time.Second, GPUs: 1, GPUMilli: 1000},
	}
	for range 3 {
		jobs = append(jobs, traces.Job{ID: "later", Submit: 1000 * time.Hour, Work: time.Second, GPUs: 1, GPUMilli: 1000})
	}
	got := shown(t, tree(1, 2, 2), jobs, 1,
		func(c *jobselect.Config) { c.Window, c.Warm, c.Load, c.Comm = 3, 0, 0, "none" })
	want := `JobSelect-v1  train, jobs 0 to 2, seed 7, step 1
0 s since the window's first job; last arrival 0 s ago, last finish 0 s ago
jobs  0 of 3 finished, 1 running, 2 waiting for 4 GPUs, 0 to come
GPUs  2 of 4 held
rack 0    aa ..
          a=A:2
slot  job                     GPUs    estimate      waited
   0  B                          3      60 min         0 s  does not fit
   1  C                          1         1 s         0 s  fits
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Names come from files: what could steer a terminal is not passed on, and long ones are cut.
func TestNamesInPicturesAreHarmless(t *testing.T) {
	jobs := workload(300)
	for i := range jobs {
		jobs[i].ID = "\x1b[2J" + jobs[i].ID + "ü" + strings.Repeat("y", 300)
	}
	got := shown(t, tree(2, 2, 4), jobs, 25, nil)
	if !regexp.MustCompile(`\?\[2Jj\d+\?yyy`).MatchString(got) {
		t.Errorf("no harmless name in\n%s", got)
	}
}

func TestRenderNeedsAnEpisodeAndAMode(t *testing.T) {
	e := partEnv(t, traces.Training, nil)
	var b bytes.Buffer
	if err := e.Render(&b, "ansi"); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("before Reset: %v", err)
	}
	if err := e.Reset(ctx, env.Episode{}, env.NewTimeStep(e.Spec())); err != nil {
		t.Fatal(err)
	}
	if err := e.Render(&b, "rgb_array"); err == nil || !strings.Contains(err.Error(), `"rgb_array", want ansi`) {
		t.Errorf("another mode: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Render(&b, "ansi"); !errors.Is(err, env.ErrClosed) || b.Len() != 0 {
		t.Errorf("after Close: %v, wrote %q", err, b.String())
	}
}
