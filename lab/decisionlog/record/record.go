// Package record makes logs of decisions: it plays a window with a checkpoint and writes down how the agent weighed its
// options.
package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/decisionlog"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Play plays a window of w with the checkpoint in dir, greedily, and writes the log of its decisions to out: that which
// was played when the checkpoint was validated, or with part test that of arena.Evaluate. rival names a rule whose
// choice stands beside each of the agent's, as sjf@slots; where the environment has no such rule, the log has no rival.
// Rules look at the agent's state: they say what they would do there, and do not play.
func Play(ctx context.Context, w *arena.Scenario, cfg config.Config, dir string, part traces.Part, window int,
	rival string, out io.Writer) error {
	e, err := w.NewEnv(part, 1)
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	n, err := w.Windows(&cfg, part)
	if err != nil {
		return err
	}
	if window < 0 || window >= n {
		return fault.Mistakef("window %d of %d: want 1 to %d", window+1, n, n)
	}
	c, err := arena.OpenCheckpoint(dir, e.Spec())
	if err != nil {
		return err
	}
	p, err := c.Under(cfg.Eval.Greedy).In(e)
	if err != nil {
		return err
	}
	scorer, ok := p.(agents.Scorer)
	if s := e.Spec().Action; !ok || len(s.Sizes) != 1 || len(s.Low) > 0 {
		return fault.Mistakef("%s: the decisions of agent %s in %s have no scores to show", c.Name, c.Cfg.Agent, e.Spec().ID)
	}
	h := decisionlog.Header{
		Title: fmt.Sprintf("%s, %v window %d of %d", c.Name, part, window+1,
			n), Env: e.Spec().ID, Policy: c.Name, Scores: string(agents.Probabilities),
	}
	if c.Cfg.Agent == "ddqn" {
		h.Scores = string(agents.Values)
	}
	r := &decider{env: e, policy: scorer, scores: make([]float32, e.Spec().MaskLen()), jobs: map[sim.Job]bool{}}
	if x, err := cfg.Rival(rival); err == nil && x.Rule != nil {
		if r.rival, err = x.Rule.Policy(e); err != nil {
			return err
		}
		h.Rival = x.Name
		r.other = env.NewActions(e.Spec(), 1)
	}
	h.Nodes, h.Pool = shapeOf(e.View().Cluster())
	r.log = decisionlog.NewWriter(out, h)
	ep := w.Episode(&cfg, window)
	e.Watch(r)
	defer e.Watch(nil)
	// A window that leaves nothing to decide has a log without decisions.
	if _, _, err := agents.NewPlayer(e, r).Play(ctx, ep, rng.Stream(rng.At(ep.Seed, 0), "eval/act")); err != nil &&
		!errors.Is(err, sched.ErrUndecided) {
		return err
	}
	return r.log.Flush()
}

// shapeOf returns the cluster as logs describe it.
func shapeOf(c *cluster.Cluster) (nodes []int, pool int) {
	if c.Pool() {
		return nil, c.GPUs()
	}
	nodes = make([]int, c.Nodes())
	for i := range nodes {
		from, to := c.NodeGPUs(i)
		nodes[i] = int(to - from)
	}
	return nodes, 0
}

// decider is a policy that writes a log of its decisions, and the observer of its episode.
type decider struct {
	env    sched.Arena
	policy agents.Scorer
	rival  agents.Policy // nil = there is none
	other  *env.Actions
	scores []float32
	log    *decisionlog.Writer

	jobs  map[sim.Job]bool // those of the log; the simulator uses a number again only when its job has left
	begun bool
	said  int // events of the decisions at this point that are written
	n     int
}

// Observe implements sim.Observer.
func (d *decider) Observe(v *sim.View, p *sim.Point) error {
	if !d.begun {
		d.begun = true
		d.join(v, p)
		d.said = 0
	}
	for i := min(d.said, len(p.Events)); i < len(p.Events); i++ {
		d.event(v, &p.Events[i])
	}
	d.said = 0
	return nil
}

// join writes what runs and waits at the first point.
func (d *decider) join(v *sim.View, p *sim.Point) {
	seen := map[sim.Job]bool{}
	for i := range p.Events {
		seen[p.Events[i].Job] = true
	}
	var before []sim.Event
	for _, j := range v.Waiting() {
		if !seen[j] {
			before = append(before, sim.Event{At: v.Trace(j).Submit, Kind: sim.Submit, Job: j})
		}
	}
	for _, j := range v.Running() {
		if !seen[j] {
			before = append(before, sim.Event{At: v.Started(j), Kind: sim.Start, Job: j, GPUs: v.GPUs(j), N: int32(v.Asked(j))})
		}
	}
	slices.SortStableFunc(before, func(a, b sim.Event) int { return int(max(-1, min(1, a.At-b.At))) })
	for i := range before {
		d.event(v, &before[i])
	}
}

func seconds(t time.Duration) float64 { return t.Seconds() }

func (d *decider) event(v *sim.View, e *sim.Event) {
	if e.Kind == sim.Timer {
		return
	}
	out := decisionlog.Event{At: seconds(e.At), Kind: e.Kind.String()}
	if e.Job < 0 {
		out.Node = &e.Node
		d.log.Event(&out)
		return
	}
	d.job(v, e.Job)
	out.Job = v.Trace(e.Job).ID
	for _, g := range e.GPUs {
		out.GPUs = append(out.GPUs, int32(g))
	}
	if v.Cluster().Pool() && e.Kind != sim.Submit && e.Kind != sim.Drop {
		out.N = e.N
	}
	d.log.Event(&out)
	if e.Kind == sim.Finish || e.Kind == sim.Drop {
		delete(d.jobs, e.Job)
	}
}

// job writes a job of which the log knows nothing.
func (d *decider) job(v *sim.View, j sim.Job) {
	if d.jobs[j] {
		return
	}
	d.jobs[j] = true
	t := v.Trace(j)
	out := decisionlog.Job{ID: t.ID, Submit: seconds(t.Submit), GPUs: v.Asked(j), User: t.User, Model: t.Model}
	if m := v.Request(j).Milli; m > 0 && m < 1000 {
		out.Milli = m
	}
	d.log.Job(&out)
}

// Act implements agents.Policy.
func (d *decider) Act(ctx context.Context, b *env.Batch, dst *env.Actions, src []*rand.Rand) error {
	if err := d.policy.Act(ctx, b, dst, src); err != nil {
		return err
	}
	if _, err := d.policy.Scores(ctx, b, d.scores); err != nil {
		return err
	}
	rival := -1
	if d.rival != nil {
		if err := d.rival.Act(ctx, b, d.other, src); err != nil {
			return err
		}
		rival = int(d.other.Disc[0])
	}
	v := d.env.View()
	for events := v.DecisionEvents(); d.said < len(events); d.said++ {
		d.event(v, &events[d.said])
	}
	d.n++
	out := decisionlog.Decision{At: seconds(v.Now()), Number: d.n, Chosen: -1, Waiting: len(v.Waiting())}
	Options(d.env, b.Mask, func(action int, j sim.Job, o decisionlog.Option) {
		if j >= 0 {
			d.job(v, j)
		}
		if action == int(dst.Disc[0]) {
			out.Chosen = len(out.Options)
		}
		if action == rival {
			at := len(out.Options)
			out.Rival = &at
		}
		if !o.Illegal { // a network has no score for what it cannot do
			score := float64(d.scores[action])
			o.Score = &score
		}
		if o.Job != "" || !o.Illegal {
			out.Options = append(out.Options, o)
		}
	})
	d.log.Decision(&out)
	return nil
}

// Options calls f for every action that stands for something in e now: a job that starts or stops (-1 = none), or
// another thing.
func Options(e sched.Arena, mask []bool, f func(action int, j sim.Job, o decisionlog.Option)) {
	v := e.View()
	var visible, running []sim.Job
	var estimate func(j sim.Job) time.Duration
	switch e := e.(type) {
	case *sched.Env:
		s := e.State()
		visible, running = s.Slots, s.Running
		estimate = func(j sim.Job) time.Duration { return s.Known[j].Estimate }
		if !plainActions(e) {
			visible = nil
		}
	case interface {
		Slots() []sim.Job
		Estimate(j sim.Job) time.Duration
	}:
		visible, estimate = e.Slots(), e.Estimate
	}
	noop := e.Spec().NoOp
	slots := len(mask)
	if e, ok := e.(*sched.Env); ok && noop >= 0 {
		slots = noop - e.Rows()
	}
	for a := range mask {
		j, o := sim.Job(-1), decisionlog.Option{Illegal: !mask[a]}
		switch {
		case a == noop:
			o.Do = "wait"
		case visible == nil:
			o.Do = fmt.Sprintf("action %d", a)
			if e.Spec().ID == gpupick.V1 {
				o.Do = fmt.Sprintf("GPU %d", a)
			}
		case a < len(visible):
			o.Do, j = "start", visible[a]
			if t := estimate(j); t > 0 {
				s := seconds(t)
				o.Estimate = &s
			}
		case a >= slots && a-slots < len(running):
			o.Do, j = "stop", running[a-slots]
		default:
			if !mask[a] {
				continue // an empty slot
			}
			o.Do = fmt.Sprintf("action %d", a)
		}
		if j >= 0 {
			o.Job = v.Trace(j).ID
		}
		f(a, j, o)
	}
}

// plainActions reports whether action i of an environment starts the job of slot i.
func plainActions(e *sched.Env) bool {
	s := e.Spec()
	return s.NoOp >= 0 && s.Action.Sizes[0] == s.NoOp+1 && jobselect.Is(s.ID)
}
