package worlrtgs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/vec"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/plan"
	"clustergym/nets/model"
	"clustergym/simulator/dag"
)

// The DRAS-like baseline is a policy for dagplace.Queue: its name, and the key of the cell that trains it.
const (
	drasPolicy = "dras-like"
	drasKey    = "dras/seed=1"

	pickPolicy = "queue-random" // picks drawn uniformly in the same machine
)

// drasAgent says how the baseline is trained.
type drasAgent struct {
	Envs    int             `yaml:"envs"`
	Place   dagplace.Config `yaml:"place"` // graphs and platforms; the queue reads nothing else of it
	Learner ddqn.Config     `yaml:"learner"`
}

// defaultDRASAgent returns the generator's learner with a network that scores every task of the window with the same
// weights, on the generator's graphs and platforms, but with so few GPUs that tasks must queue.
func defaultDRASAgent() drasAgent {
	c := plan.DefaultGeneratorConfig()
	c.Place.GPUs = 24
	c.Learner.Network = model.Config{
		Kind: "cnn", Hidden: []int{32}, Activation: "relu", Init: "fan-in", Head: "each", SlotHidden: 32,
		Branches: []model.Branch{{Field: "tasks", Slots: true, Dense: []int{32}}},
	}
	return drasAgent{Envs: 16, Place: c.Place, Learner: c.Learner}
}

// validate returns an error that names every fault of c, or nil.
func (c *drasAgent) validate() error {
	var l fault.List
	l.Add(c.Envs >= 1 && c.Envs <= 4096, "envs", c.Envs, "1 to 4096")
	l.Join("place", c.Place.Validate())
	l.Join("learner", c.Learner.Validate())
	return l.Err()
}

// drasInput returns what the training depends on.
func (s *settings) drasInput() (any, error) {
	changes, err := configs.Diff(defaultDRASAgent(), s.DRASAgent)
	if err != nil || len(changes) == 0 {
		return s.DRAS, err // as before DRASAgent was a setting, so that kept cells are found again
	}
	return []any{s.DRAS, s.DRASAgent}, nil
}

// trainDRAS trains the baseline for steps steps, and writes the weights to the cell's folder.
func trainDRAS(ctx context.Context, b *study.Bench, c *drasAgent, steps int) ([]study.Row, error) {
	weights, err := drasWeights(ctx, c, steps, b.Workers, b.Progress)
	if err != nil {
		return nil, err
	}
	return nil, os.WriteFile(filepath.Join(b.Work(), "dras.safetensors"), weights, 0o600)
}

// drasWeights trains the baseline and returns its weights.
func drasWeights(ctx context.Context, c *drasAgent, steps, workers int, progress func(done, of int64)) ([]byte, error) {
	rows := c.Envs
	envs := make([]env.Env, rows)
	for i := range envs {
		e, err := dagplace.NewQueue(c.Place)
		if err != nil {
			return nil, err
		}
		envs[i] = e
	}
	v, err := vec.New(vec.Config{Workers: workers, Autoreset: vec.SameStep}, envs...)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // the environments hold no resources
	spec := v.Spec()
	agent, err := ddqn.New(c.Learner, spec, rows, workers, 1)
	if err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("dras_agent.learner: %w", err)}
	}
	eps, src := make([]env.Episode, rows), make([]*rand.Rand, rows)
	for i := range eps {
		eps[i] = env.Episode{Seed: rng.At(1, uint64(i)), Window: -1}
		src[i] = rng.Stream(uint64(i), "dras/actions")
	}
	now, next, acts := env.NewBatch(spec, rows), env.NewBatch(spec, rows), env.NewActions(spec, rows)
	if err := v.Reset(ctx, nil, eps, now); err != nil {
		return nil, err
	}
	for step := 0; step < steps; step += rows {
		agent.Progress(float64(step) / float64(steps))
		if err := agent.Act(ctx, now, acts, src); err != nil {
			return nil, err
		}
		if err := v.Step(ctx, nil, acts, next); err != nil {
			return nil, err
		}
		if err := agent.Observe(now, acts, next); err != nil {
			return nil, err
		}
		if _, err := agent.Learn(ctx); err != nil && !errors.Is(err, agents.ErrNotReady) {
			return nil, err
		}
		now, next = next, now
		if step%(100*rows) == 0 {
			progress(int64(step), int64(steps))
		}
	}
	var w bytes.Buffer
	if _, err := agent.Params().WriteTo(&w); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// playQueue plans q with picks drawn uniformly, the least that a queue's policy must beat.
func playQueue(q *dag.Problem, src *rand.Rand) (*dag.Plan, error) {
	e, err := dagplace.NewQueue(dagplace.DefaultConfig())
	if err != nil {
		return nil, err
	}
	return e.Play(q, func(_ []float32, mask []bool) (int, error) {
		pick, seen := 0, 0
		for k, legal := range mask {
			if legal {
				if seen++; src.IntN(seen) == 0 {
					pick = k
				}
			}
		}
		return pick, nil
	})
}

// playDRAS plans q with the policy that c trained to these weights.
func playDRAS(ctx context.Context, q *dag.Problem, c *drasAgent, weights []byte) (*dag.Plan, error) {
	e, err := dagplace.NewQueue(dagplace.DefaultConfig())
	if err != nil {
		return nil, err
	}
	p, err := ddqn.NewPolicy(c.Learner, e.Spec(), bytes.NewReader(weights))
	if err != nil {
		return nil, err
	}
	acts := env.NewActions(e.Spec(), 1)
	b := &env.Batch{N: 1, Kind: []env.Kind{env.Mid}}
	return e.Play(q, func(obs []float32, mask []bool) (int, error) {
		b.Obs, b.Mask = obs, mask
		err := p.Act(ctx, b, acts, nil)
		return int(acts.Disc[0]), err
	})
}
