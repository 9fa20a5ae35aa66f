package agenttest

import (
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

// Constructor makes an agent for rows environments of one kind that computes with workers goroutines.
type Constructor[A agents.Agent] func(spec env.Spec, rows, workers int, seed uint64) (A, error)

// Setting is what a Loop trains in.
type Setting struct {
	Env       string // of package env/control, such as "ProbeContext-v1"
	Rows      int    // environments
	Workers   int    // of the agent; the environments are stepped by one
	Autoreset vec.Autoreset
	Seed      uint64
	Total     int // steps of all rows that Progress counts towards and Train goes to
}

// Loop is the minimum that training needs: environments, streams and the agent. Any error ends the test; so does an
// illegal action, because environments refuse it. Not safe for concurrent use.
type Loop[A agents.Agent] struct {
	Agent   A
	Vec     *vec.Vec
	Batch   *env.Batch // what the agent acts on next
	Next    *env.Batch // a second one, overwritten by each step
	Actions *env.Actions
	Streams []*rand.Rand // that actions are drawn from, one a row

	Steps  int          // taken so far, of all rows; the reset steps of NextStep do not count
	Total  int          // as in Setting
	Reward float64      // factor of all rewards that the agent is shown; 1 from the start
	Stats  agents.Stats // of the last update

	t   testing.TB
	pcg []*rand.PCG // below Streams
}

// Envs returns rows environments of one kind, seeded.
func Envs(t testing.TB, id string, rows int, mode vec.Autoreset, seed uint64) *vec.Vec {
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

// NewLoop returns a loop before its first step, with the environments reset. Environments, actions and agent have
// separate streams under the seed.
func NewLoop[A agents.Agent](t testing.TB, build Constructor[A], s Setting) *Loop[A] {
	t.Helper()
	v := Envs(t, s.Env, s.Rows, s.Autoreset, rng.Source(s.Seed, "train/envs").Uint64())
	spec := v.Spec()
	a, err := build(spec, s.Rows, s.Workers, s.Seed)
	if err != nil {
		t.Fatal(err)
	}
	l := &Loop[A]{
		Agent: a, Vec: v, Batch: env.NewBatch(spec,
			s.Rows), Next: env.NewBatch(spec, s.Rows), Actions: env.NewActions(spec, s.Rows),
		Total: s.Total, Reward: 1, t: t,
	}
	for i := range s.Rows {
		p := rng.Source(s.Seed, "act/"+string(rune('a'+i)))
		l.pcg, l.Streams = append(l.pcg, p), append(l.Streams, rand.New(p))
	}
	if err := v.Reset(context.Background(), nil, nil, l.Batch); err != nil {
		t.Fatal(err)
	}
	return l
}

// Play takes one step of all rows, which the agent observes, without an update. It allocates nothing itself.
func (l *Loop[A]) Play() {
	l.t.Helper()
	ctx := context.Background()
	if err := l.Agent.Act(ctx, l.Batch, l.Actions, l.Streams); err != nil {
		l.t.Fatalf("Act: %v", err)
	}
	if err := l.Vec.Step(ctx, nil, l.Actions, l.Next); err != nil {
		l.t.Fatalf("Step: %v", err)
	}
	for i, kind := range l.Next.Kind {
		if kind != env.First {
			l.Steps++
		}
		l.Next.Reward[i] *= l.Reward
	}
	if err := l.Agent.Observe(l.Batch, l.Actions, l.Next); err != nil {
		l.t.Fatalf("Observe: %v", err)
	}
	l.Batch, l.Next = l.Next, l.Batch
}

// Step takes one step of all rows, and makes an update if one is due.
func (l *Loop[A]) Step() (learnt bool) {
	l.t.Helper()
	l.Play()
	l.Agent.Progress(float64(l.Steps) / float64(l.Total))
	stats, err := l.Agent.Learn(context.Background())
	if errors.Is(err, agents.ErrNotReady) {
		return false
	}
	if err != nil {
		l.t.Fatalf("Learn: %v", err)
	}
	l.Stats = stats
	return true
}

// Update steps until an update was made.
func (l *Loop[A]) Update() {
	l.t.Helper()
	const patience = 1 << 20
	for range patience {
		if l.Step() {
			return
		}
	}
	l.t.Fatalf("nothing was learnt in %d steps", patience)
}

// Train steps up to Total, and returns l.
func (l *Loop[A]) Train() *Loop[A] {
	l.t.Helper()
	for l.Steps < l.Total {
		l.Step()
	}
	return l
}

// Stat returns a statistic of the last update.
func (l *Loop[A]) Stat(name string) float64 {
	l.t.Helper()
	for _, s := range l.Stats {
		if s.Name == name {
			return s.Value
		}
	}
	l.t.Fatalf("no statistic %q in %v", name, l.Stats)
	return 0
}

// Evaluate returns the mean return of at least the given number of episodes played by p, in ten environments at once.
func Evaluate(t testing.TB, id string, p agents.Policy, episodes int) float64 {
	t.Helper()
	const rows = 10
	v := Envs(t, id, rows, vec.SameStep, 12345)
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
