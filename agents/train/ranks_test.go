package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"clustergym/agents"
	"clustergym/agents/ppo"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
)

// hub connects ranks that are goroutines.
type hub struct {
	mu      sync.Mutex
	all     *sync.Cond
	of      int
	given   []any
	arrived int
	round   int
	err     error
}

func newHub(of int) *hub {
	h := &hub{of: of, given: make([]any, of)}
	h.all = sync.NewCond(&h.mu)
	return h
}

// meet returns what all ranks have given.
func (h *hub) meet(rank int, x any) ([]any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	given, round := h.given, h.round
	given[rank] = x
	if h.arrived++; h.arrived == h.of {
		h.arrived, h.given = 0, make([]any, h.of)
		h.round++
		h.all.Broadcast()
	}
	for h.round == round {
		if h.err != nil {
			return nil, h.err
		}
		h.all.Wait()
	}
	return given, nil
}

func (h *hub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	h.all.Broadcast()
}

// end is a rank's end of the hub.
type end struct {
	*hub
	rank int
}

func (e end) Sum(_ int, x []float32, y []float64) error {
	type both struct {
		x []float32
		y []float64
	}
	all, err := e.meet(e.rank, both{slices.Clone(x), slices.Clone(y)})
	if err != nil {
		return err
	}
	for k, b := range all {
		theirs := b.(both)
		if len(theirs.x) != len(x) || len(theirs.y) != len(y) {
			return errors.New("sums of different lengths")
		}
		for i, v := range theirs.x {
			if k == 0 {
				x[i] = 0
			}
			x[i] += v
		}
		for i, v := range theirs.y {
			if k == 0 {
				y[i] = 0
			}
			y[i] += v
		}
	}
	return nil
}

func (e end) Gather(_ int, own, all []byte) error {
	got, err := e.meet(e.rank, slices.Clone(own))
	for k, b := range got {
		copy(all[k*len(own):], b.([]byte))
	}
	return err
}

func (e end) Any(yes bool) (bool, error) {
	all, err := e.meet(e.rank, yes)
	return slices.Contains(all, any(true)), err
}

func (e end) Collect(own []byte) ([][]byte, error) {
	all, err := e.meet(e.rank, slices.Clone(own))
	if err != nil || e.rank > 0 {
		return nil, err
	}
	var list [][]byte
	for _, b := range all {
		list = append(list, b.([]byte))
	}
	return list, nil
}

func someEnvs(t *testing.T, id string, n int) *vec.Vec {
	t.Helper()
	var envs []env.Env
	for range n {
		e, err := control.New(id)
		if err != nil {
			t.Fatal(err)
		}
		envs = append(envs, e)
	}
	v, err := vec.New(vec.Config{Autoreset: vec.SameStep}, envs...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// written returns parts by name, and their order.
func written(parts []agents.Part) (map[string]string, []string, error) {
	m, names := map[string]string{}, []string(nil)
	for _, p := range parts {
		var b bytes.Buffer
		if _, err := p.WriteTo(&b); err != nil {
			return nil, nil, err
		}
		m[p.Name()], names = b.String(), append(names, p.Name())
	}
	return m, names, nil
}

// saved is what a training leaves: its checkpoints by step, and its records.
type saved struct {
	checkpoints map[int64]map[string]string
	names       []string
	records     []string
}

func (s *saved) log(r Record) error {
	s.records = append(s.records, fmt.Sprintf("%+v", r))
	return nil
}

// alone trains all rows in one process, from a checkpoint on if there is one.
func alone(t *testing.T, id string, cfg Config, c ppo.Config, from map[string]string, until int64) saved {
	t.Helper()
	v := someEnvs(t, id, cfg.Envs)
	a, err := ppo.NewReplicas(c, v.Spec(), cfg.Envs, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(cfg, v, a, 3)
	if err != nil {
		t.Fatal(err)
	}
	parts := append(a.Parts(), tr.Parts()...)
	read(t, parts, from)
	s := saved{checkpoints: map[int64]map[string]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	err = tr.Run(ctx, Hooks{Log: s.log, Checkpoint: func(step int64) error {
		m, names, err := written(parts)
		s.checkpoints[step], s.names = m, names
		if step >= until {
			cancel()
		}
		return err
	}})
	cancel()
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, parts []agents.Part, from map[string]string) {
	t.Helper()
	for _, p := range parts {
		if from == nil {
			break
		}
		if _, err := p.ReadFrom(strings.NewReader(from[p.Name()])); err != nil {
			t.Errorf("%s: %v", p.Name(), err)
		}
	}
}

// inRanks is alone with a rank for each replica.
func inRanks(t *testing.T, id string, cfg Config, c ppo.Config, from map[string]string, until int64) saved {
	t.Helper()
	n := c.Replicas
	h := newHub(n)
	s := saved{checkpoints: map[int64]map[string]string{}}
	one := func(k int) error {
		p := end{h, k}
		v := someEnvs(t, id, cfg.Envs/n)
		a, err := ppo.NewRank(c, v.Spec(), cfg.Envs, 1, 3, k, p)
		if err != nil {
			return err
		}
		tr, err := NewRank(cfg, v, a, 3, k, n, p)
		if err != nil {
			return err
		}
		read(t, append(a.Parts(), tr.Parts()...), from)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		hooks := Hooks{Checkpoint: func(step int64) error {
			if step >= until && k == n-1 {
				cancel() // one is enough
			}
			share := map[string][]byte{}
			for _, x := range []agents.Share{a, tr} {
				if err := x.Sync(); err != nil {
					return err
				}
				m, _, err := written(x.Share())
				if err != nil {
					return err
				}
				for name, text := range m {
					share[name] = []byte(text)
				}
			}
			all, err := h.meet(k, share)
			if err != nil || k > 0 {
				return err
			}
			var shares []map[string][]byte
			for _, x := range all {
				shares = append(shares, x.(map[string][]byte))
			}
			var parts []agents.Part
			for _, x := range []agents.Share{a, tr} {
				whole, err := x.Whole(shares)
				if err != nil {
					return err
				}
				parts = append(parts, whole...)
			}
			s.checkpoints[step], s.names, err = written(parts)
			return err
		}}
		if k == 0 {
			hooks.Log = s.log
		} else {
			hooks.Log = func(Record) error { return nil }
		}
		if err := tr.Run(ctx, hooks); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() {
			if errs[k] = one(k); errs[k] != nil {
				h.fail(errs[k])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return s
}

// same compares checkpoints at the steps that both have, at least one, and records.
func same(t *testing.T, what string, got, want saved) {
	t.Helper()
	common := 0
	for _, step := range slices.Sorted(maps.Keys(got.checkpoints)) {
		w, ok := want.checkpoints[step]
		if !ok {
			t.Errorf("%s: a checkpoint at step %d", what, step)
			continue
		}
		common++
		for _, name := range slices.Sorted(maps.Keys(w)) {
			if got.checkpoints[step][name] != w[name] {
				t.Errorf("%s, step %d: %s differs", what, step, name)
			}
		}
	}
	if common == 0 || !reflect.DeepEqual(got.names, want.names) {
		t.Errorf("%s: %d common checkpoints of %q, want of %q", what, common, got.names, want.names)
	}
}

// Ranks, each with a share of the rows, leave what one process with as many replicas leaves, byte for byte, and one
// goes on where the other was stopped, also in the middle of a rollout.
func TestRanksAreReplicas(t *testing.T) {
	plain := ppo.DefaultConfig()
	// 3 pieces of 32 or 64 steps are uneven
	plain.Steps, plain.Epochs, plain.Minibatches, plain.RewardScale = 16, 2, 3, true
	plain.Network.Hidden = []int{8}
	for name, c := range map[string]struct {
		env    string
		ranks  int
		group  int
		change func(c *ppo.Config)
	}{
		"plain":   {"InvalidAction-v1", 2, 0, func(*ppo.Config) {}},
		"shards":  {"CartPole-v1", 3, 0, func(c *ppo.Config) { c.Shards, c.ClipValue, c.AnnealClip = 3, 0.2, true }},
		"kl":      {"CartPole-v1", 4, 0, func(c *ppo.Config) { c.TargetKL, c.LR, c.Epochs = 0.001, 0.01, 4 }},
		"norm":    {"CartPole-v1", 3, 0, func(c *ppo.Config) { c.NormObs, c.Batch = true, 10 }},
		"numbers": {"Nav2D-v1", 2, 0, func(c *ppo.Config) { c.NormObs, c.ScaleActions = true, true }},
		"popart":  {"CartPole-v1", 2, 0, func(c *ppo.Config) { c.ValueNorm, c.NormAdvantage = ppo.PopArt, false }},
		"group":   {"CartPole-v1", 3, 2, func(c *ppo.Config) { c.Baseline = ppo.ByGroup }},
		"critic": {"CartPole-v1", 2, 0,
			func(c *ppo.Config) { c.CriticEpochs, c.Network.Separate, c.CriticWarmup = 2, true, 1 }},
		"anchored": {"ProbeTruncation-v1", 2, 0,
			func(c *ppo.Config) { c.Anchor, c.AnchorDecay, c.AnnealLR = 0.3, 0.5, false }},
	} {
		p := plain
		p.Replicas, p.Group = c.ranks, c.group
		c.change(&p)
		rows := c.ranks * 4
		update := int64(rows * p.Steps)
		cfg := Config{Steps: 6 * update, Envs: rows, Group: c.group, LogEvery: update / 2, CheckpointEvery: update * 5 / 4}
		want := alone(t, c.env, cfg, p, nil, 1<<40)
		got := inRanks(t, c.env, cfg, p, nil, 1<<40)
		same(t, name, got, want)
		if !reflect.DeepEqual(got.records, want.records) {
			t.Errorf("%s: records\n%s\nwant\n%s", name, strings.Join(got.records, "\n"), strings.Join(want.records, "\n"))
		}
		if len(want.checkpoints) < 4 {
			t.Fatalf("%s: %d checkpoints", name, len(want.checkpoints))
		}
		at := slices.Sorted(maps.Keys(want.checkpoints))[1] // in the middle of a rollout
		same(t, name+", ranks go on", inRanks(t, c.env, cfg, p, want.checkpoints[at], 1<<40), want)
		stopped := inRanks(t, c.env, cfg, p, nil, at)
		if len(stopped.checkpoints) >= len(want.checkpoints) {
			t.Errorf("%s: not stopped", name)
		}
		same(t, name+", one process goes on", alone(t, c.env, cfg, p, stopped.checkpoints[at], 1<<40), want)
	}
}

func TestRanksRefuseWhatDoesNotFit(t *testing.T) {
	v := someEnvs(t, "CartPole-v1", 4)
	if _, err := NewRank(Config{Steps: 1, Envs: 9}, v, nil, 1, 0, 2, end{}); err == nil ||
		!strings.Contains(err.Error(), "rank 0 of 2 with 9 environments, want a multiple") {
		t.Error(err)
	}
	if _, err := NewRank(Config{Steps: 1, Envs: 10}, v, nil, 1, 0, 2, end{}); err == nil ||
		!strings.Contains(err.Error(), "4 environments") {
		t.Error(err)
	}
	c := ppo.DefaultConfig()
	c.Replicas, c.PreemptShare = 2, 0.6
	if _, err := ppo.NewRank(c, v.Spec(), 8, 1, 1, 0, end{}); err == nil ||
		!strings.Contains(err.Error(), "preempt_share") {
		t.Error(err)
	}
}
