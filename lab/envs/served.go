package envs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/nearest"
	"clustergym/simulator/metrics"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// simulated is an environment over the cluster simulator with all its optional interfaces.
type simulated interface {
	sched.Arena
	env.Snapshotter
	env.Renderer
	env.Painter
}

// ServedEnv is an environment over the cluster simulator for remote players, who cannot read its state: it reports the
// metrics of the episode and the actions of rules.
type ServedEnv struct {
	simulated
	*adviser
	metrics episodeMetrics
}

// episodeMetrics collects the metrics of one episode.
type episodeMetrics struct {
	metrics.Collector
	ended bool // the jobs that the episode left unfinished are counted
}

// Reset forgets the last episode.
func (m *episodeMetrics) Reset() {
	m.Collector.Reset()
	m.ended = false
}

var (
	_ env.Env         = (*ServedEnv)(nil)
	_ env.Snapshotter = (*ServedEnv)(nil)
	_ env.Renderer    = (*ServedEnv)(nil)
	_ env.Painter     = (*ServedEnv)(nil)
)

// NewServedEnv returns e, an environment of d with settings s, for remote players. It takes ownership of e.
func NewServedEnv(d *Descriptor, s Settings, e sched.Arena) *ServedEnv {
	return newServedEnv(&desk{d: d, s: s}, e)
}

func newServedEnv(k *desk, e sched.Arena) *ServedEnv {
	x := &ServedEnv{simulated: e.(simulated), adviser: newAdviser(k, e)}
	x.metrics.Keep = func(pos int) bool { return pos >= e.First() }
	e.Watch(&x.metrics)
	return x
}

// Also lets o watch the episodes, too (sched.Arena.Watch). It is called once, before the first Reset.
func (s *ServedEnv) Also(o sim.Observer) { s.Watch(&both{&s.metrics, o}) }

// both are two observers of the same episodes.
type both struct {
	metrics *episodeMetrics
	other   sim.Observer
}

// Reset forgets the last episode.
func (b *both) Reset() {
	b.metrics.Reset()
	if r, ok := b.other.(interface{ Reset() }); ok {
		r.Reset()
	}
}

// Observe implements sim.Observer.
func (b *both) Observe(v *sim.View, p *sim.Point) error {
	return errors.Join(b.metrics.Observe(v, p), b.other.Observe(v, p))
}

// Reset implements env.Env.
func (s *ServedEnv) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	s.begun = false
	return s.after(ts, s.simulated.Reset(ctx, ep, ts))
}

// Step implements env.Env.
func (s *ServedEnv) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	return s.after(ts, s.simulated.Step(ctx, a, ts))
}

// RestoreSnapshot implements env.Snapshotter. A refused snapshot leaves the metrics unchanged, because the environment
// then replays its episode, and the metrics with it.
func (s *ServedEnv) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return s.after(ts, s.simulated.RestoreSnapshot(src, ts))
}

// after is adviser.after, and ends the metrics with the episode.
func (s *ServedEnv) after(ts *env.TimeStep, err error) error {
	err = s.adviser.after(ts, err)
	if s.begun && s.batch.Kind[0] == env.Truncated {
		s.end()
	}
	return err
}

// end counts the jobs that an episode leaves unfinished, for which there are no events.
func (s *ServedEnv) end() {
	if v := s.View(); !v.Over() && !s.metrics.ended {
		s.metrics.End(v)
		s.metrics.ended = true
	}
}

// Call answers two methods. "metrics" returns the summary of the counted jobs that have finished so far (all of them
// after the episode) with the names of gymctl sim --json; "heuristic" with {"rule": NAME} returns the action of the
// rule NAME of NAME@slots at the current time step.
func (s *ServedEnv) Call(method string, args wire.Map) (any, error) {
	switch method {
	case "metrics":
		if len(args) > 0 {
			return nil, wire.Errorf(wire.BadRequest, "metrics takes no arguments, got %.60q", args[0].Key)
		}
		if !s.begun {
			return nil, wire.Errorf(wire.NeedsReset, "there are no metrics before the first reset")
		}
		return PlainSummary(s.metrics.Summary(0, 0)), nil
	case "heuristic":
		return s.Heuristic(args)
	}
	return nil, &wire.Error{Code: wire.Unsupported, Msg: "call", Got: fmt.Sprintf("method %.60q", method),
		Want: "metrics or heuristic"}
}

// Metrics returns the summary of the counted jobs that have finished so far.
func (s *ServedEnv) Metrics() metrics.Summary { return s.metrics.Summary(0, 0) }

// certainRules returns the names of the rules that draw nothing at random.
func (d *Descriptor) certainRules() []string {
	var names []string
	for _, r := range d.Rules {
		if !r.Draws {
			names = append(names, r.Name)
		}
	}
	return names
}

// Cannot says why a rule cannot act under settings s, alone or looking ahead; nil = it can.
func (d *Descriptor) Cannot(rule policyname.Name, s Settings) error {
	r, _ := d.Rule(rule.Base)
	switch blind := d.Simulated() && d.Cut(s).Estimates.Mode == sim.EstimateNone; {
	case blind && r.Estimates:
		return schedulers.Hidden(rule.Base)
	case blind && rule.Ahead != policyname.None:
		return fmt.Errorf("%s: %w", rule, rollout.ErrBlind)
	case r.Stops && !d.Stops(s):
		return fmt.Errorf("%s stops running jobs, which preempt: false does not allow; want preempt: true", rule)
	}
	return nil
}

// Heuristic answers the call "heuristic".
func (s *ServedEnv) Heuristic(args wire.Map) (any, error) {
	name, e := args.Str("rule", "")
	if e != nil {
		return nil, e
	}
	if rules := s.d.certainRules(); !slices.Contains(rules, name) {
		return nil, &wire.Error{Code: wire.BadRequest, Msg: "rule", Got: fmt.Sprintf("%.60q", name),
			Want: nearest.OneOf(name, rules)}
	}
	if err := s.d.Cannot(policyname.AtSlots(name), s.s); err != nil {
		return nil, wire.Errorf(wire.Unsupported, "%v", err)
	}
	if err := s.act(context.Background(), policyname.Slots(name), rollout.Budget{}); err != nil {
		return nil, err
	}
	return int64(s.action.Disc[0]), nil
}

// PlainSummary returns a struct of numbers as a message, with its JSON names.
func PlainSummary(v any) map[string]any {
	out := map[string]any{}
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		name := r.Type().Field(i).Tag.Get("json")
		switch f := r.Field(i); f.Kind() {
		case reflect.Struct:
			out[name] = PlainSummary(f.Interface())
		case reflect.Int:
			out[name] = f.Int()
		case reflect.Float64:
			out[name] = f.Float()
		default:
			panic(fmt.Sprintf("experiments: %s is a %v", name, f.Type()))
		}
	}
	return out
}
