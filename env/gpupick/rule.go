package gpupick

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"clustergym/env/sched"
	"clustergym/simulator/cluster"
)

// Rules returns the rules that pick GPUs, in the order in which tables show them: random play, and every placement that
// places whatever fits. A placement chooses all GPUs of a job at its first pick; with idle it never idles.
func Rules() []sched.Rule {
	rules := []sched.Rule{sched.RandomRule()}
	for _, name := range placements() {
		rules = append(rules, sched.Rule{Name: name, About: "the GPUs that placement " + name + " chooses"})
	}
	return rules
}

// placements leaves out the placement random: it depends on the state alone, so it would place alike in every play.
func placements() []string {
	return slices.DeleteFunc(sched.Placements(), func(name string) bool { return name == "random" })
}

// NewRule returns an actor that plays one of Rules in e.
func NewRule(name string, e *Env) (*sched.Actor, error) {
	if _, err := sched.FindRule(e.Spec().ID, name, Rules()); err != nil {
		return nil, err
	}
	if name == "random" {
		return sched.RandomActor(), nil
	}
	place, err := cluster.NewPlacement(name)
	if err != nil {
		return nil, err
	}
	return sched.NewActor(func([]bool, *rand.Rand) (int32, error) {
		g, err := e.Pick(place)
		return int32(g), err
	}), nil
}

// Pick returns the GPU that rule picks next for the current job. rule must place every job that fits; it sees the
// cluster as it was before the job's picks. If those picks were not its own, Pick returns the first legal GPU of its
// choice, or else the first legal GPU.
func (e *Env) Pick(rule cluster.Placement) (cluster.GPU, error) {
	p, v := e.game.picks, e.View()
	r := v.Request(p.job)
	if k := len(p.picked); k == 0 || len(e.game.last) != r.GPUs || !slices.Equal(e.game.last[:k], p.picked) {
		var ok bool
		if e.game.last, ok = rule.Place(v.Cluster(), r, e.game.last); !ok {
			return 0, fmt.Errorf("%s: placement %s finds no place for a job that fits", e.Spec().ID, rule.Name())
		}
	}
	for _, g := range e.game.last {
		if p.Legal(g) {
			return g, nil
		}
	}
	for g := range p.taken {
		if p.Legal(cluster.GPU(g)) {
			return cluster.GPU(g), nil
		}
	}
	return 0, fmt.Errorf("%s: no GPU is legal", e.Spec().ID)
}
