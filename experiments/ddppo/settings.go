package ddppo

import (
	"fmt"
	"slices"
	"time"

	"clustergym/agents/ppo"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/traces/synth"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Seed    uint64       `yaml:"seed"`    // the log's
	Log     synth.Config `yaml:"log"`     // the generated log, as trace.synth of a run; procs is the machine's size too
	Held    int          `yaml:"held"`    // weeks at the log's end on which policies are compared
	Warm    int          `yaml:"warm"`    // weeks before them that fill the machine and teach predictors
	Archive int          `yaml:"archive"` // jobs at the beginning that training windows' predictors have seen

	Replicas  []int   `yaml:"replicas"`  // numbers of replicas, from one on
	Predicted []int   `yaml:"predicted"` // those that are also trained on predicted run times
	Envs      int     `yaml:"envs"`      // environments of all replicas together
	Window    int     `yaml:"window"`    // jobs of a training episode
	Reward    string  `yaml:"reward"`    // of training episodes, as env.reward
	Load      float64 `yaml:"load"`      // to which training episodes are stretched, 0 = as in the log
	Steps     int64   `yaml:"steps"`     // samples of a training
	Seeds     int     `yaml:"seeds"`     // trainings
	// steps are those of one environment between updates; shards are those of all replicas
	PPO     ppo.Config `yaml:"ppo"`
	Updates int        `yaml:"updates"` // after which weights are compared

	SpeedSteps int64     `yaml:"speed_steps"` // samples of which the speed is measured
	Straggler  straggler `yaml:"straggler"`
}

// straggler is how the rule for slow replicas is measured.
type straggler struct {
	Replicas int           `yaml:"replicas"`
	Envs     int           `yaml:"envs"`
	Steps    int64         `yaml:"steps"`
	Share    float64       `yaml:"share"` // ppo.preempt_share
	Delay    time.Duration `yaml:"delay"` // of every step of an environment of the slow replica
}

// week is the unit of the comparison.
const week = 7 * 24 * time.Hour

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	l.Join("log", s.Log.Validate())
	l.Add(s.Log.Profile == "hpc", "log.profile", s.Log.Profile, "hpc, whose jobs have users")
	l.Add(s.Log.Procs >= 2, "log.procs", s.Log.Procs, "2 or more, the processors of the machine")
	l.Add(s.Held >= 2 && s.Held <= 1000, "held", s.Held, "2 to 1000 weeks")
	l.Add(s.Warm >= 1 && s.Warm <= 100, "warm", s.Warm, "1 to 100 weeks")
	l.Add(s.Archive >= 0 && s.Archive <= 1_000_000, "archive", s.Archive, "0 to 1000000 jobs")
	l.Add(len(s.Replicas) > 0 && s.Replicas[0] == 1, "replicas", s.Replicas, "1 first, with which the others are compared")
	for i, n := range s.Replicas {
		l.Add(n >= 1 && n <= 64 && s.Envs%n == 0 && s.PPO.Shards%n == 0 && !slices.Contains(s.Replicas[:i], n), "replicas", n,
			fmt.Sprintf("1 to 64, each once, that divide the %d envs and the %d shards", s.Envs, s.PPO.Shards))
	}
	l.Add(len(s.Predicted) > 0, "predicted", s.Predicted, "one of the replicas or more")
	for i, n := range s.Predicted {
		l.Add(slices.Contains(s.Replicas, n) && !slices.Contains(s.Predicted[:i], n), "predicted", n,
			fmt.Sprintf("one of the replicas, %v, each once", s.Replicas))
	}
	l.Add(s.Envs >= 1 && s.Envs <= 4096, "envs", s.Envs, "1 to 4096")
	l.Add(s.Window >= 16 && s.Window <= 65536, "window", s.Window, "16 to 65536 jobs")
	l.Add(slices.Contains([]string{"relative", "minus", "dense"}, s.Reward), "reward", s.Reward,
		"relative, minus or dense")
	l.Add(s.Load == 0 || s.Load >= 0.01 && s.Load <= 100, "load", s.Load,
		"0 (as in the log), or 0.01 to 100 times the machine")
	batch := int64(s.Envs) * int64(s.PPO.Steps)
	l.Add(s.Steps >= batch && s.Steps <= 1e9, "steps", s.Steps,
		fmt.Sprintf("%d, a whole rollout of all environments, or more, up to 1000000000", batch))
	l.Add(s.SpeedSteps >= batch && s.SpeedSteps <= 1e9, "speed_steps", s.SpeedSteps,
		fmt.Sprintf("%d, a whole rollout of all environments, or more, up to 1000000000", batch))
	l.Add(s.Seeds >= 1 && s.Seeds <= 100, "seeds", s.Seeds, "1 to 100")
	l.Add(s.Updates >= 1 && s.Updates <= 1000, "updates", s.Updates, "1 to 1000")
	l.Join("ppo", s.PPO.Validate())
	l.Add(s.PPO.Minibatches == 1 && s.PPO.Batch == 0, "ppo.minibatches", s.PPO.Minibatches,
		"1 (and batch 0): replicas draw minibatches of their own rollouts, so that only whole rollouts are the same samples")
	l.Add(s.PPO.Replicas == 1, "ppo.replicas", s.PPO.Replicas, "1: replicas says how many there are")
	l.Add(s.PPO.PreemptShare == 0, "ppo.preempt_share", s.PPO.PreemptShare, "0: straggler.share says it")
	g := &s.Straggler
	l.Add(g.Replicas >= 2 && g.Replicas <= 64, "straggler.replicas", g.Replicas, "2 to 64")
	l.Add(g.Replicas >= 2 && g.Envs >= 1 && g.Envs%g.Replicas == 0, "straggler.envs", g.Envs,
		fmt.Sprintf("a multiple of the %d replicas", g.Replicas))
	l.Add(g.Steps >= int64(g.Envs)*int64(s.PPO.Steps), "straggler.steps", g.Steps,
		fmt.Sprintf("%d, a whole rollout, or more", int64(g.Envs)*int64(s.PPO.Steps)))
	l.Add(g.Share >= 0.5 && g.Share < 1, "straggler.share", g.Share,
		"0.5 or more, and below 1, which would cut no replica short")
	l.Add(g.Delay >= 0 && g.Delay <= time.Second, "straggler.delay", g.Delay, "0s to 1s")
	return l.Err()
}

// trainedOn returns the numbers of replicas that are trained where this is known of run times.
func (s *settings) trainedOn(rung string) []int {
	if rung == predicted {
		return s.Predicted
	}
	return s.Replicas
}

// last names the agent of the most replicas on a rung.
func (s *settings) last(rung string) string {
	all := s.trainedOn(rung)
	if len(all) == 0 { // settings that are not valid
		return replicated(1)
	}
	return replicated(all[len(all)-1])
}

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("ddppo", files, p, settings{PPO: ppo.DefaultConfig()})
	s.Seeds = p.SeedsOr(s.Seeds)
	return s, err
}
