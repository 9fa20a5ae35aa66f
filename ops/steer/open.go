package steer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/predictors"
	"clustergym/lab/workload"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// historyWindows is a workload that is history: it has jobs, and no windows.
type historyWindows struct{ jobs []traces.Job }

// At implements sched.Windows.
func (*historyWindows) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{}, errors.New("steer: a cluster that is followed has no windows")
}

// Offered implements sched.Offering: no window is stretched.
func (*historyWindows) Offered() float64 { return 1 }

// Jobs implements envs.Windows.
func (p *historyWindows) Jobs(traces.Part) []traces.Job { return p.jobs }

// Predictor implements sched.Foresight.
func (p *historyWindows) Predictor(est sim.Estimates) (predict.Maker, error) {
	est.Seed = 0
	return predictors.Maker(est, p.jobs)
}

// openEnv opens the environment of cfg on a cluster, with estimates that a cluster can have.
func openEnv(cfg *config.Config, l mirror.Layout, w *historyWindows) (sched.Steered, error) {
	d := cfg.Descriptor()
	if !d.Simulated() {
		return nil, fault.Mistakef("%s has no cluster: only policies of JobSelect-v1 and its siblings can steer one", d.ID)
	}
	s := cfg.Env.Settings
	if d.Judged != nil {
		s = d.Judged(s)
	}
	e, err := d.Open(s, &envs.Source{Cluster: l.Spec, Windows: w}, traces.Training)
	if err != nil {
		return nil, err
	}
	x, ok := e.(sched.Steered)
	if !ok {
		return nil, fmt.Errorf("%s cannot follow a cluster", d.ID)
	}
	return x, nil
}

// causal returns cfg with estimates that a cluster can have: its own where they are, history in place of exact and
// noisy ones.
func causal(cfg config.Config) (config.Config, error) {
	if cfg.Estimates().Rung() < sim.RungNoisy {
		return cfg, nil
	}
	return cfg.OnRung(sim.Estimates{Mode: sim.EstimateHistory})
}

func openRule(c *Choice, n policyname.Name, l mirror.Layout, w *historyWindows) (*Policy, error) {
	slots, ahead := n.Kind == policyname.Rule, n.Ahead != policyname.None
	cfg, err := causal(c.Config)
	if err != nil {
		return nil, err
	}
	if j, ok := cfg.Env.Settings.(*jobselect.Config); ok { // a rule takes every cluster
		s := *j
		s.MaxGPUs = min(gpus(&l.Spec), 1024)
		if c.Visible > 0 {
			s.Visible = c.Visible
		}
		cfg.Env.Settings = &s
	}
	e, err := openEnv(&cfg, l, w)
	if err != nil {
		return nil, err
	}
	rival, err := cfg.Rival(n.Plain().String())
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if err := Names().Check(n); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	p := &Policy{Name: c.Policy, Env: e}
	setup := rollout.Setup{Config: rollout.DefaultConfig(), Workers: 1, Clock: config.Clock()}
	if setup.Config.Budget = c.Budget; ahead {
		setup.Source = newPast(e, &cfg)
	}
	switch {
	case slots && ahead:
		j, ok := e.(*sched.Env)
		if !ok {
			return nil, fault.Mistakef("%s: %s has no slots to look ahead from", c.Policy, e.Spec().ID)
		}
		a, err := rollout.NewActor(setup, n.Base, j)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		return p.acting(&cfg, a)
	case slots:
		a, err := rival.Rule.Policy(e)
		if err != nil {
			return nil, err
		}
		return p.acting(&cfg, a)
	}
	var sch sim.Scheduler
	switch why := rival.Sched.Forgets(); {
	case ahead:
		sch, err = rollout.New(setup, rival.Sched)
	case why != "":
		return nil,
			fault.Mistakef(
				"%s remembers what it decided before (%s), and a cluster may decide otherwise; want a policy that looks at "+
					"nothing but the state, as %s", c.Policy, why, strings.Join(schedulers.Bases(), ", "))
	default:
		sch, err = schedulers.New(rival.Sched)
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	p.ask(sch)
	p.rankBy(n.Base, cfg.Estimates(), ahead)
	return p, nil
}

// newPast returns the futures of rollouts: what has arrived since steering began.
func newPast(e sched.Steered, cfg *config.Config) *rollout.Past {
	src := rollout.NewPast(cfg.Estimates())
	e.Watch(src)
	return src
}

func gpus(s *cluster.Spec) (n int) {
	for i := range s.Racks {
		for k := range s.Racks[i].Nodes {
			n += s.Racks[i].Count.N() * s.Racks[i].Nodes[k].Count.N() * s.Racks[i].Nodes[k].GPUs
		}
	}
	return n
}

func openCheckpoint(c *Choice, l mirror.Layout, w *historyWindows) (*Policy, error) {
	opened, a, spec, err := arena.OpenPolicy(c.Policy)
	if err != nil {
		return nil, err
	}
	cfg := opened.Cfg
	trained, err := workload.ClusterSpec(cfg.Cluster)
	if err != nil {
		return nil, err
	}
	if cfg, err = causal(opened.Cfg); err != nil {
		return nil, err
	}
	if err := cfg.ShowAs(&opened.Cfg); err != nil {
		return nil, err
	}
	e, err := openEnv(&cfg, l, w)
	if err != nil {
		return nil, err
	}
	if why := differs(&trained, &l.Spec); why != "" && !anywhere(&cfg, &trained, spec) {
		return nil, fault.Mistakef("%s does not fit this cluster: it was trained on %s (%s), and its observations have a "+
			"place for every node. %s", c.Policy, cfg.Cluster, why, fitting(&cfg))
	}
	if why := otherShape(spec, e.Spec()); why != "" {
		return nil, fault.Mistakef("%s does not fit this cluster: %s. %s", c.Policy, why, fitting(&cfg))
	}
	return (&Policy{Name: opened.Name, Env: e}).acting(&cfg, a)
}

// anywhere reports whether observations do not depend on the number of nodes: with one node more their shape is still
// that of the training.
func anywhere(cfg *config.Config, trained *cluster.Spec, spec env.Spec) bool {
	more := *trained
	if more.Pool > 0 {
		more.Pool++
	} else {
		last := &trained.Racks[len(trained.Racks)-1]
		node := last.Nodes[len(last.Nodes)-1]
		node.Count, node.Names = 1, nil
		more.Racks = append(slices.Clone(trained.Racks), cluster.RackSpec{Nodes: []cluster.NodeSpec{node}})
	}
	e, err := openEnv(cfg, mirror.Layout{Spec: more}, &historyWindows{})
	return err == nil && otherShape(spec, e.Spec()) == ""
}

// fitting says which agents fit every cluster.
func fitting(cfg *config.Config) string {
	if jobselect.Is(cfg.Env.ID) {
		return "Agents that are trained with env.images=false, as in the preset quickstart, fit every cluster"
	}
	return "Agents of the preset quickstart fit every cluster"
}

func openModel(c *Choice, l mirror.Layout, w *historyWindows) (*Policy, error) {
	cfg, err := causal(c.Config)
	if err != nil {
		return nil, err
	}
	if err := cfg.ShowAs(&c.Config); err != nil {
		return nil, err
	}
	e, err := openEnv(&cfg, l, w)
	if err != nil {
		return nil, err
	}
	m := *c.Model
	m.Greedy = c.Config.Eval.Greedy.Certain() // nothing is drawn, so that a look can be repeated
	a, err := m.Policy(e.Spec())
	if err != nil {
		return nil, err
	}
	return (&Policy{Name: c.Model.Name, Env: e}).acting(&cfg, a)
}
