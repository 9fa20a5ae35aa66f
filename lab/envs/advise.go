package envs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/agents"
	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// AllPolicies allows every policy that can be asked for.
const AllPolicies = "all"

// Advice says which policies clients may ask for an action, and what an answer may cost.
type Advice struct {
	Policies []string      // RULE@slots, rollout:RULE@slots, or AllPolicies; empty = none
	Budget   int           // rollouts of one decision at most
	Time     time.Duration // of one decision at most, for budgets of time
	// Models are policies of other programs, which can be asked by their names where they fit the environment.
	Models []Model
}

// on returns whether there may be something to ask for.
func (a *Advice) on() bool { return len(a.Policies)+len(a.Models) > 0 }

// DefaultAdvice allows nothing, and 256 rollouts or a second once something is.
func DefaultAdvice() Advice { return Advice{Budget: 256, Time: time.Second} }

// Validate reports every fault.
func (a *Advice) Validate() error {
	var l fault.List
	for i, m := range a.Models {
		twice := slices.ContainsFunc(a.Models[:i], func(o Model) bool { return o.Name == m.Name })
		l.Add(m.Name != AllPolicies && !twice && !slices.Contains(everyAdvice(), m.Name), "name", m.Name,
			"a name that no other policy has")
	}
	if len(a.Policies) == 0 {
		return l.Err()
	}
	l.Add(a.Budget >= 1 && a.Budget <= 1_000_000, "budget", a.Budget, "1 to 1000000 rollouts")
	l.Add(a.Time >= 100*time.Microsecond && a.Time <= time.Minute, "budget_time", a.Time, "100us to 1m")
	all := everyAdvice()
	for _, p := range a.Policies {
		l.Add(p == AllPolicies || slices.Contains(all, p), "advise", p, "all, or "+nearest.OneOf(p, all))
	}
	return l.Err()
}

// everyAdvice returns the policies of all environments, sorted.
func everyAdvice() []string {
	var all []string
	for _, d := range descriptors {
		all = append(all, d.advisable()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// advisable returns the policies that act through the environment's actions and draw nothing at random.
func (d *Descriptor) advisable() []string {
	if !d.Scheduling() {
		return nil
	}
	names := policyname.Rules(d.certainRules()...)
	if jobselect.Is(d.ID) {
		for _, r := range d.certainRules() {
			h := schedulers.Passing(r)
			if slices.Contains(schedulers.Bases(), r) && rollout.CheckBase(&h) == nil {
				names = append(names, policyname.AtSlots(r).Looking(policyname.Rollout).String())
			}
		}
	}
	return names
}

// desk is what the advisers of equal environments share.
type desk struct {
	Advice
	d       *Descriptor
	s       Settings
	account *budget.Account // memory is reserved when an environment first looks ahead
	bytes   float64         // about what a copy of the environment takes
	names   []string
	fit     []*Model // of Models

	mu      sync.Mutex
	futures *rollout.Recorded
}

// list returns the policies that are both allowed and known here.
func (k *desk) list() []string {
	return slices.DeleteFunc(k.d.advisable(), func(name string) bool {
		return !slices.Contains(k.Policies,
			AllPolicies) && !slices.Contains(k.Policies, name) || k.d.Cannot(policyname.Of(name), k.s) != nil
	})
}

// fitting adds the models that fit environments of specification s. Advice is indices, so actions that are numbers have
// none.
func (k *desk) fitting(ctx context.Context, s env.Spec) {
	if len(s.Action.Low) > 0 {
		return
	}
	for i := range k.Models {
		if _, err := k.Models[i].PolicyContext(ctx, s); err == nil {
			k.fit = append(k.fit, &k.Models[i])
			k.names = append(k.names, k.Models[i].Name)
		}
	}
}

// model returns the model called name among those that fit, nil if there is none.
func (k *desk) model(name string) *Model {
	for _, m := range k.fit {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// source returns the futures that environments over the workload of e share.
func (k *desk) source(e *sched.Env) (*rollout.Recorded, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.futures == nil {
		var jobs int
		if w, ok := e.Parts().Windows.(Windows); ok {
			jobs = len(w.Jobs(traces.Training))
		}
		const each = 400 // bytes of a job and its forecast
		if !k.account.Reserve(budget.Environments, int64(jobs)*each) {
			return nil, k.account.Refuse("looking ahead", int64(jobs)*each)
		}
		var err error
		if k.futures, err = rollout.RecordedOf(e); err != nil {
			return nil, err
		}
	}
	return k.futures, nil
}

// adviser answers for one environment what policies would do in its present state.
type adviser struct {
	*desk
	e      env.Env
	batch  *env.Batch
	action *env.Actions
	begun  bool
	plain  map[string]agents.Policy
	ahead  map[string]*searcher
}

// searcher is a policy that looks ahead with one budget.
type searcher struct {
	budget rollout.Budget
	policy agents.Policy
}

func newAdviser(k *desk, e env.Env) *adviser {
	a := &adviser{
		desk: k, e: e, batch: &env.Batch{N: 1, Kind: make([]env.Kind, 1), Mask: make([]bool, e.Spec().MaskLen())},
		action: env.NewActions(e.Spec(), 1),
		plain:  map[string]agents.Policy{}, ahead: map[string]*searcher{},
	}
	if len(k.Models) > 0 { // rules look at the environment, models at the observation
		a.batch.Obs = make([]float32, e.Spec().ObsLen())
	}
	return a
}

// after stores ts, the time step of a call that returned err, and returns err.
func (a *adviser) after(ts *env.TimeStep, err error) error {
	if err == nil {
		copy(a.batch.Obs, ts.Obs)
		copy(a.batch.Mask, ts.Mask)
		a.batch.Kind[0], a.begun = ts.Kind, true
	}
	return err
}

// Advises implements handle.Adviser.
func (a *adviser) Advises() []string { return a.names }

// Advise implements handle.Adviser: args are policy, and for policies that look ahead budget, a number of rollouts or a
// time such as "30ms".
func (a *adviser) Advise(ctx context.Context, args wire.Map) (any, error) {
	if !a.on() {
		return nil, wire.Errorf(wire.Unsupported, "advice is not enabled on this server; it takes gymctl serve --advise all")
	}
	for _, p := range args {
		if p.Key != "policy" && p.Key != "budget" {
			return nil, &wire.Error{Code: wire.BadRequest, Msg: "args of advise", Got: fmt.Sprintf("%.60q", p.Key),
				Want: "policy, budget"}
		}
	}
	name, e := args.Str("policy", "")
	if e != nil {
		return nil, e
	}
	if err := a.allowed(name); err != nil {
		return nil, err
	}
	look, err := a.asked(args.Get("budget"), name)
	if err != nil {
		return nil, err
	}
	if err := a.act(ctx, name, look); err != nil {
		return nil, err
	}
	if len(a.action.Disc) == 1 {
		return int64(a.action.Disc[0]), nil
	}
	out := make([]int64, len(a.action.Disc))
	for i, x := range a.action.Disc {
		out[i] = int64(x)
	}
	return out, nil
}

// act sets the action to that of the policy called name at the current time step.
func (a *adviser) act(ctx context.Context, name string, b rollout.Budget) error {
	if !a.begun || a.batch.Kind[0].Last() {
		return wire.Errorf(wire.NeedsReset, "there is nothing to decide: the episode has ended, or none has begun")
	}
	p, err := a.policy(name, b)
	if err != nil {
		return err
	}
	return p.Act(ctx, a.batch, a.action, nil)
}

// allowed returns why name cannot be asked for here, nil if it can.
func (a *adviser) allowed(name string) error {
	if slices.Contains(a.names, name) {
		return nil
	}
	for i := range a.Models {
		if a.Models[i].Name == name {
			_, err := a.Models[i].Policy(a.e.Spec())
			return wire.Errorf(wire.Unsupported, "%v", err)
		}
	}
	known := a.d.advisable()
	if !slices.Contains(known, name) {
		if slices.Contains(everyAdvice(), name) {
			return wire.Errorf(wire.Unsupported, "%s does not act through the actions of %s; there are %s", name, a.d.ID,
				strings.Join(a.names, ", "))
		}
		return &wire.Error{Code: wire.BadRequest, Msg: "policy", Got: fmt.Sprintf("%.60q", name),
			Want: nearest.OneOf(name, a.names)}
	}
	if err := a.d.Cannot(policyname.Of(name), a.s); err != nil {
		return wire.Errorf(wire.Unsupported, "%v", err)
	}
	return wire.Errorf(wire.Unsupported, "%s is not enabled on this server; it takes gymctl serve --advise %s", name, name)
}

// asked returns the budget of a request: the default of evaluations, or the server's most if that is less.
func (a *adviser) asked(v any, name string) (rollout.Budget, error) {
	b := rollout.Budget{Rollouts: min(rollout.DefaultConfig().Budget.Rollouts, a.Budget)}
	if v == nil {
		return b, nil
	}
	if policyname.Of(name).Ahead == policyname.None {
		return b, wire.Errorf(wire.BadRequest, "%s does not look ahead, so it takes no budget", name)
	}
	text := fmt.Sprint(v)
	b, err := rollout.ParseBudget(text)
	if err != nil || b.Rollouts > a.Budget || b.Time > a.Time {
		return b, &wire.Error{Code: wire.BadRequest, Msg: "budget", Got: fmt.Sprintf("%.40q", text),
			Want: fmt.Sprintf("1 to %d rollouts, or a time from 100us to %v, as this server allows", a.Budget, a.Time)}
	}
	return b, nil
}

// policy returns the policy called name, made when it is first asked for.
func (a *adviser) policy(name string, b rollout.Budget) (agents.Policy, error) {
	if m := a.model(name); m != nil {
		if p := a.plain[name]; p != nil {
			return p, nil
		}
		p, err := m.Policy(a.e.Spec())
		if err != nil {
			return nil, err
		}
		if n := int64(p.Bytes()); !a.account.Reserve(budget.Environments, n) {
			return nil, a.account.Refuse("playing "+name, n)
		}
		a.plain[name] = p
		return p, nil
	}
	base := policyname.Of(name).Base
	if policyname.Of(name).Ahead == policyname.None {
		if p := a.plain[base]; p != nil {
			return p, nil
		}
		r, _ := a.d.Rule(base)
		p, err := r.Policy(a.e)
		if err == nil {
			a.plain[base] = p
		}
		return p, err
	}
	old := a.ahead[base]
	if old != nil && old.budget == b {
		return old.policy, nil
	}
	j, ok := a.e.(*sched.Env)
	if !ok {
		return nil, fmt.Errorf("%s: an environment of type %T has no slots", name, a.e)
	}
	src, err := a.source(j)
	if err != nil {
		return nil, err
	}
	if old == nil { // a search with another budget takes its place
		if err := a.room(); err != nil {
			return nil, err
		}
	}
	cfg := rollout.DefaultConfig()
	cfg.Budget = b
	begin := time.Now()
	elapsed := func() time.Duration { return time.Since(begin) }
	p, err := rollout.NewActor(rollout.Setup{Config: cfg, Source: src, Workers: 1, Clock: elapsed}, base, j)
	if err != nil {
		return nil, err
	}
	a.ahead[base] = &searcher{b, p}
	return p, nil
}

// room reserves the memory of a search: a simulator that plays on, and its futures.
func (a *adviser) room() error {
	const ahead = 256 << 10
	bytes := int64(min(a.bytes, 1<<50)) + ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.account.Reserve(budget.Environments, bytes) {
		return a.account.Refuse("looking ahead", bytes)
	}
	return nil
}

// planned is an environment without the cluster simulator.
type planned interface {
	env.Env
	env.Snapshotter
	env.Renderer
	env.Painter
}

// plannedEnv is such an environment for remote players, with advice.
type plannedEnv struct {
	planned
	*adviser
}

// taskedEnv is one that is a family of tasks.
type taskedEnv struct {
	*plannedEnv
	env.Tasker
}

// Reset implements env.Env.
func (p *plannedEnv) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	p.begun = false
	return p.after(ts, p.planned.Reset(ctx, ep, ts))
}

// Step implements env.Env.
func (p *plannedEnv) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	return p.after(ts, p.planned.Step(ctx, a, ts))
}

// RestoreSnapshot implements env.Snapshotter.
func (p *plannedEnv) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	return p.after(ts, p.planned.RestoreSnapshot(src, ts))
}
