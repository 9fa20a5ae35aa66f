package sched_test

import (
	"bytes"
	"errors"
	"image"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/paint"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// drawn returns the environment of jobs on a cluster, at the first decision of an episode.
func drawn(t *testing.T, spec cluster.Spec, jobs []traces.Job, change func(c *jobselect.Config)) (*sched.Env,
	*env.TimeStep) {
	t.Helper()
	cfg := jobselect.DefaultConfig()
	cfg.Window, cfg.Warm = 30, 20
	if spec.Pool > 0 {
		cfg.Comm = "none"
	}
	if change != nil {
		change(&cfg)
	}
	w, err := jobselect.NewWorkload(cfg, spec, jobs)
	if err != nil {
		t.Fatal(err)
	}
	e, err := jobselect.New(cfg, spec, w.Windows, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 7, Window: -1}, ts); err != nil {
		t.Fatal(err)
	}
	return e, ts
}

func painted(t *testing.T, e env.Painter) *image.RGBA {
	t.Helper()
	dst := env.NewFrame()
	if err := e.Paint(dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

// has reports whether a picture has a patch of 3 by 3 pixels in a colour, as every GPU's cell is here.
func has(dst *image.RGBA, r image.Rectangle, job int) bool {
	c := paint.Colour(job)
	for y := r.Min.Y; y < r.Max.Y-2; y++ {
		for x := r.Min.X; x < r.Max.X-2; x++ {
			whole := true
			for k := range 9 {
				whole = whole && dst.RGBAAt(x+k%3, y+k/3) == c
			}
			if whole {
				return true
			}
		}
	}
	return false
}

// The GPUs of the jobs that run have their colours, from the moment at which they start to that at which they finish,
// and those of the others do not.
func TestPicturesShowWhoHoldsTheGPUs(t *testing.T) {
	e, ts := drawn(t, tree(2, 2, 4), workload(300), nil)
	gpus := image.Rect(0, 70, env.FrameWidth, 234)
	ran := map[int]bool{}
	for step := range 40 {
		dst, v := painted(t, e), e.State().View
		now := map[int]bool{}
		for _, j := range v.Running() {
			now[v.Pos(j)], ran[v.Pos(j)] = true, true
		}
		for job := range ran {
			if got := has(dst, gpus, job); got != now[job] {
				t.Errorf("step %d: job %d is drawn %v, and runs %v", step, job, got, now[job])
			}
		}
		if ts.Kind.Last() {
			break
		}
		a := slices.Index(ts.Mask, true)
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	if len(ran) < 10 {
		t.Errorf("only %d jobs have run", len(ran))
	}
}

// A picture says nothing that a policy may not know: with other run times behind it, it is the same.
func TestPicturesDoNotTellRunTimes(t *testing.T) {
	jobs := workload(300)
	longer := slices.Clone(jobs)
	for i := range longer {
		longer[i].Work += time.Duration(1+i) * time.Hour
	}
	first := func(jobs []traces.Job, estimates string) []byte {
		e, _ := drawn(t, tree(2, 2, 4), jobs, func(c *jobselect.Config) { c.Warm, c.Load, c.Estimates = 0, 0, sim.MustEstimates(estimates) })
		return painted(t, e).Pix
	}
	if !bytes.Equal(first(jobs, "none"), first(longer, "none")) {
		t.Error("without estimates, the picture depends on run times")
	}
	if bytes.Equal(first(jobs, "exact"), first(longer, "exact")) {
		t.Error("the picture does not show the estimates")
	}
}

// Counters, clusters of many machines and very large ones have pictures too, at a bounded cost.
func TestPicturesOfAllClusters(t *testing.T) {
	for name, spec := range map[string]cluster.Spec{
		"counter": {Pool: 12}, "large counter": {Pool: 512}, "machines": tree(3, 30,
			8), "ten thousand": tree(25, 50, 8), "two hundred thousand": tree(50, 500, 8),
	} {
		e, ts := drawn(t, spec, workload(300), nil)
		before := painted(t, e).Pix
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(slices.Index(ts.Mask, true))}}, ts); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, painted(t, e).Pix) {
			t.Errorf("%s: a job starts, and the picture stays", name)
		}
		var m0, m1 runtime.MemStats
		dst := env.NewFrame()
		runtime.ReadMemStats(&m0)
		if err := e.Paint(dst); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&m1)
		most := uint64(256<<10 + 32*e.State().View.Cluster().GPUs()) // 32 bytes for each GPU
		if n := m1.TotalAlloc - m0.TotalAlloc; n > most {
			t.Errorf("%s: a picture allocates %d bytes, want at most %d", name, n, most)
		}
	}
}

func TestShellPaints(t *testing.T) {
	c, _ := began(t, 2)
	called := false
	draw := func(c *paint.Canvas) { called = true; c.Head("Adder-v1", "", "") }
	if err := c.shell.Paint(env.NewFrame(), draw); err != nil || !called {
		t.Errorf("%v, called %v", err, called)
	}
	if m := c.shell.Moment(90 * time.Second); m != "t = 90 s  step 1  seed 3" {
		t.Errorf("the moment is %q", m)
	}
	called = false
	if err := c.shell.Paint(image.NewRGBA(image.Rect(0, 0, 9, 9)), draw); !errors.Is(err, env.ErrFrame) || called {
		t.Errorf("on 9 by 9 pixels: %v", err)
	}
	fresh := sched.NewShell(adderSpec())
	if err := fresh.Paint(env.NewFrame(), draw); !errors.Is(err, env.ErrResetNeeded) {
		t.Errorf("before Reset: %v", err)
	}
	if err := errors.Join(fresh.Close(), fresh.Paint(env.NewFrame(), draw)); !errors.Is(err, env.ErrClosed) || called {
		t.Errorf("after Close: %v", err)
	}
}

// Names come from files: they are cut and made printable.
func TestPicturesOfStrangeNames(t *testing.T) {
	jobs := workload(300)
	for i := range jobs {
		jobs[i].ID = strings.Repeat("\x1b[2Jü\x00", i%9+1) + jobs[i].ID
	}
	e, _ := drawn(t, tree(2, 2, 4), jobs, nil)
	painted(t, e)
}
