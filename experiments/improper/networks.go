package improper

import (
	"context"
	"errors"
	"fmt"
	"slices"

	mixture "clustergym/agents/improper"
	"clustergym/agents/train"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/experiments/improper/queuenet"
	"clustergym/experiments/study"
)

// Policies of the tables of networks, beside the base controllers.
const (
	uniform = "uniform"       // every controller with the same probability
	shares  = "best mixture"  // the best weights of fixed controllers, in closed form
	optimum = "optimum"       // of all schedulers that see the queues
	exact   = "pg, exact"     // SoftMax PG with the true gradient
	best    = "best base"     // the base controller with the least mean on the test episodes
	pg      = "pg"            // learned; the weights are the same in every state
	nac     = "nac"           // likewise
	spsa    = "spsa"          // likewise
	byState = "nac, by state" // learned; the weights depend on the queues
	byPG    = "pg, by state"  // likewise
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

// networks returns all networks. Where one server serves one of two queues in a slot and loses nothing, serving the
// longest queue is optimal whatever the arrivals are, because it never idles.
func networks() []network {
	server, row := [][]int{{0}, {1}}, [][]int{{0, 2}, {1, 3}, {0, 3}}
	two, three := fixed("queue 1", "queue 2"), fixed("links 1 3", "links 2 4", "links 1 4")
	return []network{
		{Network: queuenet.Network{Name: "even", Rates: [][]float64{{0.45, 0.45}}, Sets: server, Bases: two}},
		{Network: queuenet.Network{Name: "skewed", Rates: [][]float64{{0.2, 0.6}}, Sets: server, Bases: two}},
		{Network: queuenet.Network{Name: "skewed-longest", Rates: [][]float64{{0.2, 0.6}}, Sets: server,
			Bases: append(slices.Clone(two), longest)}},
		{Network: queuenet.Network{Name: "turning", Rates: [][]float64{{0.7, 0.1}, {0.1, 0.7}}, Slots: 250, Sets: server,
			Bases: two}},
		{Network: queuenet.Network{Name: "lossy", Rates: [][]float64{{0.3, 0.3}}, Up: []float64{1, 0.6}, Sets: server,
			Bases: append(slices.Clone(two), longest)}, bound: 60},
		{Network: queuenet.Network{Name: "path", Rates: [][]float64{{0.4, 0.4, 0.4, 0.4}}, Sets: row, Bases: three},
			bound: 12},
		{Network: queuenet.Network{
			Name: "path-rules", Rates: [][]float64{{0.4, 0.4, 0.4, 0.4}}, Sets: row,
			Bases: append(slices.Clone(three), queuenet.Base{Name: "most packets", Rule: queuenet.MostPackets},
				queuenet.Base{Name: "most queues", Rule: queuenet.MostQueues}),
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

// solved reports whether the best weights are known in closed form: one server, and controllers that serve a queue
// each.
func (n *network) solved() bool {
	return n.server() && !slices.ContainsFunc(n.Bases, func(b queuenet.Base) bool { return b.Rule != queuenet.Fixed })
}

// learnerConfig returns the hyper-parameters of a learner on networks. They were chosen with seeds 101 and 102 on all
// networks but skewed and lossy. The tables have other seeds.
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
func (s *settings) trainNet(ctx context.Context, b *study.Bench, n network, cfg mixture.Config,
	seed uint64) (*mixture.Agent, error) {
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

// learnNet trains a learner and plays it.
func (s *settings) learnNet(ctx context.Context, b *study.Bench, n network, name string,
	seed int) ([]study.Row, error) {
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
