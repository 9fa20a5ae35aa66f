package envs

import (
	"context"
	"fmt"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/predictors"
	"clustergym/lab/workload"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Info describes an environment.
type Info struct {
	Spec   env.Spec
	Page   string  // Markdown
	Kwargs []Kwarg // its arguments; empty = none
}

// Describe describes the environment called id. set may change its arguments from their defaults; nil changes nothing.
// An unknown id and bad arguments are *fault.Mistakes.
func Describe(id string, set func(args *Args) error) (*Info, error) {
	d, err := Lookup(id)
	if err != nil {
		return nil, err
	}
	args := d.Args()
	if set != nil {
		if err := set(args); err != nil {
			return nil, err
		}
	}
	if err := args.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	src := &Source{Windows: noWorkload{}}
	if d.Takes.Cluster {
		if src.Cluster, err = workload.ClusterSpec(args.Cluster); err != nil {
			return nil, err
		}
	}
	e, err := d.Open(args.Settings, src, traces.Training)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	info := &Info{Spec: e.Spec(), Kwargs: args.Kwargs()}
	info.Page = d.page(args, info)
	return info, nil
}

// noWorkload is the workload of an environment that is made only to read its specification.
type noWorkload struct{}

// At implements sched.Windows.
func (noWorkload) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{}, fmt.Errorf("there is no workload")
}

// Offered implements sched.Offering.
func (noWorkload) Offered() float64 { return 1 }

// Jobs implements Windows.
func (noWorkload) Jobs(traces.Part) []traces.Job { return nil }

// Predictor implements sched.Foresight.
func (noWorkload) Predictor(est sim.Estimates) (predict.Maker, error) {
	return predictors.Maker(est, nil)
}

// RegistryConfig bounds what clients can ask a Registry for.
type RegistryConfig struct {
	// TraceRoot is the folder with the files that a client may name as trace.file and trace.profiles; "" = none. Clients
	// can always name public traces in the cache ("get:NAME").
	TraceRoot string
	// OwnFiles lets clients name any file that the process can read, by absolute paths: traces, throughput tables and
	// clusters. Errors then quote files. It is for a server whose only clients are its owner's; TraceRoot is not used.
	OwnFiles   bool
	CacheBytes int64 // of the cached workloads, roughly; those that environments use are kept in any case
	MaxJobs    int   // of one workload
	MaxGPUs    int   // of one cluster
	Advice     Advice
}

// DefaultRegistryConfig returns bounds of a million jobs and 131,072 GPUs, without files.
func DefaultRegistryConfig() RegistryConfig {
	return RegistryConfig{CacheBytes: 1 << 30, MaxJobs: 1_000_000, MaxGPUs: 1 << 17, Advice: DefaultAdvice()}
}

// Validate reports every fault but those of TraceRoot, which NewRegistry reports.
func (c *RegistryConfig) Validate() error {
	var l fault.List
	l.Add(c.CacheBytes >= 0, "cache_bytes", c.CacheBytes, "a number of bytes, 0 or more")
	l.Add(c.MaxJobs >= 1, "max_jobs", c.MaxJobs, "1 or more")
	l.Add(c.MaxGPUs >= 1, "max_gpus", c.MaxGPUs, "1 or more")
	l.Join("", c.Advice.Validate())
	return l.Err()
}

// Registry makes environments by id for untrusted clients: it bounds the files they can name and the resources they can
// use. Environments of one workload share it. Safe for concurrent use.
type Registry struct {
	cfg       RegistryConfig
	root      *traces.Files // opens what is below TraceRoot, nil = none
	workloads *workloadCache
	budget    *budget.Budget // nil = no limit
}

// NewRegistry returns a registry without cached workloads.
func NewRegistry(cfg RegistryConfig) (*Registry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	root, err := traceRoot(cfg.TraceRoot)
	if err != nil {
		return nil, err
	}
	return &Registry{cfg: cfg, root: root, workloads: newWorkloadCache(cfg.CacheBytes)}, nil
}

// UseBudget makes r reserve the memory of environments and of workloads in b. It is called before anything is made.
func (r *Registry) UseBudget(b *budget.Budget) {
	r.budget, r.workloads.budget = b, b
	b.Reclaim(r.workloads.free)
}

// Made is a set of equal, independent environments. They belong to the caller.
type Made struct {
	Envs []env.Env
	SHA  string         // of everything that decides episodes, in hexadecimal
	Meta map[string]any // describes the source of the episodes for people

	Account *budget.Account // what is reserved for the environments
	leave   func()          // of their workload
}

// Release gives back the memory of the environments, which must be closed. Releasing twice is harmless.
func (m *Made) Release() {
	m.Account.Release()
	m.leave()
}

// Make returns n environments called id. Faults of id or kwargs are *wire.Errors, and so is a lack of memory.
func (r *Registry) Make(ctx context.Context, id string, kwargs wire.Map, n int) (*Made, error) {
	if n < 1 {
		return nil, wire.Errorf(wire.BadRequest, "%d environments, want 1 or more", n)
	}
	d := Find(id)
	if d == nil {
		return nil, &wire.Error{Code: wire.UnknownEnv, Msg: unknownEnv(id).Error()}
	}
	if !d.HasSettings() && len(kwargs) > 0 {
		return nil, &wire.Error{Code: wire.BadKwargs, Msg: fmt.Sprintf("%s has no arguments", id),
			Got: fmt.Sprintf("%.60q", kwargs[0].Key)}
	}
	args, err := decodeArgs(d, kwargs)
	if err != nil {
		return nil, err
	}
	w, leave, err := r.borrow(ctx, args)
	if err != nil {
		return nil, err
	}
	m := &Made{Meta: map[string]any{}, Account: r.budget.Account(), leave: leave}
	whole := false
	defer func() { // of a panic too
		if !whole {
			for _, e := range m.Envs {
				_ = e.Close() // the error to report is the first
			}
			m.Release()
		}
	}()
	if err := m.fill(ctx, d, args, w, n, &r.cfg.Advice); err != nil {
		return nil, err
	}
	whole = true
	return m, nil
}

// scenario returns the SHA of the scenario of an environment with its defaults, without opening one.
func (r *Registry) scenario(ctx context.Context, d *Descriptor) (string, error) {
	args, err := decodeArgs(d, nil)
	if err != nil {
		return "", err
	}
	w, leave, err := r.borrow(ctx, args)
	if err != nil {
		return "", err
	}
	defer leave()
	return args.SHA(w)
}

// fill makes n environments. Their memory is reserved first.
func (m *Made) fill(ctx context.Context, d *Descriptor, args *Args, w *Workload, n int, advice *Advice) error {
	if err := w.has(args.part()); err != nil {
		return badKwargs(err)
	}
	if err := ReserveEnvs(m.Account, d.ID, n, d.Memory(args.Settings, w.Extent())); err != nil {
		return err
	}
	desk := &desk{Advice: *advice, d: d, s: args.Settings, account: m.Account, bytes: d.Memory(args.Settings, w.Extent())}
	desk.names = desk.list()
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		e, err := d.Open(args.Settings, w.Source, args.part())
		if err != nil {
			return badKwargs(err)
		}
		if i == 0 {
			desk.fitting(ctx, e.Spec())
		}
		m.Envs = append(m.Envs, d.served(e, args, desk))
		if i == 0 { // only an environment tells whether there is something to decide, and how long its time steps are
			if err := decides(ctx, d.ID, e); err != nil {
				return err
			}
			if err := ReserveEnvs(m.Account, d.ID, n, d.ownSteps(e.Spec())); err != nil {
				return err
			}
		}
	}
	var err error
	if m.SHA, err = args.SHA(w); err != nil {
		return err
	}
	if d.Simulated() || w.Recorded() {
		m.Meta = w.meta(args)
	}
	if len(desk.names) > 0 {
		m.Meta["advise"], m.Meta["budget"] = desk.names, desk.Budget
	}
	return nil
}

// decides returns the client's mistake if the workload of e has no window in which the agent has something to decide.
func decides(ctx context.Context, id string, e env.Env) error {
	x, ok := e.(sched.Decider)
	if !ok {
		return nil
	}
	some, err := x.Decides(ctx)
	if err == nil && !some {
		return wire.Errorf(wire.BadKwargs, "%s: %s", id, x.Undecided())
	}
	return err
}

// ReserveEnvs reserves the memory of n environments of so many bytes each.
func ReserveEnvs(a *budget.Account, id string, n int, each float64) error {
	bytes := int64(min(float64(n)*each, 1<<60))
	if a.Reserve(budget.Environments, bytes) {
		return nil
	}
	return a.Refuse(fmt.Sprintf("%s of %s", plain.Count(n, "environment", "environments"), id), bytes)
}

// served returns e for remote players.
func (d *Descriptor) served(e env.Env, args *Args, k *desk) env.Env {
	if a, ok := e.(sched.Arena); ok {
		return newServedEnv(k, a)
	}
	if p, ok := e.(planned); ok && k.on() && d.Scheduling() {
		s := &plannedEnv{planned: p, adviser: newAdviser(k, p)}
		if t, ok := e.(env.Tasker); ok {
			return &taskedEnv{s, t}
		}
		return s
	}
	return e
}

// meta describes the source of the episodes for people.
func (w *Workload) meta(args *Args) map[string]any {
	windows := map[string]any{}
	for part, name := range SplitNames {
		windows[name] = w.Count(traces.Part(part))
	}
	m := map[string]any{"split": args.Split, "workload": w.Info.String(), "split_windows": windows}
	if w.Taken != nil {
		m["cluster"], m["gpus"], m["left_out"] = args.Cluster, w.GPUs, w.Taken.Left.Jobs()
	}
	return m
}
