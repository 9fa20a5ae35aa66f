package envs

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/bridge/wire"
	"clustergym/env/cluster"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// Stage is what the episodes of an environment are drawn from: a workload on a cluster, and a part of it.
type Stage struct {
	Cluster string               `yaml:"cluster"` // see ClusterForms
	Trace   workload.TraceConfig `yaml:"trace"`
	Split   string               `yaml:"split"` // the part that episodes are of: a value of env.Episode.Split
}

func (s *Stage) check(l *fault.List) {
	l.Add(s.Cluster != "", "cluster", s.Cluster, workload.ClusterForms)
	l.Join("trace", s.Trace.Validate())
	l.Add(slices.Contains(SplitNames[:], s.Split), "split", s.Split, "one of "+strings.Join(SplitNames[:], ", "))
}

// stagedArgs are the arguments of an environment over a workload other than JobSelect-v1: a pointer to a struct of its
// own configuration and a Stage.
type stagedArgs interface {
	configs.Validator
	stage() *Stage
	// takes is what of a workload the environment takes, and how it is cut.
	takes() jobselect.Config
	Open(spec cluster.Spec, w stagedJobs, part traces.Part) (env.Env, error)
	page(s env.Spec) string
	words() map[string][2]string // of arguments that argWords does not know
}

// stagedJobs is the workload that staged environments get.
type stagedJobs interface {
	At(p traces.Part, seed uint64, window int) (warm, counted []traces.Job, first int, err error)
	Jobs(p traces.Part) []traces.Job
}

// stagedEnvs are those that are registered, sorted, with their default arguments.
var stagedEnvs = []struct {
	id   string
	args func() stagedArgs
}{
	{delayoffer.ID, func() stagedArgs {
		a := DefaultDelayOfferArgs()
		return &a
	}},
	{gpupick.ID, func() stagedArgs {
		return &GPUPickArgs{gpupick.DefaultConfig(), Stage{Cluster: "topdrl-2x4x4", Trace: workload.DefaultTraceConfig(), Split: env.SplitTrain}}
	}},
	{policymix.ID, func() stagedArgs {
		return &PolicyMixArgs{policymix.DefaultConfig(), Stage{Cluster: "topdrl-2x4x4", Trace: workload.DefaultTraceConfig(), Split: env.SplitTrain}}
	}},
	{queuerank.ID, func() stagedArgs {
		t := workload.DefaultTraceConfig()
		t.Synth.Profile, t.Synth.Procs = "hpc", 256
		return &QueueRankArgs{queuerank.DefaultConfig(), Stage{Cluster: "pool:256", Trace: t, Split: env.SplitTrain}}
	}},
}

// GPUPickArgs are the arguments of GPUPick-v1.
type GPUPickArgs struct {
	gpupick.Config `yaml:",inline"`
	Stage          `yaml:",inline"`
}

// Validate reports every fault. Whether files are there is not looked at.
func (a *GPUPickArgs) Validate() error {
	var l fault.List
	l.Join("", a.Config.Validate())
	a.check(&l)
	return l.Err()
}

func (a *GPUPickArgs) stage() *Stage { return &a.Stage }

func (a *GPUPickArgs) takes() jobselect.Config {
	c := jobselect.DefaultConfig()
	c.Window, c.Warm, c.MaxGPUs, c.Estimates = a.Window, 0, a.MaxGPUs, a.Estimates
	return c
}

func (a *GPUPickArgs) Open(spec cluster.Spec, w stagedJobs, part traces.Part) (env.Env, error) {
	return gpupick.New(a.Config, spec, w, part)
}

func (a *GPUPickArgs) page(s env.Spec) string { return gpupick.Page(a.Config, s) }

func (a *GPUPickArgs) words() map[string][2]string {
	return map[string][2]string{
		"gamma": {"above 0, up to 1", "discount of a step"},
		"idle":  {"true or false", "whether the agent may let a job wait"},
	}
}

// QueueRankArgs are the arguments of QueueRank-v1.
type QueueRankArgs struct {
	queuerank.Config `yaml:",inline"`
	Stage            `yaml:",inline"`
}

// Validate reports every fault. Whether files are there is not looked at.
func (a *QueueRankArgs) Validate() error {
	var l fault.List
	l.Join("", a.Config.Validate())
	a.check(&l)
	return l.Err()
}

func (a *QueueRankArgs) stage() *Stage { return &a.Stage }

func (a *QueueRankArgs) takes() jobselect.Config {
	c := jobselect.DefaultConfig()
	c.Window, c.Warm, c.Estimates = a.Window, 0, a.Estimates
	c.MaxGPUs = a.MaxGPUs
	return c
}

func (a *QueueRankArgs) Open(spec cluster.Spec, w stagedJobs, part traces.Part) (env.Env, error) {
	return queuerank.New(a.Config, spec, w, w.Jobs(traces.Training), part)
}

func (a *QueueRankArgs) page(s env.Spec) string { return queuerank.Page(a.Config, s) }

func (a *QueueRankArgs) words() map[string][2]string {
	return map[string][2]string{
		"gamma":     {"above 0, up to 1", "discount of a step"},
		"max_gpus":  {"1 to 1048576", "larger jobs are left out of the workload"},
		"visible":   {"1 to 4096", "jobs that the agent sees and can choose"},
		"placement": {"first-fit, best-fit, …", "which GPUs a job gets"},
		"backfill":  {"none; easy, on counters", "what may start while the chosen job waits"},
		"estimates": {"exact, trace or noisy:SIGMA", "what is known of run times"},
		"metric":    {strings.Join(queuerank.Metrics(), ", "), "what the return is made of"},
		"reward":    {"relative, minus or dense", "against a base order, as it is, or job by job"},
		"base":      {"fifo, sjf, f1, smallest, area", "the order to which relative refers"},
		"filter":    {"true or false", "draw training windows again that SJF finds too easy or too hard"},
	}
}

// PolicyMixArgs are the arguments of PolicyMix-v1.
type PolicyMixArgs struct {
	policymix.Config `yaml:",inline"`
	Stage            `yaml:",inline"`
}

// Validate reports every fault. Whether files are there is not looked at.
func (a *PolicyMixArgs) Validate() error {
	var l fault.List
	l.Join("", a.Config.Validate())
	a.check(&l)
	return l.Err()
}

func (a *PolicyMixArgs) stage() *Stage { return &a.Stage }

func (a *PolicyMixArgs) takes() jobselect.Config {
	c := jobselect.DefaultConfig()
	c.Config, c.MaxGPUs = a.Config.Config, a.MaxGPUs
	return c
}

func (a *PolicyMixArgs) Open(spec cluster.Spec, w stagedJobs, part traces.Part) (env.Env, error) {
	return policymix.New(a.Config, spec, w, part)
}

func (a *PolicyMixArgs) page(s env.Spec) string { return policymix.Page(a.Config, s) }

func (a *PolicyMixArgs) words() map[string][2]string {
	return map[string][2]string{
		"hold":      {"a time above 0s", "how long a choice holds at least"},
		"estimates": {"exact, trace or noisy:SIGMA", "what is known of run times"},
		"reward":    {strings.Join(reward.Names(), ", "), "what is paid"},
	}
}

// stagedIDs are the names of the staged environments.
func stagedIDs() []string {
	var ids []string
	for _, e := range stagedEnvs {
		ids = append(ids, e.id)
	}
	return ids
}

// staged are the default arguments of the staged environment called id, nil where there is none.
func Staged(id string) stagedArgs {
	for _, e := range stagedEnvs {
		if e.id == id {
			return e.args()
		}
	}
	return nil
}

// HasCluster says whether the environment called id has a cluster.
func HasCluster(id string) bool { return id == jobselect.ID || Staged(id) != nil }

// SetCluster changes the cluster in the arguments that DescribeEnv's set gets, where they have one.
func SetCluster(args configs.Validator, name string) {
	switch a := args.(type) {
	case *JobSelectArgs:
		a.Cluster = name
	case stagedArgs:
		a.stage().Cluster = name
	}
}

// stagedMaker loads the workload that args name, and makes any number of environments over its training part.
func stagedMaker(args stagedArgs) (func() (env.Env, error), error) {
	st, takes := args.stage(), args.takes()
	spec, err := workload.ClusterSpec(st.Cluster)
	if err != nil {
		return nil, err
	}
	jobs, info, err := workload.LoadTrace(st.Trace)
	if err != nil {
		return nil, err
	}
	w, err := sched.Take(sched.Taken{MaxGPUs: takes.MaxGPUs, Window: takes.Window, Warm: takes.Warm, Estimates: takes.Estimates}, spec, jobs)
	if err != nil {
		return nil, &workload.InputError{Err: fmt.Errorf("%s: %w", info.File, err)}
	}
	return func() (env.Env, error) { return args.Open(spec, w.Windows, traces.Training) }, nil
}

// emptyStage stands where an environment that is only asked for its spaces wants a workload.
type emptyStage struct{ noWorkload }

func (emptyStage) Jobs(traces.Part) []traces.Job { return nil }

// describeStaged is DescribeEnv.
func describeStaged(args stagedArgs, set func(args configs.Validator) error) (*Info, error) {
	if set != nil {
		if err := set(args); err != nil {
			return nil, err
		}
	}
	if err := args.Validate(); err != nil {
		return nil, &workload.InputError{Err: err}
	}
	spec, err := workload.ClusterSpec(args.stage().Cluster)
	if err != nil {
		return nil, err
	}
	e, err := args.Open(spec, emptyStage{}, traces.Training)
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	defer e.Close() //nolint:errcheck // it holds nothing
	kwargs := stagedKwargs(args)
	return &Info{Spec: e.Spec(), Page: args.page(e.Spec()) + workloadSection(kwargs), Kwargs: kwargs}, nil
}

func stagedKwargs(args stagedArgs) []Kwarg {
	words := maps.Clone(argWords)
	maps.Copy(words, args.words())
	all := kwargsOf(args, words)
	from := reflect.ValueOf(args).Elem().FieldByName("Stage").Addr().Interface().(*Stage)
	own := map[string]bool{}
	walkKeys(reflect.ValueOf(from).Elem(), "", func(path string, _ reflect.Value) { own[path] = true })
	for i := range all {
		all[i].workload = own[all[i].Name]
	}
	return all
}

// makeStaged is Registry.Make.
func (r *Registry) makeStaged(ctx context.Context, id string, args stagedArgs, kwargs wire.Map, n int) (*Made, error) {
	if err := graftArgs(kwargs, args); err != nil {
		return nil, err
	}
	st, takes := args.stage(), args.takes()
	w, err := r.world(ctx, &JobSelectArgs{Config: takes, Cluster: st.Cluster, Trace: st.Trace, Split: st.Split})
	if err != nil {
		return nil, err
	}
	part := traces.Part(slices.Index(SplitNames[:], st.Split))
	m := &Made{}
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := args.Open(w.Cluster, w.workload.Windows, part)
		if err != nil {
			return nil, badKwargs(err)
		}
		if size := int64(n) * (int64(takes.Window+takes.Warm)*450 + int64(w.gpus)*400 + int64(e.Spec().ObsLen())*16 + 16<<10); m.Envs == nil && size > r.cfg.OpenBytes {
			return nil, &wire.Error{Code: wire.TooLarge, Msg: "environments of this size",
				Got:  fmt.Sprintf("%d that take about %d MiB", n, size>>20),
				Want: fmt.Sprintf("at most %d MiB; fewer, or with a smaller cluster or window", r.cfg.OpenBytes>>20)}
		}
		m.Envs = append(m.Envs, e)
	}
	text, err := stagedText(args, w.Cluster)
	if err != nil {
		return nil, err
	}
	m.SHA = ScenarioSHA(id, text, w.Jobs[:])
	windows := map[string]any{}
	for part, name := range SplitNames {
		windows[name] = w.workload.Windows.Count(traces.Part(part))
	}
	m.Meta = map[string]any{
		"split": st.Split, "cluster": st.Cluster, "gpus": w.gpus, "workload": w.info.String(),
		"left_out": w.workload.Large + w.workload.Workless, "split_windows": windows,
	}
	return m, nil
}

// stagedText names all but the jobs that decides the episodes: wherever these come from, the trace's settings do not.
func stagedText(args stagedArgs, spec cluster.Spec) (string, error) {
	spec.Name = "" // it decides nothing
	own := *args.stage()
	args.stage().Cluster, args.stage().Trace = "", workload.TraceConfig{}
	defer func() { *args.stage() = own }()
	text, err := configs.Encode(args)
	if err != nil {
		return "", err
	}
	hardware, err := configs.Encode(spec)
	return string(text) + string(hardware), err
}
