package fairshare_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/fairshare"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const second = time.Second

// watch notes the priority of every waiting job at every point after what has happened at it.
type watch struct {
	u      *fairshare.Usage
	starts []string
	seen   map[string]float64 // by job and time
}

func (w *watch) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		switch e.Kind {
		case sim.Start:
			w.starts = append(w.starts, v.Trace(e.Job).ID)
		case sim.Submit:
			w.u.Submit(v, e.Job)
		case sim.Finish:
			w.u.Learn(v, e.Job)
		}
	}
	w.u.Prepare(v)
	for _, j := range v.Waiting() {
		w.seen[v.Trace(j).ID+" "+v.Now().String()] = w.u.Of(v, j, v.Cluster())
	}
	return nil
}

func play(t *testing.T, p fairshare.Priority, jobs []traces.Job) *watch {
	t.Helper()
	cfg, err := schedulers.Parse("fairshare+strict")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Priority = p
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 4})
	if err != nil {
		t.Fatal(err)
	}
	var w *watch
	for range 2 { // the second time with the state that the first left
		w = &watch{u: fairshare.New(p), seen: map[string]float64{}}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		if err := sim.Run(context.Background(), s, h, w); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Two accounts take turns on four GPUs, computed by hand. With a half-life of 100 s a job of 100 s on 4 GPUs has used
// 4·100/ln 2·(1 − 1/2) = 288.5 GPU-seconds when it ends, and half of it counts 100 s later.
func TestTwoAccountsByHand(t *testing.T) {
	job := func(id, account string, submit int) traces.Job {
		return traces.Job{ID: id, Group: account, User: "u", Submit: time.Duration(submit) * second, Work: 100 * second,
			GPUs: 4, GPUMilli: 1000}
	}
	jobs := []traces.Job{job("a0", "a", 0), job("a1", "a", 0), job("b0", "b", 0), job("a2", "a", 5), job("b1", "b", 10)}
	p := fairshare.Priority{Age: 100, Size: 10, Fair: 1000, MaxAge: 250 * second, HalfLife: 100 * second}
	w := play(t, p, jobs)
	// 100 s: a has used all: 2^−2. 200 s: a has 1/2, b 1 of 1.5: 2^−2/3 against 2^−4/3. 300 s: a has 5/4, b 1/2 of 7/4:
	// 2^−10/7 against 2^−4/7. 400 s: a 5/8, b 5/4: as at 200 s.
	if want := []string{"a0", "b0", "a1", "b1", "a2"}; !slices.Equal(w.starts, want) {
		t.Errorf("jobs start as %v, want %v", w.starts, want)
	}
	for at, want := range map[string]float64{
		"a1 1m40s": 100*100./250 + 10 + 1000*math.Exp2(-2),
		"b0 1m40s": 100*100./250 + 10 + 1000,
		"a1 3m20s": 100*200./250 + 10 + 1000*math.Exp2(-2./3),
		"b1 3m20s": 100*190./250 + 10 + 1000*math.Exp2(-4./3),
		"a2 5m0s":  100 + 10 + 1000*math.Exp2(-10./7),
		"b1 5m0s":  100 + 10 + 1000*math.Exp2(-4./7),
	} {
		if got := w.seen[at]; math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s has priority %v, want %v", at, got, want)
		}
	}
	p.Shares = map[string]float64{"a": 3} // 100 s: 2^(−4/3); 200 s: 2^(−4/9) against 2^(−8/3)
	w = play(t, p, jobs)
	if got, want := w.seen["b1 3m20s"], 76+10+1000*math.Exp2(-8./3); math.Abs(got-want) > 1e-9*want {
		t.Errorf("with shares b1 has priority %v, want %v", got, want)
	}
	for name, x := range map[string]struct {
		change func(p *fairshare.Priority)
		want   string
	}{
		"age alone":   {func(p *fairshare.Priority) { p.Fair, p.MaxAge = 0, time.Hour }, "a0 a1 b0 a2 b1"},
		"one user":    {func(p *fairshare.Priority) { p.By = "user" }, "a0 a1 b0 a2 b1"},
		"no decay":    {func(p *fairshare.Priority) { p.HalfLife = 0 }, "a0 b0 a1 b1 a2"},
		"the default": {func(p *fairshare.Priority) { *p = fairshare.Priority{} }, "a0 b0 a1 b1 a2"},
	} {
		p := p
		p.Shares = nil
		x.change(&p)
		if got := strings.Join(play(t, p, jobs).starts, " "); got != x.want {
			t.Errorf("%s: jobs start as %s, want %s", name, got, x.want)
		}
	}
}

func TestFaultsOfPriorities(t *testing.T) {
	p := fairshare.Priority{Age: -1, Fair: math.NaN(), HalfLife: -1, By: "acount", Shares: map[string]float64{"a": 0}}
	err := p.Validate()
	for _, want := range []string{"age: got -1", "fair: got NaN", "max_age", "half_life", "by: got \"acount\"", "shares.a"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	d := fairshare.Default()
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}
