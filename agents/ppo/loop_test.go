package ppo

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/vec"
	"clustergym/internal/rng"
)

// loop is the least that training needs: environments, streams and the agent.
type loop struct {
	t     testing.TB
	v     *vec.Vec
	agent *Agent
	b     *env.Batch
	next  *env.Batch
	act   *env.Actions
	pcg   []*rand.PCG
	src   []*rand.Rand
	steps int // of all rows
	total int // that progress counts towards

	sum     []float64 // return of each row's episode under way
	returns []float64 // of finished episodes
	stats   agents.Stats
}

func makeVec(t testing.TB, id string, rows int, mode vec.Autoreset, seed uint64) *vec.Vec {
	t.Helper()
	var envs []env.Env
	for range rows {
		e, err := control.New(id)
		if err != nil {
			t.Fatal(err)
		}
		envs = append(envs, e)
	}
	v, err := vec.New(vec.Config{Workers: 1, Autoreset: mode}, envs...)
	if err != nil {
		t.Fatal(err)
	}
	v.Seed(seed)
	return v
}

func newLoop(t testing.TB, id string, rows, workers int, mode vec.Autoreset, cfg Config, seed uint64, total int) *loop {
	t.Helper()
	v := makeVec(t, id, rows, mode, rng.Source(seed, "train/envs").Uint64())
	a, err := New(cfg, v.Spec(), rows, workers, seed)
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{
		t: t, v: v, agent: a, b: env.NewBatch(v.Spec(), rows), next: env.NewBatch(v.Spec(), rows),
		act: env.NewActions(v.Spec(), rows), sum: make([]float64, rows), total: total,
	}
	for i := range rows {
		p := rng.Source(seed, "act/"+string(rune('a'+i)))
		l.pcg, l.src = append(l.pcg, p), append(l.src, rand.New(p))
	}
	if err := v.Reset(context.Background(), nil, nil, l.b); err != nil {
		t.Fatal(err)
	}
	return l
}

// step is one step of all rows, and an update where one is due. An illegal action fails the test: environments
// refuse it.
func (l *loop) step() (learnt bool) {
	l.t.Helper()
	ctx := context.Background()
	if err := l.agent.Act(ctx, l.b, l.act, l.src); err != nil {
		l.t.Fatal(err)
	}
	if err := l.v.Step(ctx, nil, l.act, l.next); err != nil {
		l.t.Fatal(err)
	}
	if err := l.agent.Observe(l.b, l.act, l.next); err != nil {
		l.t.Fatal(err)
	}
	for i, kind := range l.next.Kind {
		if kind != env.First {
			l.steps++
		}
		l.sum[i] += l.next.Reward[i]
		if kind.Last() {
			l.returns = append(l.returns, l.sum[i])
			l.sum[i] = 0
		}
	}
	l.agent.Progress(float64(l.steps) / float64(l.total))
	stats, err := l.agent.Learn(ctx)
	if err != nil && !errors.Is(err, agents.ErrNotReady) {
		l.t.Fatal(err)
	}
	l.b, l.next = l.next, l.b
	if err == nil {
		l.stats = stats
	}
	return err == nil
}

// update steps until something was learnt.
func (l *loop) update() {
	l.t.Helper()
	for learnt := false; !learnt; {
		learnt = l.step()
	}
}

func (l *loop) train() *loop {
	l.t.Helper()
	for l.steps < l.total {
		l.step()
	}
	return l
}

// stat is a number of the last update.
func (l *loop) stat(name string) float64 {
	l.t.Helper()
	for _, s := range l.stats {
		if s.Name == name {
			return s.Value
		}
	}
	l.t.Fatalf("no statistic %q in %v", name, l.stats)
	return 0
}

// evaluate is the mean return of episodes played by p.
func evaluate(t testing.TB, id string, p agents.Policy, episodes int) float64 {
	t.Helper()
	const rows = 10
	v := makeVec(t, id, rows, vec.SameStep, 12345)
	b, act := env.NewBatch(v.Spec(), rows), env.NewActions(v.Spec(), rows)
	ctx := context.Background()
	if err := v.Reset(ctx, nil, nil, b); err != nil {
		t.Fatal(err)
	}
	var src []*rand.Rand
	for i := range rows {
		src = append(src, rand.New(rand.NewPCG(99, uint64(i))))
	}
	sum, count := 0.0, 0
	for count < episodes {
		if err := p.Act(ctx, b, act, src); err != nil {
			t.Fatal(err)
		}
		if err := v.Step(ctx, nil, act, b); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			sum += b.Reward[i]
			if b.Kind[i].Last() {
				count++
			}
		}
	}
	return sum / float64(count)
}

// valueOf is the critic's value of an observation.
func valueOf(t testing.TB, a *Agent, obs ...float32) float64 {
	t.Helper()
	v := make([]float32, 1)
	if err := a.fwd.run(context.Background(), obs, 1, nil, v); err != nil {
		t.Fatal(err)
	}
	return float64(v[0])
}

// state is every part's bytes.
func stateOf(t testing.TB, ps []agents.Part) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, p := range ps {
		var w bytes.Buffer
		if _, err := p.WriteTo(&w); err != nil {
			t.Fatal(err)
		}
		out[p.Name()] = w.Bytes()
	}
	return out
}

func sameState(t testing.TB, what string, got, want map[string][]byte) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Errorf("%s: %d parts, want %d", what, len(got), len(want))
	}
	for name, data := range want {
		if !bytes.Equal(got[name], data) {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}
