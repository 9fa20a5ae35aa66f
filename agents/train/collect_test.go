package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
)

// watched are replicas; done is told of every one that wants no more steps.
type watched struct {
	*ppo.Replicas
	list []agents.Collector
	done func(k int)

	updates []agents.Stats
}

type watchedOne struct {
	agents.Collector
	k   int
	all *watched
}

func (w *watched) Collectors() []agents.Collector { return w.list }

func (w *watched) Learn(ctx context.Context) (agents.Stats, error) {
	s, err := w.Replicas.Learn(ctx)
	if err == nil {
		w.updates = append(w.updates, slices.Clone(s)) // the slice is Learn's
	}
	return s, err
}

func (c *watchedOne) Observe(b *env.Batch, a *env.Actions, next *env.Batch) error {
	err := c.Collector.Observe(b, a, next)
	if !c.More() {
		c.all.done(c.k)
	}
	return err
}

// stepping calls before in every step of an environment.
type stepping struct {
	env.Env
	before func() error
}

func (s *stepping) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if err := s.before(); err != nil {
		return err
	}
	return s.Env.Step(ctx, a, ts)
}

func (s *stepping) AppendSnapshot(dst []byte) ([]byte, error) {
	return s.Env.(env.Snapshotter).AppendSnapshot(dst)
}

func (s *stepping) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return s.Env.(env.Snapshotter).RestoreSnapshot(src, ts)
}

const replicas = 4

// apart returns a trainer of replicas with rollouts of 16 steps; before is called with the row in every step, nil =
// nothing. scaled scales rewards, whose order of summation shows in the last bits if a run was interrupted.
func apart(t *testing.T, cfg Config, share float64, scaled bool, seed uint64, before func(row int) error) (*Trainer,
	*watched, []agents.Part) {
	t.Helper()
	var envs []env.Env
	for i := range cfg.Envs {
		e, err := control.New("InvalidAction-v1")
		if err != nil {
			t.Fatal(err)
		}
		if before != nil {
			e = &stepping{e, func() error { return before(i) }}
		}
		envs = append(envs, e)
	}
	v, err := vec.New(vec.Config{Autoreset: vec.SameStep}, envs...)
	if err != nil {
		t.Fatal(err)
	}
	c := ppo.DefaultConfig()
	c.Steps, c.Epochs, c.Minibatches, c.RewardScale, c.Replicas, c.PreemptShare = 16, 2, 3, scaled, replicas, share
	c.Network.Hidden = []int{8}
	r, err := ppo.NewReplicas(c, v.Spec(), cfg.Envs, 2, seed)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Replicas: r, done: func(int) {}}
	for k, one := range r.Collectors() {
		w.list = append(w.list, &watchedOne{one, k, w})
	}
	tr, err := New(cfg, v, w, seed)
	if err != nil {
		t.Fatal(err)
	}
	return tr, w, append(w.Parts(), tr.Parts()...)
}

func stat(t *testing.T, s agents.Stats, name string) float64 {
	t.Helper()
	i := slices.IndexFunc(s, func(s agents.Stat) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no %s in %v", name, s)
	}
	return s[i].Value
}

// goroutines fails the test if more goroutines run at its end than at its beginning.
func goroutines(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				return
			}
		}
	})
}

// A run whose replicas take their steps apart, and of which none is cut short, ends with the bytes of one whose
// replicas step together: weights, moments, streams, environments, returns, and number of steps, whether or not the
// last rollout is full, and whichever replica is faster.
func TestCollectorsThatAreAllWaitedForChangeNothing(t *testing.T) {
	for _, steps := range []int64{1024, 1500} {
		cfg := Config{Steps: steps, Envs: 8, Keep: 1}
		var last [2]Record
		var state [2]map[string][]byte
		for i, share := range []float64{0, 1} {
			slow := rand.New(rand.NewPCG(1, 1))
			var mu sync.Mutex
			tr, _, parts := apart(t, cfg, share, true, 7, func(row int) error {
				mu.Lock()
				n := slow.IntN(1 + row%5)
				mu.Unlock()
				for range n {
					runtime.Gosched()
				}
				return nil
			})
			if share == 0 {
				tr.agent = tr.agent.(*watched).Replicas // as it comes, without collectors
			}
			if err := tr.Run(t.Context(), Hooks{Log: func(r Record) error { last[i] = r; return nil }}); err != nil {
				t.Fatal(err)
			}
			state[i] = bytesOf(t, parts)
		}
		if last[0].Updates < 8 || last[0].Episodes == 0 {
			t.Fatalf("%+v: nothing is tested", last[0])
		}
		n := len(last[0].Learn)
		if tail := last[1].Learn[n:]; fmt.Sprint(tail) != "[{ppo/preempted 0} {ppo/collected 1}]" {
			t.Errorf("%v, want nobody cut short and all collected", tail)
		}
		last[1].Learn = last[1].Learn[:n]
		if got, want := fmt.Sprintf("%+v", last[1]), fmt.Sprintf("%+v", last[0]); got != want {
			t.Errorf("record\n%s, want\n%s", got, want)
		}
		for name, want := range state[0] {
			if string(state[1][name]) != string(want) {
				t.Errorf("%d steps: %s differs", steps, name)
			}
		}
	}
}

// An environment blocks until all other replicas are done. Its replica is then cut short, with at least a quarter of
// its rollout, and learning continues, every time. Counts are of the steps that were collected.
func TestABlockedReplicaIsCutShort(t *testing.T) {
	for _, c := range []struct{ at, want int64 }{{0, 4}, {2, 4}, {6, 7}} {
		goroutines(t)
		var blocked, done atomic.Int64 // times that row 3 was blocked in this rollout; others that have ended theirs
		var taken [8]atomic.Int64      // steps of each row in it
		wait := func(n *atomic.Int64, want int64) error {
			for end := time.Now().Add(30 * time.Second); n.Load() < want; time.Sleep(100 * time.Microsecond) {
				if time.Now().After(end) {
					return errors.New("nobody comes")
				}
			}
			return nil
		}
		cfg := Config{Steps: 1 << 40, Envs: 8, Keep: 1}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tr, w, _ := apart(t, cfg, 0.75, true, 7, func(row int) error {
			n := taken[row].Add(1)
			switch {
			case row == 3 && n == c.at+1:
				blocked.Add(1)
				return wait(&done, 3)
			case row/2 != 1 && n == 16: // so that the others are not done before it gets here
				return wait(&blocked, 1)
			}
			return nil
		})
		w.done = func(k int) {
			if k != 1 {
				done.Add(1)
			}
		}
		ticks := 0
		err := tr.Run(ctx, Hooks{Tick: func(p Progress) error {
			if ticks++; ticks == 3 {
				cancel()
			}
			if want := int64(ticks) * (2*3*16 + 2*c.want); p.Step != want {
				t.Errorf("step %d after %d updates, want %d", p.Step, ticks, want)
			}
			for i := range taken {
				taken[i].Store(0)
			}
			blocked.Store(0)
			done.Store(0)
			return nil
		}})
		if !errors.Is(err, context.Canceled) || len(w.updates) != 3 {
			t.Fatalf("blocked at step %d: %d updates and %v, want 3 until it is cancelled", c.at, len(w.updates), err)
		}
		for _, s := range w.updates {
			if n, share := stat(t, s, "ppo/preempted"), stat(t, s, "ppo/collected"); n != 1 || share != float64(3*16+c.want)/64 {
				t.Errorf("blocked at step %d: %v cut short, %v collected, want 1 and %d/64", c.at, n, share, 3*16+c.want)
			}
		}
	}
}

// A run that is cancelled while replicas collect stops between two of their steps, can be saved, and continues in
// another process's objects. If no replica is ever cut short, it ends with the weights of an uninterrupted run.
func TestCancelledWhileCollecting(t *testing.T) {
	for _, share := range []float64{0.5, 1} {
		goroutines(t)
		cfg := Config{Steps: 2000, Envs: 8, Keep: 1}
		straight, _, parts := apart(t, cfg, share, false, 7, nil)
		if err := straight.Run(t.Context(), Hooks{}); err != nil {
			t.Fatal(err)
		}
		want := bytesOf(t, parts)

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var taken [8]atomic.Int64
		first, w, parts := apart(t, cfg, share, false, 7, func(row int) error {
			// In a later rollout, when replicas 1 and 2 have some steps of it and wait.
			if n := taken[row].Add(1); row == 0 && n == 130 {
				cancel()
			}
			return nil
		})
		if err := first.Run(ctx, Hooks{}); !errors.Is(err, context.Canceled) {
			t.Fatalf("share %v: %v, want context.Canceled", share, err)
		}
		sum, held := int64(0), 0
		for i := range taken {
			sum += taken[i].Load()
		}
		for _, c := range w.Collectors() {
			held += c.Len()
		}
		if first.Step() != sum || share == 1 && held == 0 || sum >= cfg.Steps {
			t.Fatalf("share %v: step %d of %d taken, %d in rollouts: want a stop in the middle", share, first.Step(), sum, held)
		}
		dir := filepath.Join(t.TempDir(), "cut")
		if err := checkpoint.Save(dir, checkpoint.Meta{Step: first.Step()}, parts...); err != nil {
			t.Fatal(err)
		}
		second, w2, parts := apart(t, cfg, share, false, 8, nil)
		if _, err := checkpoint.Load(dir, parts...); err != nil {
			t.Fatal(err)
		}
		if err := second.Run(t.Context(), Hooks{}); err != nil {
			t.Fatal(err)
		}
		if n := second.Step(); n < cfg.Steps || n >= cfg.Steps+8 || len(w2.updates) == 0 {
			t.Errorf("share %v: it ends at step %d after %d more updates", share, n, len(w2.updates))
		}
		if share < 1 {
			continue
		}
		got := bytesOf(t, parts)
		for _, name := range []string{"weights.safetensors", "optimizer.safetensors", "envs.bin", "rollout.bin",
			"rollout-3.bin"} {
			if string(got[name]) != string(want[name]) {
				t.Errorf("%s differs from that of a run that was not interrupted", name)
			}
		}
	}
}

// An error in the rows of one replica ends the run and names the rows, and the others stop soon.
func TestAnErrorInOneLaneEndsTheRun(t *testing.T) {
	goroutines(t)
	broken := errors.New("broken")
	var others atomic.Int64
	tr, w, _ := apart(t, Config{Steps: 1 << 40, Envs: 8, Keep: 1}, 1, true, 7, func(row int) error {
		if row == 5 {
			return broken
		}
		others.Add(1)
		return nil
	})
	err := tr.Run(t.Context(),
		Hooks{Checkpoint: func(int64) error { t.Error("a checkpoint after the error"); return nil }})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "in rows 4 to 5, counted from 0: vec: row 1: broken") {
		t.Errorf("error %v, want that of row 5", err)
	}
	if n := others.Load(); n > 7*16 || len(w.updates) != 0 {
		t.Errorf("the others took %d steps, and there were %d updates", n, len(w.updates))
	}
}

// Collectors must share the rows equally.
func TestRowsAreAMultipleOfCollectors(t *testing.T) {
	tr, w, _ := apart(t, Config{Steps: 100, Envs: 8, Keep: 1}, 1, true, 7, nil)
	w.list = w.list[:3]
	if err := tr.Run(t.Context(), Hooks{}); err == nil ||
		!strings.Contains(err.Error(), "8 environments for 3 collectors") {
		t.Errorf("error %v", err)
	}
}
