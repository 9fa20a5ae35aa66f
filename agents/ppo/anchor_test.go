package ppo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/env/vec"
	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

// divergence returns KL(anchor ‖ policy), the mean over steps of the rollout, by its definition, in float64 from the
// outputs of both networks.
func divergence(a *Agent, index []int) float64 {
	d, sum := a.act.dist, 0.0
	now, first := a.net.Forward(1), a.anchor.net.Forward(1)
	for _, at := range index {
		obs := a.roll.Obs[at*a.act.obsLen : (at+1)*a.act.obsLen]
		head, _ := now.Run(obs, 1)
		old, _ := first.Run(obs, 1)
		from := 0
		for _, size := range d.Sizes {
			mask := a.roll.Mask[at*d.Logits()+from : at*d.Logits()+from+size]
			p, q := shares(head[from:from+size], mask), shares(old[from:from+size], mask)
			for k := range q {
				if mask[k] {
					sum += q[k] * (math.Log(q[k]) - math.Log(p[k]))
				}
			}
			from += size
		}
		for k := range d.Dims {
			s, was := math.Exp(float64(a.net.LogStd()[k])), math.Exp(float64(a.anchor.net.LogStd()[k]))
			move := float64(head[from+k]) - float64(old[from+k])
			sum += math.Log(s/was) + (was*was+move*move)/(2*s*s) - 0.5
		}
	}
	return sum / float64(len(index))
}

// shares are the probabilities of the legal actions.
func shares(logits []float32, mask []bool) []float64 {
	p, total := make([]float64, len(logits)), 0.0
	for k, x := range logits {
		if mask[k] {
			p[k] = math.Exp(float64(x))
			total += p[k]
		}
	}
	for k := range p {
		p[k] /= total
	}
	return p
}

// What the anchor adds to the gradient is its weight times the derivative of the divergence, for choices and for
// numbers, with either form of the loss and any number of shards.
func TestTheGradientOfTheAnchorIsThatOfTheDivergence(t *testing.T) {
	seed := testseed.Or(71)
	t.Logf("seed %d", seed)
	for _, id := range []string{"ProbeMaskedContext-v1", "Nav2D-v1"} {
		for _, way := range []Loss{Fused, Composed} {
			cfg := small()
			cfg.Loss, cfg.Steps, cfg.Minibatches, cfg.Shards, cfg.Anchor = way, 8, 1, 3, 0.7
			cfg.Network.Hidden = []int{5}
			l := newLoop(t, id, 3, 1, vec.SameStep, cfg, seed, 1<<20)
			fill(t, l)
			a := l.Agent
			r := rng.Stream(seed, "elsewhere")
			for i := range a.anchor.net.Params().Data {
				a.anchor.net.Params().Data[i] += float32(0.3 * r.NormFloat64())
			}
			a.anchor.set = true
			if err := a.roll.Advantages(a.last, 0.9, 1); err != nil {
				t.Fatal(err)
			}
			weight, err := a.anchored(t.Context())
			if err != nil || weight != 0.7 {
				t.Fatal(weight, err)
			}
			index := []int{3, 0, 7, 8, 20, 21, 11}
			grad := func(weight float64) ([]float32, stats) {
				a.batch.anchor = weight
				g, s, _, err := gradientOf(a, index)
				if err != nil {
					t.Fatal(err)
				}
				return slices.Clone(g.Data), s
			}
			with, sum := grad(weight)
			without, none := grad(0)
			if got, want := sum.anchor, weight*divergence(a, index); math.Abs(got-want) > 1e-5*(1+want) || want < 1e-3 ||
				none.anchor != 0 {
				t.Errorf("%s, %s: the anchor's loss is %v, want %v, and %v without weight", id, way, got, want, none.anchor)
			}
			for i := range with {
				p, step := &a.net.Params().Data[i], float32(1e-2)
				was := *p
				*p = was + step
				up := divergence(a, index)
				*p = was - step
				down := divergence(a, index)
				*p = was
				if got, want := float64(with[i]-without[i]),
					weight*(up-down)/float64(2*step); math.Abs(got-want) > 2e-3*(1+math.Abs(want)) {
					t.Errorf("%s, %s: the derivative by parameter %d is %v, by differences %v", id, way, i, got, want)
				}
			}
		}
	}
}

// The anchor is the policy before the first update, stays it, and loses weight with the progress of the training. A
// heavy one holds the policy back.
func TestTheAnchorIsTheFirstPolicy(t *testing.T) {
	far := make([]float64, 2)
	for k, weight := range []float64{1e-6, 30} {
		cfg := small()
		cfg.Steps, cfg.Anchor, cfg.AnchorDecay = 16, weight, 0.75
		l := newLoop(t, "ProbeMaskedContext-v1", 4, 1, vec.SameStep, cfg, 3, 64*8)
		first := slices.Clone(l.Agent.Params().Data)
		for update := range 8 {
			l.Update()
			if want := weight * (1 - 0.75*float64(update)/8); math.Abs(l.Stat("ppo/anchor")-want) > 1e-9*weight {
				t.Errorf("update %d: weight %v, want %v", update, l.Stat("ppo/anchor"), want)
			}
		}
		if !slices.Equal(l.Agent.anchor.net.Params().Data, first) {
			t.Error("the anchor is not the first policy")
		}
		fill(t, l)
		index := make([]int, 64)
		for i := range index {
			index[i] = i
		}
		far[k] = divergence(l.Agent, index)
	}
	if !(far[1] < far[0]/4) {
		t.Errorf("the policy is %v from the anchor, with a heavy one %v", far[0], far[1])
	}
}

// In the warm-up of the critic no weight that the policy depends on changes by a bit, nor its moments; the critic
// learns. Then both do.
func TestTheWarmUpLeavesThePolicy(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"shared":   func(c *Config) { c.Network.Separate = false },
		"separate": func(c *Config) { c.Network.Separate = true },
		"popart":   func(c *Config) { c.Network.Separate, c.ValueNorm = false, PopArt },
		"anchored": func(c *Config) { c.Network.Separate, c.Anchor = false, 1 },
	} {
		for _, id := range []string{"ProbeMaskedContext-v1", "Nav2D-v1"} {
			cfg := small()
			cfg.Steps, cfg.CriticWarmup, cfg.EntCoef = 16, 3, 0.1
			change(&cfg)
			l := newLoop(t, id, 4, 2, vec.SameStep, cfg, 6, 1<<20)
			a := l.Agent
			from, to := a.net.Critic()
			data := a.Params().Data
			if from == 0 || to-from < 2 || to > len(data) || !cfg.Network.Separate && to-from != 17 {
				t.Fatalf("%s: the critic has elements %d to %d of %d", name, from, to, len(data))
			}
			before := slices.Clone(data)
			for update := range 5 {
				was := slices.Clone(data)
				l.Update()
				moved := !slices.Equal(data[:from], before[:from]) || !slices.Equal(data[to:], before[to:])
				if warms := update < 3; moved == warms {
					t.Errorf("%s, %s, update %d: the policy has moved: %v", name, id, update, moved)
				}
				if slices.Equal(data[from:to], was[from:to]) {
					t.Errorf("%s, %s, update %d: the critic has learned nothing", name, id, update)
				}
				if got, want := l.Stat("ppo/critic_warmup"), float64(max(0, 2-update)); got != want {
					t.Errorf("%s, update %d: %v updates of the warm-up are left, want %v", name, update, got, want)
				}
			}
		}
	}
}

// A run with warm-up and anchor keeps the contract: saved and resumed, with any number of workers, also within the
// warm-up.
func TestContractOfAnchorAndWarmUp(t *testing.T) {
	if raced.On {
		t.Skip("the race detector sees the same code in TestContract, which takes less time; make unit runs this test")
	}
	for _, warm := range []int{2, 1 << 20} {
		cfg := busy()
		cfg.Anchor, cfg.AnchorDecay, cfg.CriticWarmup = 0.5, 0.8, warm
		contract(t, "", cfg)
	}
}

func TestKeysOfAnchorAndWarmUpAreChecked(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"anchor: got -1, want a number in [0, 1e6]": func(c *Config) { c.Anchor = -1 },
		"anchor_decay: got 1.5, want a share from 0 to 1": func(c *Config) {
			c.Anchor, c.AnchorDecay = 1,
				1.5
		},
		"anchor_decay: got 0.5, want nothing without anchor":                  func(c *Config) { c.AnchorDecay = 0.5 },
		"critic_warmup: got -1, want a number of updates from 0 to 2^20":      func(c *Config) { c.CriticWarmup = -1 },
		"critic_warmup: got 1048577, want a number of updates from 0 to 2^20": func(c *Config) { c.CriticWarmup = 1<<20 + 1 },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
