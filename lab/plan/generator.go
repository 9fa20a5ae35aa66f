package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/agents"
	"clustergym/agents/ddqn"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/vec"
	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/nets/model"
)

// GeneratorConfig says how the plan generator of WORL-RTGS is trained, by double deep Q-learning in DAGPlace-v1.
type GeneratorConfig struct {
	Steps int `yaml:"steps"` // tasks placed in all environments together
	Envs  int `yaml:"envs"`
	// initial share of tasks placed where they end first; falls to 0 over the first half of the steps
	Teach float64 `yaml:"teach"`
	// episodes that judge the weights, before training and ten times during it; the best weights are kept
	Judge   int             `yaml:"judge"`
	Place   dagplace.Config `yaml:"place"`   // the environment
	Learner ddqn.Config     `yaml:"learner"` // the algorithm
}

// DefaultGeneratorConfig returns the configuration with which the weights in the program were trained.
func DefaultGeneratorConfig() GeneratorConfig {
	c := GeneratorConfig{Steps: 600_000, Envs: 16, Teach: 0.5, Judge: 64, Place: dagplace.DefaultConfig(),
		Learner: ddqn.DefaultConfig()}
	c.Place.Vary, c.Place.Slots, c.Place.Scale = true, 16, "local"
	c.Place.Order, c.Place.Insert, c.Place.Reward = "rank", true, "makespan"
	c.Place.Tasks, c.Place.GPUs, c.Place.Degree, c.Place.Hopes = 200, 100, 3, "random"
	l := &c.Learner
	l.Gamma, l.NStep, l.RewardFactor = 0.99, 5, 20
	l.Buffer, l.Batch, l.Shards = 50_000, 64, 2
	l.LR, l.AnnealLR = 1e-3, true
	l.LearningStarts, l.TrainEvery, l.TargetEvery = 5_000, 16, 2_000
	l.EpsStart, l.EpsEnd, l.EpsShare = 0.5, 0.02, 0.6
	l.Network = model.Config{
		Kind: "cnn", Hidden: []int{32}, Activation: "relu", Init: "fan-in", Head: "each", SlotHidden: 32,
		Branches: []model.Branch{{Field: "gpus", Slots: true, Dense: []int{32}}},
	}
	return c
}

// Hopeful returns c with other things to learn: to follow hopes and to shorten the plan that they were drawn from, on
// hopes such as a search has late on, and on more kinds of graphs, of up to 2,000 tasks with up to 100 parents each on
// average. The experiment worl-rtgs says what that is worth.
func (c GeneratorConfig) Hopeful() GeneratorConfig {
	c.Place.Reward, c.Place.Hopes, c.Place.Degree, c.Place.Tasks = "hope", "search", 50, 2000
	return c
}

// Validate returns an error that names every fault of c, or nil.
func (c GeneratorConfig) Validate() error {
	var l fault.List
	l.Add(c.Steps >= 1 && c.Steps <= 1<<40, "steps", c.Steps, "1 or more")
	l.Add(c.Envs >= 1 && c.Envs <= 4096, "envs", c.Envs, "1 to 4096")
	l.Add(c.Teach >= 0 && c.Teach <= 1, "teach", c.Teach, "0 to 1")
	l.Add(c.Judge >= 1 && c.Judge <= 1<<20, "judge", c.Judge, "1 or more")
	l.Join("place", c.Place.Validate())
	l.Add(c.Place.Slots > 0, "place.slots", c.Place.Slots, "2 or more: a generator chooses among slots")
	l.Join("learner", c.Learner.Validate())
	return l.Err()
}

// TrainedGenerator is the result of training a generator.
type TrainedGenerator struct {
	Weights []byte // the network's, as safetensors
	// makespan over HEFT's, geometric mean over the judging episodes; first before training, then ten times during it
	Ratios []float64
	Best   float64 // the smallest of Ratios, which Weights reached
}

// TrainGenerator trains a generator. Equal configurations and seeds give equal results; workers affects only speed. If
// say is not nil, it is called with each judgement: the number of steps so far and the ratio.
func TrainGenerator(ctx context.Context, c GeneratorConfig, seed uint64, workers int,
	say func(step int, ratio float64)) (*TrainedGenerator, error) {
	if err := c.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	v, err := vec.Open(c.Envs, workers, func() (env.Env, error) { return dagplace.New(c.Place) })
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer v.Close() //nolint:errcheck // the environments hold no resources
	spec := v.Spec()
	agent, err := ddqn.New(c.Learner, spec, c.Envs, workers, seed)
	if err != nil {
		return nil, &fault.Mistake{Err: fmt.Errorf("learner: %w", err)}
	}
	first := rng.Source(seed, "generator/envs").Uint64()
	eps := make([]env.Episode, c.Envs)
	for i := range eps {
		eps[i] = env.Episode{Seed: env.EpisodeSeed(first+uint64(i), 0), Window: -1}
	}
	now, next := env.NewBatch(spec, c.Envs), env.NewBatch(spec, c.Envs)
	if err := v.Reset(ctx, nil, eps, now); err != nil {
		return nil, err
	}
	acts := env.NewActions(spec, c.Envs)
	src := make([]*rand.Rand, c.Envs)
	for i := range src {
		src[i] = rng.Stream(rng.At(seed, uint64(i)), "generator/actions")
	}
	t := &TrainedGenerator{}
	judge := func(step int) error {
		ratio, err := judgeGenerator(ctx, &c, agent, workers)
		if err != nil {
			return err
		}
		if t.Weights == nil || ratio < t.Best {
			var b bytes.Buffer
			if _, err := agent.Params().WriteTo(&b); err != nil {
				return err
			}
			t.Weights, t.Best = b.Bytes(), ratio
		}
		t.Ratios = append(t.Ratios, ratio)
		if say != nil {
			say(step, ratio)
		}
		return nil
	}
	if err := judge(0); err != nil {
		return nil, err
	}
	for step, judged := 0, 1; step < c.Steps; {
		agent.Progress(float64(step) / float64(c.Steps))
		if err := agent.Act(ctx, now, acts, src); err != nil {
			return nil, err
		}
		teach := c.Teach * max(0, 1-2*float64(step)/float64(c.Steps))
		for i := range c.Envs {
			if src[i].Float64() < teach {
				acts.Disc[i] = earliestSlot(spec, now, i)
			}
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
		step += c.Envs
		if step*10 >= judged*c.Steps {
			judged++
			if err := judge(step); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// earliestSlot returns the slot of row i in which the task ends first.
func earliestSlot(s env.Spec, b *env.Batch, i int) int32 {
	slots, features := s.Obs[0].Shape[0], s.Obs[0].Shape[1]
	obs, mask := b.Obs[i*s.ObsLen():], b.Mask[i*s.MaskLen():]
	best := -1
	for k := range slots {
		if mask[k] && (best < 0 || obs[k*features+features-1] < obs[best*features+features-1]) {
			best = k
		}
	}
	return int32(best)
}

// judgeGenerator plays fixed episodes greedily and returns the geometric mean of the makespan over HEFT's.
func judgeGenerator(ctx context.Context, c *GeneratorConfig, a *ddqn.Agent, workers int) (float64, error) {
	var weights bytes.Buffer
	if _, err := a.Params().WriteTo(&weights); err != nil {
		return 0, err
	}
	logs := make([]float64, c.Judge)
	err := par.For(ctx, workers, c.Judge, func(_, i int) error {
		e, err := dagplace.New(c.Place)
		if err != nil {
			return err
		}
		policy, err := ddqn.NewPolicy(c.Learner, e.Spec(), bytes.NewReader(weights.Bytes()))
		if err != nil {
			return err
		}
		player := agents.NewPlayer(e, policy)
		if _, _, err := player.Play(ctx, env.Episode{Seed: rng.At(rng.Hash("generator/judge"), uint64(i)), Window: -1},
			nil); err != nil {
			return err
		}
		info := player.TimeStep().Info
		logs[i] = math.Log(info[0] / info[1]) // makespan_s over leader_s
		return nil
	})
	sum := 0.0
	for _, l := range logs {
		sum += l / float64(c.Judge)
	}
	return math.Exp(sum), err
}
