package ppo

import (
	"io"
	"testing"

	"clustergym/agents"
	"clustergym/agents/agenttest"
	"clustergym/env"
	"clustergym/env/vec"
)

// busy is a setting in which everything changes: schedules, scaling, early stops, shards of unequal size.
func busy() Config {
	c := small()
	c.Steps, c.Minibatches, c.Epochs, c.Shards = 21, 4, 3, 3
	c.AnnealLR, c.AnnealClip, c.RewardScale, c.ClipValue, c.TargetKL = true, true, true, 0.3, 0.05
	c.NormObs, c.ClipReward = true, 5
	return c
}

func TestContract(t *testing.T) {
	contract(t, "", busy())
}

// The composed loss keeps the contract: saved and resumed, with any number of workers.
func TestContractOfTheComposedLoss(t *testing.T) {
	cfg := busy()
	cfg.Loss = Composed
	contract(t, "", cfg)
}

// Continuous actions keep the contract too.
func TestContractOfContinuousActions(t *testing.T) {
	contract(t, "Nav2D-v1", busy())
}

func contract(t *testing.T, id string, cfg Config) {
	t.Helper()
	policy := func(cfg Config) func(env.Spec, io.Reader) (agents.Policy, error) {
		return func(spec env.Spec, weights io.Reader) (agents.Policy, error) { return NewPolicy(cfg, spec, weights) }
	}
	other := cfg
	other.Network.Hidden = []int{17}
	agenttest.Run(t, agenttest.Suite[*Agent]{
		Name: "ppo", Env: id, New: builder(cfg), Policy: policy(cfg), Other: policy(other),
		Worth: func(a *Agent) string {
			if a.roll.Len() == 0 || a.updates == 0 {
				return "not in the middle of a rollout after an update"
			}
			return ""
		},
	})
}

// Damaged state is an error and changes nothing.
func TestStateIsChecked(t *testing.T) {
	l := newLoop(t, "ProbeContext-v1", 4, 1, vec.SameStep, busy(), 5, 500).Train()
	agenttest.RefusesState(t, l.Agent, "agent.json", map[string]string{
		"another format": `{"format": 2}`,
		"rows":           `{"format": 1, "last": [1]}`,
		"progress":       `{"format": 1, "progress": 2, "last": [1,2,3,4]}`,
		"scale":          `{"format": 1, "last": [1,2,3,4], "scale": {"sum": [1]}}`,
		"stream":         `{"format": 1, "last": [1,2,3,4], "scale": {"sum": [1,2,3,4]}, "order": "AAAA"}`,
	})
}

func TestActAndObserveDoNotAllocate(t *testing.T) {
	cfg := small()
	cfg.Steps = 8
	l := newLoop(t, "InvalidAction-v1", 8, 1, vec.SameStep, cfg, 5, 1<<30)
	for range 200 {
		l.Step()
	}
	// The steps pass through several ends of episodes and of rollouts.
	l.AllocatesNothing(t, func(a *Agent) {
		if a.roll.Full() {
			a.roll.Reset()
		}
	})
}

// BenchmarkTrain is a step of four rows with its share of learning, in CleanRL's setting.
func BenchmarkTrain(b *testing.B) {
	newLoop(b, "ProbeContext-v1", 4, 1, vec.SameStep, DefaultConfig(), 5, 1<<40).BenchmarkSteps(b)
}

func BenchmarkAct(b *testing.B) {
	newLoop(b, "InvalidAction-v1", 8, 1, vec.SameStep, DefaultConfig(), 5, 1<<40).BenchmarkAct(b)
}
