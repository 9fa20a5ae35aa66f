package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/snap"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// A run is saved at a random moment, possibly between two decisions of one point, and restored in a new simulator. It
// continues identically, and a snapshot of the restored run equals the first one.
func TestSnapshotContinuesIdentically(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		stop := rapid.IntRange(0, 120).Draw(t, "decisions before")
		r := rand.New(rand.NewPCG(seed, 3))
		spec, cfg := richSpec(r), richConfig(r, second)
		if r.IntN(3) == 0 {
			cfg.Horizon = 200 * second
		}
		jobs := rich(r, 30, 4, second)
		s := start(t, cfg, spec, jobs)

		c := newChaos(t, r)
		c.legal, c.moves = true, true
		open := c.until(t, s, stop)

		saved := s.AppendSnapshot([]byte("before"))[len("before"):]
		fork := start(t, cfg, spec, jobs[:0])
		if err := fork.RestoreSnapshot(saved, &traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		if again := fork.AppendSnapshot(nil); !bytes.Equal(again, saved) {
			t.Fatal("the snapshot of the restored run differs")
		}
		if fmt.Sprint(fork.Refused()) != fmt.Sprint(s.Refused()) {
			t.Fatalf("refused %+v, then %+v", s.Refused(), fork.Refused())
		}
		var logs [2]lines
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

// saved returns a run midway: jobs wait, run and have just ended, and a decision is pending.
func saved(t fatal) (s *sim.Simulator, spec string, jobs []traces.Job, snapshot []byte) {
	spec = "2x2"
	jobs = []traces.Job{job("A", 0, 10*second, 1), job("B", second, 9*second, 1), job("huge", second, second, 99),
		job("C", 2*second, second, 3),
		job("D", 10*second, 5*second, 2), job("E", 20*second, second, 1)}
	s = start(t, sim.DefaultConfig(), short(t, spec), jobs)
	g, v := newGreedy(t, "best-fit"), s.View()
	for {
		p := advance(t, s)
		if v.Now() == 10*second {
			break
		}
		for {
			var d sim.Decision
			if err := g.Decide(v, p, &d); err != nil {
				t.Fatal(err)
			}
			apply(t, s, d)
			if d.Op == sim.Wait {
				break
			}
		}
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: v.Waiting()[0], GPUs: nGPUs(v, v.Waiting()[0])})
	return s, spec, jobs, s.AppendSnapshot(nil)
}

func nGPUs(v *sim.View, j sim.Job) (gpus []gpu) {
	for i := range v.Request(j).GPUs {
		gpus = append(gpus, gpu(i))
	}
	return gpus
}

// With any byte changed or cut off, restoring returns ErrSnapshot, and the run continues unaffected.
func TestHostileSnapshots(t *testing.T) {
	s, spec, jobs, good := saved(t)
	other := start(t, sim.DefaultConfig(), short(t, spec), jobs)
	advance(t, other)
	before := other.AppendSnapshot(nil)
	try := func(what string, b []byte) {
		t.Helper()
		if err := other.RestoreSnapshot(b, &traces.Slice{Jobs: jobs}); !errors.Is(err, sim.ErrSnapshot) {
			t.Errorf("%s: %v, want ErrSnapshot", what, err)
		}
	}
	for i := range good {
		try(fmt.Sprint("cut at ", i), good[:i])
		for _, x := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(good)
			bad[i] ^= x
			try(fmt.Sprint("byte ", i, " xor ", x), bad)
		}
	}
	try("a byte more", append(bytes.Clone(good), 0))
	if after := other.AppendSnapshot(nil); !bytes.Equal(before, after) {
		t.Error("what could not be restored changed the run")
	}
	if err := other.RestoreSnapshot(good, &traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(other.AppendSnapshot(nil), s.AppendSnapshot(nil)) {
		t.Error("the good snapshot did not restore the run")
	}
}

func TestSnapshotsOfOtherRunsAreRefused(t *testing.T) {
	_, spec, jobs, good := saved(t)
	changed := func(f func(j []traces.Job) []traces.Job) []traces.Job {
		return f(append([]traces.Job(nil), jobs...))
	}
	with := func(change func(*sim.Config)) sim.Config {
		cfg := sim.DefaultConfig()
		change(&cfg)
		return cfg
	}
	for name, c := range map[string]struct {
		cfg  sim.Config
		spec string
		jobs []traces.Job
	}{
		"another cluster":    {sim.DefaultConfig(), "1x4", jobs},
		"another model":      {with(func(c *sim.Config) { c.Comm = "tree" }), spec, jobs},
		"another horizon":    {with(func(c *sim.Config) { c.Horizon = 1000 * second }), spec, jobs},
		"another restart":    {with(func(c *sim.Config) { c.Restart = 1 }), spec, jobs},
		"another checkpoint": {with(func(c *sim.Config) { c.Checkpoint = 1 }), spec, jobs},
		"interference":       {with(func(c *sim.Config) { c.Interference = pairs{} }), spec, jobs},
		"no jobs":            {sim.DefaultConfig(), spec, nil},
		"fewer jobs":         {sim.DefaultConfig(), spec, jobs[:4]},
		"a shorter job ended": {sim.DefaultConfig(), spec,
			changed(func(j []traces.Job) []traces.Job { j[0].Work--; return j })},
		"a waiting job's gang": {sim.DefaultConfig(), spec,
			changed(func(j []traces.Job) []traces.Job { j[3].GPUs--; return j })},
		"one job less": {sim.DefaultConfig(), spec, changed(func(j []traces.Job) []traces.Job { return j[1:] })},
	} {
		s := start(t, c.cfg, short(t, c.spec), nil)
		if err := s.RestoreSnapshot(good, &traces.Slice{Jobs: c.jobs}); !errors.Is(err, sim.ErrSnapshot) {
			t.Errorf("%s: %v, want ErrSnapshot", name, err)
		}
	}
	// The stream may differ after the moment of the snapshot.
	s := start(t, sim.DefaultConfig(), short(t, spec), nil)
	if err := s.RestoreSnapshot(good, &traces.Slice{Jobs: append(jobs[:6:6], job("F", 30*second, second, 1))}); err !=
		nil {
		t.Error(err)
	}
}

// savedRich returns a run midway with every feature on: a node is down, gangs are larger and smaller than asked for,
// jobs have lost work, and rates depend on neighbours.
func savedRich(t fatal) (cfg sim.Config, spec cluster.Spec, jobs []traces.Job, snapshot []byte) {
	cfg = sim.Config{
		Comm: "contention", Contention: sim.Contention{B: time.Millisecond, Eta: time.Millisecond}, Restart: second,
		Overhead: sim.Overhead{Start: 3 * second, StopPerGPU: second}, Checkpoint: 4 * second,
		Failures: sim.Failures{MTBF: 300 * second, MTTR: 100 * second}, Seed: 3, Interference: pairs{},
		InterferenceScope: "node",
	}
	spec = short(t, "3x4")
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 12))
		jobs = rich(r, 12, 4, second)
		s := start(t, cfg, spec, jobs)
		c, v := newChaos(t, r), s.View()
		c.legal, c.moves = true, true
		for {
			if _, err := s.Advance(context.Background()); ended(t, err) || v.Over() {
				break
			}
			var sized, lost, moved bool
			for _, j := range v.Running() {
				sized = sized || v.Request(j).GPUs != v.Asked(j)
				lost = lost || v.Lost(j) > 0
				moved = moved || v.Migrations(j) > 0
			}
			if sized && lost && moved && v.Cluster().DownGPUs() > 0 && len(v.Running()) > 2 {
				return cfg, spec, jobs, s.AppendSnapshot(nil)
			}
			c.play(t, s)
		}
	}
	t.Fatal("no run comes to such a point")
	return cfg, spec, jobs, nil
}

// FuzzRestoreRichSnapshot is FuzzRestoreSnapshot with every feature on.
func FuzzRestoreRichSnapshot(f *testing.F) {
	const magic = "CGsim2"
	cfg, spec, jobs, good := savedRich(f)
	inner := good[len(magic) : len(good)-4]
	f.Add(bytes.Clone(inner))
	for i := 16; i < len(inner); i += 8 {
		for _, x := range []byte{1, 0x80} {
			bad := bytes.Clone(inner)
			bad[i] ^= x
			f.Add(bad)
			bad = bytes.Clone(inner)
			bad[min(i+6, len(bad)-1)] ^= x
			f.Add(bad)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := start(t, cfg, spec, jobs)
		err := s.RestoreSnapshot(snap.Seal(append(snap.Begin(nil, magic), body...), 0), &traces.Slice{Jobs: jobs})
		if err != nil {
			if !errors.Is(err, sim.ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		if err := s.RestoreSnapshot(s.AppendSnapshot(nil), &traces.Slice{Jobs: jobs}); err != nil {
			t.Fatalf("what was restored cannot be restored again: %v", err)
		}
		c, v := newChaos(t, rand.New(rand.NewPCG(1, 1))), s.View()
		c.legal, c.moves = true, true
		if err := s.Apply(&sim.Decision{}); err == nil || v.Over() {
			for range 50 { // repairs may be hundreds of years away
				p, err := s.Advance(context.Background())
				if err != nil {
					return
				}
				_ = text(v, p)
				if v.Over() {
					return
				}
				c.play(t, s)
			}
		}
	})
}

// FuzzRestoreSnapshot fixes the checksum of the fuzzed bytes: they are either refused, or give a run whose books
// balance and that can be played to its end.
func FuzzRestoreSnapshot(f *testing.F) {
	const magic = "CGsim2"
	_, spec, jobs, good := saved(f)
	inner := good[len(magic) : len(good)-4]
	f.Add(bytes.Clone(inner))
	for i := 16; i < len(inner); i += 8 {
		bad := bytes.Clone(inner)
		bad[i]++
		f.Add(bad)
	}
	f.Add(start(f, sim.DefaultConfig(), short(f, spec), jobs).AppendSnapshot(nil)[len(magic):])
	f.Fuzz(func(t *testing.T, body []byte) {
		s := start(t, sim.DefaultConfig(), short(t, spec), jobs)
		whole := snap.Seal(append(snap.Begin(nil, magic), body...), 0)
		err := s.RestoreSnapshot(whole, &traces.Slice{Jobs: jobs})
		if err != nil {
			if !errors.Is(err, sim.ErrSnapshot) {
				t.Fatal(err)
			}
			return
		}
		g, v := newGreedy(t, "best-fit"), s.View()
		p := &sim.Point{}
		_ = s.AppendSnapshot(nil)
		for n := 0; n < 100; n++ {
			for !v.Over() {
				var d sim.Decision
				if err := g.Decide(v, p, &d); err != nil {
					t.Fatal(err)
				}
				if err := s.Apply(&d); err != nil || d.Op == sim.Wait {
					break
				}
			}
			if p, err = s.Advance(context.Background()); err != nil {
				return
			}
			_ = text(v, p)
			if err := s.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
		}
		t.Fatal("six jobs and no end")
	})
}
