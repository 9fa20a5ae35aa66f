package improper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	mixture "clustergym/agents/improper"
	"clustergym/agents/train"
	"clustergym/env"
	"clustergym/env/queuenet"
	"clustergym/env/vec"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// Policies of the tables of networks, beside the base controllers.
const (
	uniform = "uniform"       // every controller with the same probability
	shares  = "best mixture"  // the best weights of fixed controllers, in closed form
	optimum = "optimum"       // of all schedulers that see the queues
	exact   = "pg, exact"     // SoftMax PG with the true gradient
	best    = "best base"     // the base controller with the least mean on the test episodes
	pg      = "pg"            // the weights are the same in every state, for this and the next two
	nac     = "nac"           //
	spsa    = "spsa"          //
	byState = "nac, by state" // they depend on the queues
	byPG    = "pg, by state"
)

// learners are the mixtures that are learned on networks.
func learners() []string { return []string{pg, spsa, nac, byPG, byState} }

// network is a queueing network and where its optimum comes from.
type network struct {
	queuenet.Network
	bound int // of queues when the optimum is solved for; 0 = the longest queue is the optimum
}

// fixed returns controllers that serve one set each.
func fixed(names ...string) (all []queuenet.Base) {
	for k, name := range names {
		all = append(all, queuenet.Base{Name: name, Set: k})
	}
	return all
}

var longest = queuenet.Base{Name: "longest", Rule: queuenet.MostPackets}

// networks returns all networks by name. Where one server serves one queue of two at a time and loses nothing, to serve the longest queue is
// optimal whatever the arrivals are, as it never idles.
func networks() []network {
	server, row := [][]int{{0}, {1}}, [][]int{{0, 2}, {1, 3}, {0, 3}}
	two, three := fixed("queue 1", "queue 2"), fixed("links 1 3", "links 2 4", "links 1 4")
	return []network{
		{Network: queuenet.Network{Name: "even", Rates: [][]float64{{0.45, 0.45}}, Sets: server, Bases: two}},
		{Network: queuenet.Network{Name: "skewed", Rates: [][]float64{{0.2, 0.6}}, Sets: server, Bases: two}},
		{Network: queuenet.Network{Name: "skewed-longest", Rates: [][]float64{{0.2, 0.6}}, Sets: server, Bases: append(slices.Clone(two), longest)}},
		{Network: queuenet.Network{Name: "turning", Rates: [][]float64{{0.7, 0.1}, {0.1, 0.7}}, Slots: 250, Sets: server, Bases: two}},
		{Network: queuenet.Network{Name: "lossy", Rates: [][]float64{{0.3, 0.3}}, Up: []float64{1, 0.6}, Sets: server, Bases: append(slices.Clone(two), longest)}, bound: 60},
		{Network: queuenet.Network{Name: "path", Rates: [][]float64{{0.4, 0.4, 0.4, 0.4}}, Sets: row, Bases: three}, bound: 12},
		{Network: queuenet.Network{
			Name: "path-rules", Rates: [][]float64{{0.4, 0.4, 0.4, 0.4}}, Sets: row,
			Bases: append(slices.Clone(three), queuenet.Base{Name: "most packets", Rule: queuenet.MostPackets}, queuenet.Base{Name: "most queues", Rule: queuenet.MostQueues}),
		}, bound: 12},
	}
}

func networkNames() (names []string) {
	for _, n := range networks() {
		names = append(names, n.Name)
	}
	return names
}

func networkOf(name string) network {
	all := networks()
	return all[slices.IndexFunc(all, func(n network) bool { return n.Name == name })]
}

// server reports whether one server serves one queue at a time without losses, under one load.
func (n *network) server() bool { return len(n.Rates) == 1 && n.Up == nil && len(n.Sets[0]) == 1 }

// allFixed reports whether every base controller is fixed.
func (n *network) allFixed() bool {
	return !slices.ContainsFunc(n.Bases, func(b queuenet.Base) bool { return b.Rule != queuenet.Fixed })
}

// learnerConfig returns the hyper-parameters of a learner on networks. They were chosen with seeds 101 and 102 on all networks but
// skewed and lossy; the tables' seeds are others.
func learnerConfig(name string) mixture.Config {
	c := mixture.DefaultConfig()
	c.Steps, c.Gamma = 128, 0.99
	switch name {
	case nac:
		c.LR = 2
	case pg:
		c.Method, c.LR = "pg", 12
	case spsa:
		c.Method, c.LR, c.Perturb, c.Gamma = "spsa", 0.5, 0.5, 1 // an episode's return, from its first slot to its last
	case byPG:
		c.Method, c.Features, c.LR = "pg", "observation", 30
	case byState:
		c.Features, c.LR = "observation", 3
	}
	return c
}

// netRows is how many copies of a network are stepped together, and netSlots the length of an episode in training.
const (
	netRows  = 16
	netSlots = 512
)

// trainNet learns a mixture.
func (s *settings) trainNet(ctx context.Context, b *study.Bench, n network, cfg mixture.Config, seed uint64) (*mixture.Agent, error) {
	envs := make([]env.Env, netRows)
	for i := range envs {
		e, err := queuenet.New(n.Network, netSlots)
		if err != nil {
			return nil, err
		}
		envs[i] = e
	}
	v, err := vec.New(vec.Config{Workers: b.Workers, Autoreset: vec.SameStep}, envs...)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // memory only
	a, err := mixture.New(cfg, v.Spec(), netRows, b.Workers, seed)
	if err != nil {
		return nil, err
	}
	t := train.DefaultConfig()
	t.Steps, t.Envs, t.LogEvery, t.EvalEvery, t.CheckpointEvery = s.NetSteps, netRows, 0, 0, 0
	if cfg.Method == "spsa" {
		t.Group = 2 // both of a pair see the same arrivals
	}
	trainer, err := train.New(t, v, a, seed)
	if err != nil {
		return nil, err
	}
	return a, trainer.Run(ctx, train.Hooks{Tick: func(p train.Progress) error {
		b.Progress(p.Step, p.Steps)
		return nil
	}})
}

// playNet plays the test episodes of a network and returns their mean numbers of packets. act chooses controllers, serve sets; one is nil.
func (s *settings) playNet(ctx context.Context, n network, labels map[string]string, act agents.Policy, serve func(queues []int) int) (rows []study.Row, err error) {
	e, err := queuenet.New(n.Network, s.Slots)
	if err != nil {
		return nil, err
	}
	e.Serve(serve)
	if act == nil {
		act = choosing(0)
	}
	p := agents.NewPlayer(e, act)
	for k := range s.Episodes {
		ep := env.Episode{Seed: rng.At(rng.Hash("improper/episodes"), uint64(k))}
		if _, _, err := p.Play(ctx, ep, rng.Stream(ep.Seed, "improper/act")); err != nil {
			return nil, err
		}
		own := map[string]string{"network": n.Name, "episode": fmt.Sprint(k)}
		for key, v := range labels {
			own[key] = v
		}
		rows = append(rows, study.Row{Table: "networks", Labels: own, Metric: "packets", Value: p.TimeStep().Info[0]})
	}
	return rows, nil
}

// choosing is the policy that always chooses one controller, −1 = any.
type choosing int

// Act implements agents.Policy.
func (c choosing) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	for i := range b.N {
		k := int(c)
		if k < 0 {
			k = src[i].IntN(len(b.Mask) / b.N)
		}
		dst.Disc[i] = int32(k)
	}
	return nil
}

// drawing is the policy that draws controllers with given probabilities.
type drawing []float64

// Act implements agents.Policy.
func (d drawing) Act(_ context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	for i := range b.N {
		left, at := src[i].Float64(), 0
		for at < len(d)-1 && left >= d[at] {
			left -= d[at]
			at++
		}
		dst.Disc[i] = int32(at)
	}
	return nil
}

// reference plays what is known without learning: the base controllers, the best of them, all alike, the best weights, the optimum.
func (s *settings) reference(ctx context.Context, b *study.Bench, n network) (rows []study.Row, err error) {
	play := func(policy string, act agents.Policy, serve func(queues []int) int) ([]study.Row, error) {
		own, err := s.playNet(ctx, n, map[string]string{"policy": policy}, act, serve)
		rows = append(rows, own...)
		return own, err
	}
	known := func(what string, packets float64) {
		rows = append(rows, study.Row{Table: "known", Labels: map[string]string{"network": n.Name, "policy": what}, Metric: "packets", Value: packets})
	}
	var won []study.Row
	least := 0.0
	for k, base := range n.Bases {
		own, err := play(base.Name, choosing(k), nil)
		if err != nil {
			return nil, err
		}
		sum := 0.0
		for _, r := range own {
			sum += r.Value
		}
		if won == nil || sum < least {
			won, least = own, sum
		}
	}
	for _, r := range won {
		labels := map[string]string{}
		for k, v := range r.Labels {
			labels[k] = v
		}
		labels["policy"] = best
		rows = append(rows, study.Row{Table: r.Table, Labels: labels, Metric: r.Metric, Value: r.Value})
	}
	if _, err := play(uniform, choosing(-1), nil); err != nil {
		return nil, err
	}
	if n.server() {
		known(optimum, queuenet.Busy(n.Rates[0]))
		if n.allFixed() {
			weights, packets := queuenet.BestShares(n.Rates[0])
			known(shares, packets)
			if _, err := play(shares, drawing(weights), nil); err != nil {
				return nil, err
			}
			e, err := s.exactly(ctx, b, n)
			if err != nil {
				return nil, err
			}
			if _, err := play(exact, drawing(e.Weight), nil); err != nil {
				return nil, err
			}
			for k := range weights {
				rows = append(rows, weightRow(n, shares, k, 0, weights[k]), weightRow(n, exact, k, 0, e.Weight[k]))
			}
		}
	}
	serve := func(queues []int) int { return n.Choose(longest, queues) }
	if n.bound > 0 {
		o, err := queuenet.Solve(n.Network, n.bound)
		if err != nil {
			return nil, err
		}
		known(optimum, o.Packets)
		serve = o.Set
	}
	if _, err := play(optimum, nil, serve); err != nil {
		return nil, err
	}
	return rows, nil
}

func weightRow(n network, policy string, k, seed int, w float64) study.Row {
	labels := map[string]string{"network": n.Name, "policy": policy, "controller": n.Bases[k].Name}
	if seed > 0 {
		labels["seed"] = fmt.Sprint(seed)
	}
	return study.Row{Table: "weights", Labels: labels, Metric: "weight", Value: w}
}

// What the exact gradient is computed on: queues of at most so many packets, and a discount that looks ahead some hundred slots.
const (
	exactBound = 100
	exactGamma = 0.995
	exactSteps = 200
	exactRate  = 0.2
)

// process returns a network of fixed controllers, a queue each, for which weights that do not depend on the state make queues
// independent: the process of one queue, drawn at the start.
func process(n network) *mixture.Process {
	side, queues := exactBound+1, n.Queues()
	p := &mixture.Process{
		States: side * queues, Controllers: len(n.Bases), Gamma: exactGamma, Start: make([]float64, side*queues), Reward: make([]float64, side*queues*len(n.Bases)),
		Next: make([][]mixture.Branch, side*queues*len(n.Bases)),
	}
	for i := range queues {
		p.Start[i*side] = 1 / float64(queues)
		one := queuenet.Network{Name: n.Name, Rates: [][]float64{{n.Rates[0][i]}}, Sets: [][]int{{}, {0}}, Bases: []queuenet.Base{{Set: 0}, {Set: 1}}}
		for k, base := range n.Bases {
			served := 0
			if slices.Contains(n.Sets[base.Set], i) {
				served = 1
			}
			for length := range side {
				at := k*p.States + i*side + length
				one.Follow(served, []int{length}, exactBound, func(q []int, chance float64) {
					p.Reward[at] -= chance * float64(q[0])
					p.Next[at] = append(p.Next[at], mixture.Branch{State: i*side + q[0], P: chance})
				})
			}
		}
	}
	return p
}

// exactly learns weights with the true gradient of the discounted number of packets, from an empty network on.
func (s *settings) exactly(ctx context.Context, b *study.Bench, n network) (*mixture.Exact, error) {
	e, err := mixture.NewExact(process(n))
	if err != nil {
		return nil, err
	}
	for i := range exactSteps {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e.Step(exactRate)
		b.Progress(int64(i+1), exactSteps)
	}
	return e, nil
}

// learnNet trains a learner and plays it.
func (s *settings) learnNet(ctx context.Context, b *study.Bench, n network, name string, seed int) ([]study.Row, error) {
	cfg := learnerConfig(name)
	a, err := s.trainNet(ctx, b, n, cfg, uint64(seed))
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	p := a.Greedy().(*mixture.Policy)
	rows, err := s.playNet(ctx, n, map[string]string{"policy": name, "seed": fmt.Sprint(seed)}, p, nil)
	if err == nil && cfg.Features == "none" {
		for k, w := range p.Weights(nil) {
			rows = append(rows, weightRow(n, name, k, seed, w))
		}
	}
	return rows, err
}
