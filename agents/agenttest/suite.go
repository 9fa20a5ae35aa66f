package agenttest

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"clustergym/agents"
	"clustergym/agents/checkpoint"
	"clustergym/env"
	"clustergym/env/vec"
)

// Learner is an agent that the suite can test: one whose parameters are in the part "weights.safetensors".
type Learner interface {
	agents.Agent
	// Network returns the fingerprint of the parameters' names and shapes, as checkpoints keep it.
	Network() string
}

// weights is the part from which a policy is made.
const weights = "weights.safetensors"

// Suite is an agent and what the suite must know about it.
type Suite[A Learner] struct {
	// of the kind of agent, as "ppo": checkpoints say it, and docs/reference/metrics.md has a section agents/ppo
	Name string
	// New makes the agent in a setting in which everything changes that can: schedules, scaling, shards of unequal
	// size. It must learn within the first 1,000 steps.
	New Constructor[A]
	// Policy makes the greedy policy of the same network from the weights alone.
	Policy func(spec env.Spec, weights io.Reader) (agents.Policy, error)
	// Other is Policy for a network of another shape.
	Other func(spec env.Spec, weights io.Reader) (agents.Policy, error)
	// Worth examines the agent that is interrupted after 1,400 steps and returns why resuming it would prove little,
	// or "" if it proves something.
	Worth func(A) string

	// Env is the environment of package env/control in which the claims are tested; "" means InvalidAction-v1.
	Env string

	page string // instead of docs/reference/metrics.md, in tests of the suite
}

// Run tests an agent against the contract, one subtest per claim.
func Run[A Learner](t *testing.T, s Suite[A]) {
	t.Helper()
	for _, c := range claims[A]() {
		t.Run(c.name, func(t *testing.T) { c.check(s, t) })
	}
}

func (s Suite[A]) env() string {
	if s.Env == "" {
		return "InvalidAction-v1"
	}
	return s.Env
}

type claim[A Learner] struct {
	name  string
	check func(Suite[A], testing.TB)
}

func claims[A Learner]() []claim[A] {
	return []claim[A]{
		{"workers change nothing", Suite[A].workersChangeNothing},
		{"seeds differ", Suite[A].seedsDiffer},
		{"resumed equals straight through", Suite[A].resumedEqualsStraightThrough},
		{"a policy of the weights plays the same", Suite[A].policyOfTheWeightsPlaysTheSame},
		{"metrics are documented", Suite[A].metricsAreDocumented},
	}
}

// workersChangeNothing checks that weights, moments, counters and experience are equal byte for byte. 70 rows are
// more than one piece when acting.
func (s Suite[A]) workersChangeNothing(t testing.TB) {
	var want map[string][]byte
	for _, workers := range []int{1, 2, 8} {
		l := NewLoop(t, s.New,
			Setting{Env: s.env(), Rows: 70, Workers: workers, Autoreset: vec.SameStep, Seed: 5, Total: 3500}).Train()
		if l.Stats == nil {
			t.Fatal("nothing was learnt")
		}
		got := State(t, l.Agent.Parts())
		if want == nil {
			want = got
			continue
		}
		SameState(t, "workers", got, want)
	}
}

func (s Suite[A]) seedsDiffer(t testing.TB) {
	var first [2][]byte
	for k := range first {
		l := NewLoop(t, s.New,
			Setting{Env: "ProbeContext-v1", Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 5 + uint64(k), Total: 10})
		first[k] = State(t, l.Agent.Parts())[weights]
	}
	if len(first[0]) == 0 {
		t.Errorf("no part %s", weights)
	}
	if bytes.Equal(first[0], first[1]) {
		t.Error("seeds 5 and 6 begin with the same weights")
	}
}

// resumedEqualsStraightThrough checks that a run saved in the middle, loaded into a new agent and continued ends with
// the bytes of a run that was never interrupted.
func (s Suite[A]) resumedEqualsStraightThrough(t testing.TB) {
	for _, mode := range []vec.Autoreset{vec.SameStep, vec.NextStep} {
		set := Setting{Env: s.env(), Rows: 6, Workers: 1, Autoreset: mode, Seed: 5, Total: 3000}
		straight, first := NewLoop(t, s.New, set), NewLoop(t, s.New, set)
		for first.Steps < 1400 {
			first.Step()
			straight.Step()
		}
		if first.Stats == nil {
			t.Fatal("nothing was learnt before the interruption")
		}
		if why := s.Worth(first.Agent); why != "" {
			t.Fatal(why)
		}
		m := checkpoint.Meta{Env: first.Vec.Spec().ID, Agent: s.Name, Network: first.Agent.Network()}
		dir := first.Save(t, m)

		set.Seed, set.Workers = 999, 2 // another seed: everything must come from the checkpoint
		second := NewLoop(t, s.New, set)
		m.Network = second.Agent.Network()
		second.Load(t, dir, m)
		SameState(t, "loaded", State(t, second.Agent.Parts()), State(t, first.Agent.Parts()))
		second.follow(t, first)
		second.Train()
		straight.Train()
		SameState(t, "resumed", State(t, second.Agent.Parts()), State(t, straight.Agent.Parts()))
	}
}

// policyOfTheWeightsPlaysTheSame checks that the policy plays what the agent's greedy policy plays, in batches of any
// size.
func (s Suite[A]) policyOfTheWeightsPlaysTheSame(t testing.TB) {
	l := NewLoop(t, s.New,
		Setting{Env: s.env(), Rows: 4, Workers: 1, Autoreset: vec.SameStep, Seed: 5, Total: 1000}).Train()
	data, spec, ctx := State(t, l.Agent.Parts())[weights], l.Vec.Spec(), context.Background()
	p, err := s.Policy(spec, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	greedy := l.Agent.Greedy()
	masks := max(spec.MaskLen(), 1)
	for _, n := range []int{1, 200, 7} {
		src := rand.New(rand.NewPCG(1, uint64(n)))
		b := env.NewBatch(spec, n)
		for i := range b.Obs {
			b.Obs[i] = float32(src.NormFloat64())
		}
		for i := range b.Mask {
			b.Mask[i] = i%masks == 3 || src.IntN(4) == 0
		}
		one, two := env.NewActions(spec, n), env.NewActions(spec, n)
		if err := p.Act(ctx, b, one, nil); err != nil {
			t.Fatal(err)
		}
		if err := greedy.Act(ctx, b, two, nil); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(one.Disc, two.Disc) || !slices.Equal(one.Cont, two.Cont) {
			t.Fatalf("%d rows: actions %v %v and %v %v", n, one.Disc, one.Cont, two.Disc, two.Cont)
		}
		for i, k := range one.Disc { // one factor, where there are any
			if !b.Mask[i*masks+int(k)] {
				t.Fatalf("row %d of %d: action %d is illegal", i, n, k)
			}
		}
	}
	if _, err := s.Other(spec, bytes.NewReader(data)); err == nil {
		t.Error("weights of another shape: no error")
	}
}
