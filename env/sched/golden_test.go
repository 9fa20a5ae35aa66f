package sched_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// watched writes the points of an episode into a hash.
type watched struct{ put func(any) }

func (w watched) Observe(_ *sim.View, p *sim.Point) error {
	w.put(int64(p.Now))
	for i := range p.Events {
		e := &p.Events[i]
		w.put(int64(e.Kind)<<32 | int64(e.Job))
	}
	return nil
}

// digest returns a hash of what an agent is shown and paid, and a watcher sees, in episodes of random play.
func digest(t *testing.T, e sched.Arena) string {
	t.Helper()
	h := sha256.New()
	put := func(x any) {
		if f, ok := x.([]float64); ok { // one form of what is not a number
			f = slices.Clone(f)
			for i := range f {
				if math.IsNaN(f[i]) {
					f[i] = math.NaN()
				}
			}
			x = f
		}
		if err := binary.Write(h, binary.LittleEndian, x); err != nil {
			t.Fatal(err)
		}
	}
	spec := e.Spec()
	fmt.Fprintf(h, "%+v", spec)
	e.Watch(watched{put})
	ts, a, src := env.NewTimeStep(spec), []int32{0}, rand.New(rand.NewPCG(7, 13))
	for _, ep := range []env.Episode{{Seed: 5, Window: -1}, {Seed: 6, Window: -1},
		{Seed: 1, Window: 0, Split: env.SplitTest}, {Seed: 9, Window: -1, Split: env.SplitTest}} {
		if err := e.Reset(ctx, ep, ts); errors.Is(err, sched.ErrUndecided) {
			put(int64(-1))
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for step := 0; ; step++ {
			put(int64(ts.Kind))
			put(ts.Reward)
			put(int64(ts.Elapsed))
			put(ts.Obs)
			put(ts.Mask)
			put(ts.Info)
			if step == 25 {
				b, err := e.(env.Snapshotter).AppendSnapshot(nil)
				if err != nil {
					t.Fatal(err)
				}
				put(b)
			}
			if ts.Kind.Last() {
				break
			}
			a[0] = int32(env.Uniform(ts.Mask, src))
			if err := e.Step(ctx, env.Action{Disc: a}, ts); err != nil {
				t.Fatal(err)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// steered writes what an agent of an environment that follows is shown, and what is imagined, into a hash.
type steered struct {
	sched.Steered
	put   func(...any)
	waits *bool // an action was imagined with which the agent waits: whether it would be asked means nothing
}

func (s steered) Observe(ts *env.TimeStep) (bool, error) {
	asks, err := s.Steered.Observe(ts)
	s.put(asks && !*s.waits, ts.Obs, ts.Mask)
	return asks, err
}

func (s steered) Imagine(a env.Action) ([]sim.Decision, bool, error) {
	list, waits, err := s.Steered.Imagine(a)
	s.put(a.Disc, waits, list)
	*s.waits = *s.waits || waits
	return list, waits, err
}

func (s steered) Proceed() ([]sim.Decision, error) {
	list, err := s.Steered.Proceed()
	s.put(list)
	return list, err
}

func (s steered) Forget() {
	s.Steered.Forget()
	*s.waits = false
}

func (s steered) Choices(dst []sim.Job) []sim.Job {
	dst = s.Steered.Choices(dst)
	s.put(dst)
	return dst
}

// Environments that follow a cluster show and imagine the same in every version.
func TestFollowingStaysTheSame(t *testing.T) {
	var lines []string
	for k, est := range []string{"history", "trace", "none"} {
		r := rand.New(rand.NewPCG(uint64(k), 73))
		jobs := owned(r, 150)
		for i := range jobs {
			jobs[i].GPUs = 1 + r.IntN(12)
		}
		all := opened5(t, est, func(x sched.Taken) sched.Windows { return windows(t, x, jobs) }, followed, jobs)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			h := sha256.New()
			put := func(all ...any) {
				for _, x := range all {
					if binary.Write(h, binary.LittleEndian, x) != nil {
						fmt.Fprintf(h, "%v", x)
					}
				}
			}
			polled(t, steered{all[name], put, new(bool)}, jobs[:60], rand.New(rand.NewPCG(uint64(k), 74)))
			lines = append(lines, fmt.Sprintf("%s %s %x", name, est, h.Sum(nil)[:16]))
		}
	}
	golden(t, "testdata/golden_following.txt", lines)
}

// The five environments over jobs, with settings that are not their defaults, show and pay the same in every version.
func TestEpisodesStayTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 71))
	jobs := owned(r, 300)
	shape := &traces.Profile{Name: "shape", GradientBytes: 1e9, Compute: time.Second}
	whole := slices.Clone(jobs)
	for i := range whole {
		whole[i].GPUMilli, whole[i].Profile, whole[i].MemBytes = 1000, shape, int64(1+i%7)<<30
	}
	link := cluster.Link{Gbps: 80, Latency: time.Microsecond}
	linked := cluster.Spec{Racks: []cluster.RackSpec{
		{Count: 2, Uplink: link, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2, Link: link, NIC: link}}}}}
	var lines []string
	add := func(name string, e sched.Arena, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(name, err)
		}
		lines = append(lines, name+" "+digest(t, e))
	}
	for k := range 10 {
		r := rand.New(rand.NewPCG(uint64(k), 72))
		c := selection(k, r)
		c.Gamma, c.Load, c.Relative = 0.9, 1.2, []string{"", "auto"}[k%2]
		c.Horizon = []time.Duration{0, 2 * time.Hour}[k/2%2]
		add(fmt.Sprint("jobselect ", k), opening(t, c, jobs), nil)
	}
	for k, name := range []string{"exact", "history", "noisy:0.5", "trace"} {
		est := sim.MustEstimates(name)
		c := policymix.DefaultConfig()
		c.Window, c.Warm, c.Estimates, c.Gamma, c.Hold = 30, 20*(k%2), est, 0.95, time.Duration(5+20*k)*time.Minute
		c.Relative = []string{"sjf", ""}[k%2]
		w := windows(t, sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: est}, jobs)
		e, err := policymix.New(c, followed, w, traces.Training)
		add(fmt.Sprint("policymix ", k), e, err)
	}
	for k := range 12 {
		c := gpupick.DefaultConfig()
		c.Window, c.Table, c.Idle, c.Load, c.MaxSteps = 30, k%2 == 0, k%3 == 0, []float64{0, 1.3}[k%2], []int{800, 40}[k/6]
		c.Estimates, c.TimeAxis = sim.MustEstimates([]string{"trace", "exact", "history", "noisy:0.5", "none", "gbdt"}[k%6]),
			[]string{"log", "linear"}[k%2]
		w := windows(t, sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates}, jobs)
		e, err := gpupick.New(c, followed, w, traces.Training)
		add(fmt.Sprint("gpupick ", k), e, err)
	}
	for k := range 20 {
		c := queuerank.DefaultConfig()
		c.Window, c.Visible, c.Load, c.Gamma = 30, []int{4, 40}[k%2], []float64{0, 1.3}[k/2%2], 0.99
		c.Estimates = sim.MustEstimates([]string{"trace", "exact", "history", "noisy:0.5", "gbdt"}[k/2%5])
		c.Reward, c.Metric = []string{"dense", "minus", "relative"}[k%3], []string{"bsld", "wait", "jct", "slowdown"}[k%4]
		c.Filter = k%7 == 3
		spec, of := cluster.Spec{Pool: 8}, whole
		switch k % 5 {
		case 0:
			c.Backfill = "easy"
		case 1:
			c.Peer, c.Backfill = true, []string{"none", "easy"}[k/5%2]
		case 2:
			c.RLTune, spec, c.Backfill = []string{"first", "programme"}[k/5%2], followed, []string{"none", "easy"}[k/10%2]
			c.Base, c.Filter = []string{"sjf", "wfp3", "fifo", "ljf"}[k/5%4], false
		case 3:
			spec, of = followed, jobs
		}
		w := windows(t, sched.Taken{MaxGPUs: 8, Window: c.Window, Estimates: c.Estimates}, of)
		e, err := ranking(c, spec, w, of)
		add(fmt.Sprint("queuerank ", k), e, err)
	}
	for k := range 12 {
		c := delayoffer.DefaultConfig()
		c.Window, c.MaxGPUs, c.Gamma, c.Relative, c.Load = 30, 8, []float64{1, 0.9}[k%2], k%3 == 0, []float64{0, 1.3}[k/2%2]
		c.Estimates = sim.MustEstimates([]string{"trace", "exact", "history", "noisy:0.5", "none", "gbdt"}[k%6])
		c.Lease, c.Auto, c.Ask, c.Ideal = time.Duration(1+k%3)*10*time.Minute, k%4 < 2, []string{"", "las"}[k/3%2], k%2 == 0
		c.MaxSteps = []int{20000, 30}[k/8]
		w, err := sched.Take(sched.Taken{MaxGPUs: 8, Window: c.Window, Estimates: c.Estimates}, linked, whole)
		if err != nil {
			t.Fatal(err)
		}
		e, err := delayoffer.New(c, linked, archived{w.Windows}, traces.Training)
		add(fmt.Sprint("delayoffer ", k), e, err)
	}
	golden(t, "testdata/golden_episodes.txt", lines)
}

// golden compares lines with a file; -update rewrites it.
func golden(t *testing.T, file string, lines []string) {
	t.Helper()
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i, l := range lines {
		if i >= len(want) || want[i] != l {
			t.Errorf("%s has, in place of %q, %q", file, l, want[min(i, len(want)-1)])
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%s has %d lines, and these are %d", file, len(want), len(lines))
	}
}
