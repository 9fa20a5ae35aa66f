package topdrl

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/gpupick"
	"clustergym/experiments/study"
	"clustergym/lab/arena"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// placer is a scheduler whose jobs get the GPUs that an agent of GPUPick-v1 picks instead of its own.
type placer struct {
	schedulers.Policy
	cfg    *gpupick.Config
	open   func(spec env.Spec) (agents.Policy, error)
	picks  *gpupick.Picks
	policy agents.Policy
	batch  *env.Batch
	action *env.Actions
	src    [1]*rand.Rand // nil: a greedy policy draws nothing
}

// begin makes what picks GPUs on c and on clusters like it.
func (p *placer) begin(c *cluster.Cluster) (err error) {
	if p.picks, err = gpupick.NewPicks(p.cfg, c, 0); err != nil { // run times are exact, so the seed draws nothing
		return err
	}
	spec := env.Spec{ID: gpupick.V1, Obs: p.picks.Fields(), Action: env.ActionSpec{Sizes: []int{c.GPUs() + 1}}, NoOp: -1}
	p.batch, p.action = env.NewBatch(spec, 1), env.NewActions(spec, 1)
	p.policy, err = p.open(spec)
	return err
}

// Decide implements sim.Scheduler.
func (p *placer) Decide(v *sim.View, pt *sim.Point, d *sim.Decision) error {
	if err := p.Policy.Decide(v, pt, d); err != nil || d.Op != sim.StartJob {
		return err
	}
	if p.picks == nil {
		if err := p.begin(v.Cluster()); err != nil {
			return err
		}
	}
	p.picks.Begin(v, d.Job)
	for done := false; !done; {
		p.picks.Encode(p.batch.Obs)
		p.picks.Mask(p.batch.Mask)
		p.batch.Kind[0] = env.Mid
		if err := p.policy.Act(context.Background(), p.batch, p.action, p.src[:]); err != nil {
			return err
		}
		done = p.picks.Pick(cluster.GPU(p.action.Disc[0]))
	}
	d.GPUs = append(d.GPUs[:0], p.picks.GPUs()...)
	return nil
}

// playPlaced plays rules on the test windows whose jobs are placed by a trained agent of GPUPick-v1. It has been
// trained on jobs of another workload, on the smaller cluster.
func (s *settings) playPlaced(ctx context.Context, b *study.Bench, w *arena.Scenario, st *stage, seed uint64,
	run string) ([]study.Row, error) {
	cfg, err := s.config(st, nil, 1)
	if err != nil {
		return nil, err
	}
	picked, err := s.pickConfig(sharing, seed)
	if err != nil {
		return nil, err
	}
	pick := picked.Env.Settings.(*gpupick.Config)
	var rows []study.Row
	for _, r := range []rule{newRule("fifo", "strict", "closest-b"), newRule("sjf", "skip", "closest-b")} {
		c := r.policy()
		c.wrap = func(h schedulers.Policy) (sim.Scheduler, error) {
			return &placer{Policy: h, cfg: pick,
				open: func(spec env.Spec) (agents.Policy, error) { return arena.Trained(filepath.Join(run, "run"), spec) }}, nil
		}
		name := map[string]string{"fifo": "fifo", "sjf": "sjf+skip"}[r.config.Order] + learned
		own, err := s.playOther(ctx, b, inScenario(w, &cfg), st, name, fmt.Sprint(seed), 0, c)
		if err != nil {
			return nil, err
		}
		rows = append(rows, own...)
	}
	return rows, nil
}

// learned ends the names of rules whose GPUs an agent picks.
const learned = " + learned picks"
