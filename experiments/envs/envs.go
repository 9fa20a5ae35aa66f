package envs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/bridge/wire"
	"clustergym/env/control"
	"clustergym/env/jobselect"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/traces"
)

// EnvIDs are the registered environments: JobSelect-v1, the others over a workload, those with settings of their own,
// then the problems with known answers.
func IDs() []string {
	return slices.Concat([]string{jobselect.ID}, stagedIDs(), SettledIDs(), control.IDs())
}

// EnvInfo is what is known of an environment without making one that plays.
type Info struct {
	Spec   env.Spec
	Page   string  // Markdown
	Kwargs []Kwarg // what it can be asked for with; empty = nothing
}

// DescribeEnv describes the environment called id. Where it has arguments, set may change them, from their defaults;
// nil changes nothing. args is a pointer to the arguments of that environment, *JobSelectArgs for JobSelect-v1. An unknown
// id and bad arguments are *InputErrors.
func Describe(id string, set func(args configs.Validator) error) (*Info, error) {
	if s := settled(id); s != nil {
		return s.describe(set)
	}
	if args := Staged(id); args != nil {
		return describeStaged(args, set)
	}
	if id == jobselect.ID {
		args := DefaultJobSelectArgs()
		if set != nil {
			if err := set(&args); err != nil {
				return nil, err
			}
		}
		if err := args.Validate(); err != nil {
			return nil, &workload.InputError{Err: err}
		}
		spec, err := workload.ClusterSpec(args.Cluster)
		if err != nil {
			return nil, err
		}
		e, err := jobselect.New(args.Config, spec, noWorkload{}, traces.Training)
		if err != nil {
			return nil, &workload.InputError{Err: err}
		}
		defer e.Close() //nolint:errcheck // it holds nothing
		info := &Info{Spec: e.Spec(), Kwargs: args.kwargs()}
		info.Page = jobselect.Page(args.Config, info.Spec) + workloadSection(info.Kwargs)
		return info, nil
	}
	e, err := control.New(id)
	if err != nil {
		return nil, unknownEnv(id)
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	return &Info{Spec: e.Spec(), Page: control.Page(id), Kwargs: []Kwarg{}}, nil
}

func unknownEnv(id string) error {
	if near := nearest.Name(id, IDs()); near != "" {
		return workload.Mistake("environment %q is unknown; did you mean %s?", id, near)
	}
	return workload.Mistake("environment %q is unknown; there are %s", id, strings.Join(IDs(), ", "))
}

// noWorkload stands where an environment that is only asked for its spaces wants a workload.
type noWorkload struct{}

// At implements sched.Windows.
func (noWorkload) At(traces.Part, uint64, int) (warm, counted []traces.Job, first int, err error) {
	return nil, nil, 0, fmt.Errorf("there is no workload")
}

// workloadSection is what a page says of the arguments that are not the environment's own.
func workloadSection(kwargs []Kwarg) string {
	var b strings.Builder
	b.WriteString("\n## Workload, cluster and part\n\n")
	b.WriteString("Arguments of gymctl serve's clients, beside those above. Where several environments have the same ones, they share\none workload.\n\n")
	b.WriteString("| key | here | values | meaning |\n|---|---|---|---|\n")
	for _, k := range kwargs {
		if k.workload {
			fmt.Fprintf(&b, "| %s | %v | %s | %s |\n", k.Name, k.Default, strings.ReplaceAll(k.Want, "|", "/"), k.Doc)
		}
	}
	return b.String()
}

// RegistryConfig bounds what strangers can ask a Registry for.
type RegistryConfig struct {
	// TraceRoot is the folder below which the files lie that a client may name as trace.file and trace.profiles; ""
	// = none. Public traces in the cache ("get:NAME") can always be named.
	TraceRoot  string
	CacheBytes int64 // of the workloads kept for later, roughly; those in use are kept by their environments
	MaxJobs    int   // of one workload
	MaxGPUs    int   // of one cluster
	OpenBytes  int64 // of the environments of one Make, roughly
}

// DefaultRegistryConfig takes no files, workloads of a million jobs and clusters of 131,072 GPUs.
func DefaultRegistryConfig() RegistryConfig {
	return RegistryConfig{CacheBytes: 1 << 30, MaxJobs: 1_000_000, MaxGPUs: 1 << 17, OpenBytes: 4 << 30}
}

// Validate reports every fault but those of TraceRoot, which NewRegistry finds.
func (c *RegistryConfig) Validate() error {
	var l fault.List
	l.Add(c.CacheBytes >= 0, "cache_bytes", c.CacheBytes, "a number of bytes, 0 or more")
	l.Add(c.MaxJobs >= 1, "max_jobs", c.MaxJobs, "1 or more")
	l.Add(c.MaxGPUs >= 1, "max_gpus", c.MaxGPUs, "1 or more")
	l.Add(c.OpenBytes >= 1, "open_bytes", c.OpenBytes, "1 or more")
	return l.Err()
}

// Registry makes environments by id, for people who may be strangers: what they can name and how much they can ask
// for is bounded. Environments of one workload share it. Safe for concurrent use.
type Registry struct {
	cfg    RegistryConfig
	root   string // TraceRoot without links, "" = none
	worlds *worldCache
}

// NewRegistry returns a registry with nothing in memory yet.
func NewRegistry(cfg RegistryConfig) (*Registry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	root, err := traceRoot(cfg.TraceRoot)
	if err != nil {
		return nil, err
	}
	return &Registry{cfg: cfg, root: root, worlds: newWorldCache(cfg.CacheBytes)}, nil
}

// Made is a set of equal, independent environments. They belong to the caller.
type Made struct {
	Envs []env.Env
	SHA  string         // of everything that decides episodes, in hexadecimal
	Meta map[string]any // for people: where the episodes come from
}

// Make returns n environments called id. What is wrong with id or kwargs is a *wire.Error that says so.
func (r *Registry) Make(ctx context.Context, id string, kwargs wire.Map, n int) (*Made, error) {
	if n < 1 {
		return nil, wire.Errorf(wire.BadRequest, "%d environments, want 1 or more", n)
	}
	if id == jobselect.ID {
		return r.jobSelect(ctx, kwargs, n)
	}
	if s := settled(id); s != nil {
		return s.make(r, kwargs, n)
	}
	if args := Staged(id); args != nil {
		return r.makeStaged(ctx, id, args, kwargs, n)
	}
	m := &Made{SHA: ScenarioSHA(id, "", nil), Meta: map[string]any{}}
	for range n {
		e, err := control.New(id)
		if err != nil {
			return nil, &wire.Error{Code: wire.UnknownEnv, Msg: unknownEnv(id).Error()}
		}
		if len(kwargs) > 0 {
			return nil, &wire.Error{Code: wire.BadKwargs, Msg: fmt.Sprintf("%s has no arguments", id), Got: fmt.Sprintf("%.60q", kwargs[0].Key)}
		}
		m.Envs = append(m.Envs, e)
	}
	return m, nil
}

// jobSelect makes environments of JobSelect-v1.
func (r *Registry) jobSelect(ctx context.Context, kwargs wire.Map, n int) (*Made, error) {
	args, err := decodeArgs(kwargs)
	if err != nil {
		return nil, err
	}
	w, err := r.world(ctx, &args)
	if err != nil {
		return nil, err
	}
	m := &Made{}
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := jobselect.New(args.Config, w.Cluster, w.workload.Windows, args.part())
		if err != nil {
			return nil, badKwargs(err)
		}
		if m.Envs == nil {
			if size := int64(n) * envMemory(&args, w, e.Spec()); size > r.cfg.OpenBytes {
				return nil, &wire.Error{Code: wire.TooLarge, Msg: "environments of this size",
					Got:  fmt.Sprintf("%d that take about %d MiB", n, size>>20),
					Want: fmt.Sprintf("at most %d MiB; fewer, or with a smaller cluster or window", r.cfg.OpenBytes>>20)}
			}
		}
		m.Envs = append(m.Envs, NewServedEnv(e, args.Estimates))
	}
	if m.SHA, err = args.Sha(w); err != nil {
		return nil, err
	}
	windows := map[string]any{}
	for part, name := range SplitNames {
		windows[name] = w.workload.Windows.Count(traces.Part(part))
	}
	m.Meta = map[string]any{
		"split": args.Split, "cluster": args.Cluster, "gpus": w.gpus, "workload": w.info.String(),
		"left_out": w.workload.Large + w.workload.Workless, "split_windows": windows,
	}
	return m, nil
}

// envMemory is roughly the memory that one environment takes: its window's jobs, the cluster's books, and what a
// vector of them keeps of observations.
func envMemory(args *JobSelectArgs, w *World, s env.Spec) int64 {
	return int64(args.Window+args.Warm)*450 + int64(w.gpus)*400 + int64(s.ObsLen())*16 + 16<<10
}
