package control

import (
	"fmt"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/fault"
	"clustergym/internal/snap"
)

// BanditConfig sets the size of Bandit-v1 and what the agent observes.
type BanditConfig struct {
	Arms    int  `yaml:"arms"`
	Pulls   int  `yaml:"pulls"`   // per episode
	History bool `yaml:"history"` // whether the last pull is observed, for agents with a memory
}

// DefaultBanditConfig returns the problem of most papers: ten arms, a hundred pulls, no observation of the past.
func DefaultBanditConfig() BanditConfig { return BanditConfig{Arms: 10, Pulls: 100} }

// Validate reports all faults at once.
func (c BanditConfig) Validate() error {
	var l fault.List
	l.Add(c.Arms >= 1 && c.Arms <= 10_000, "arms", c.Arms, "1 to 10000")
	l.Add(c.Pulls >= 1 && c.Pulls <= 1_000_000, "pulls", c.Pulls, "1 to 1000000")
	return l.Err()
}

// NewBandit returns Bandit-v1 with configuration c.
func NewBandit(c BanditConfig) (*Family, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("Bandit-v1: %w", err)
	}
	d := bandit(c)
	return d.open().(*Family), nil
}

// arms is a Bernoulli bandit. A task is the arms' probabilities.
type arms struct {
	cfg   BanditConfig
	pays  []float64 // probability of each arm
	pulls int
	last  int // arm pulled, -1 at the start
	won   bool
}

func (p *arms) taskSpec() []env.Field {
	return []env.Field{{
		Name: "pays", Shape: []int{p.cfg.Arms}, Low: 0, High: 1, Unit: "probability", Doc: "of a reward, for each arm",
	}}
}

func (p *arms) sampleTask(src *rand.Rand, dst []float64) {
	for i := range dst {
		dst[i] = src.Float64()
	}
}

func (p *arms) setTask(task []float64) { copy(p.pays, task) }

func (p *arms) reset(src *rand.Rand) {
	p.sampleTask(src, p.pays)
	p.pulls, p.last, p.won = 0, -1, false
}

// step draws one number regardless of the arm pulled, so that two policies can be compared with the same luck.
func (p *arms) step(a env.Action, src *rand.Rand) (float64, env.Kind) {
	p.last = int(a.Disc[0])
	p.won = src.Float64() < p.pays[p.last]
	p.pulls++
	reward, kind := 0.0, env.Mid
	if p.won {
		reward = 1
	}
	if p.pulls == p.cfg.Pulls {
		kind = env.Terminated
	}
	return reward, kind
}

func (p *arms) observe(obs []float32, mask []bool) {
	for i := range mask {
		mask[i] = true
	}
	if !p.cfg.History {
		obs[0] = 1
		return
	}
	clear(obs)
	if p.last >= 0 {
		obs[p.last] = 1
	}
	if p.won {
		obs[p.cfg.Arms] = 1
	}
	obs[p.cfg.Arms+1] = float32(p.pulls) / float32(p.cfg.Pulls)
}

func (p *arms) save(dst []byte) []byte {
	dst = snap.Int(snap.Int(dst, p.cfg.Arms), p.cfg.Pulls)
	dst = snap.Bool(dst, p.cfg.History)
	for _, v := range p.pays {
		dst = snap.F64(dst, v)
	}
	return snap.Bool(snap.Int(dst, p.last), p.won)
}

func (p *arms) load(r *snap.Reader, steps int, kind env.Kind) bool {
	if c := (BanditConfig{Arms: r.Int(), Pulls: r.Int(), History: r.Bool()}); c != p.cfg {
		return false
	}
	for i := range p.pays {
		p.pays[i] = r.F64()
		if !(p.pays[i] >= 0 && p.pays[i] <= 1) {
			return false
		}
	}
	p.last, p.won, p.pulls = r.Int(), r.Bool(), steps
	return steps >= 0 && steps <= p.cfg.Pulls && (steps == p.cfg.Pulls) == (kind == env.Terminated) &&
		kind != env.Truncated &&
		p.last >= -1 && p.last < p.cfg.Arms && (p.last == -1) == (steps == 0) && !(p.won && steps == 0)
}

// picture shows the hidden probabilities.
func (p *arms) picture(dst []byte) []byte {
	dst = append(dst, "hidden: the arms pay with"...)
	for _, v := range p.pays {
		dst = fmt.Appendf(dst, " %.2f", v)
	}
	dst = append(dst, '\n')
	if p.last >= 0 {
		dst = fmt.Appendf(dst, "pull %d of %d: arm %d, %s\n", p.pulls, p.cfg.Pulls, p.last,
			map[bool]string{true: "won", false: "lost"}[p.won])
	}
	return dst
}

func bandit(c BanditConfig) definition {
	obs := []env.Field{{Name: "constant", Shape: []int{1}, Low: 0, High: 1, Unit: "none",
		Doc: "always 1: what an arm pays shows in rewards only"}}
	if c.History {
		obs = []env.Field{
			{Name: "last_action", Shape: []int{c.Arms}, Low: 0, High: 1, Unit: "one-hot",
				Doc: "the arm pulled last; all 0 at the start"},
			{Name: "last_reward", Shape: []int{1}, Low: 0, High: 1, Unit: "1", Doc: "what it paid"},
			{Name: "share", Shape: []int{1}, Low: 0, High: 1, Unit: "fraction", Doc: "of the pulls done"},
		}
	}
	return definition{
		spec: env.Spec{
			ID: "Bandit-v1", Obs: obs, Action: env.ActionSpec{Sizes: []int{c.Arms}},
			Solved: 0.8 * float64(c.Pulls), NoOp: -1,
		},
		make: func() problem { return &arms{cfg: c, pays: make([]float64, c.Arms)} },
	}
}
