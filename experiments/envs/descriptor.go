package envs

import (
	"context"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/dagplace"
	"clustergym/env/metrics"
	"clustergym/env/sched"
	"clustergym/env/workerplace"
	"clustergym/experiments/workload"
	"clustergym/internal/nearest"
	"clustergym/traces"
)

// Settings are the configuration of one environment: a pointer to a plain struct with yaml tags. What is said of a key,
// a fault or a default holds for the command line, run directories and the bridge alike.
type Settings = configs.Validator

// Descriptor is everything that the rest of the program knows of an environment. From it follow the page (gymctl envs ID),
// the arguments of clients, --env and --set env.KEY, memory bounds, scenario hashes, windows to train on and to be judged
// on, and the table at the end.
type Descriptor struct {
	ID     string
	About  string // what the agent decides, in one sentence
	Preset string // the embedded run in which an agent learns it; "" = none
	Takes  Takes
	// Cluster and Trace are the defaults of those keys for an environment that takes them.
	Cluster string
	Trace   func() workload.TraceConfig
	// Settings returns the defaults, nil for an environment without settings.
	Settings func() Settings
	// Keys says of every setting what it can be and what it means. Keys of several environments stand in commonKeys.
	Keys map[string][2]string
	// Cut is what the environment takes of a workload of jobs.
	Cut func(s Settings) sched.Taken
	// Open makes an environment over part of src.
	Open func(s Settings, src *Source, part traces.Part) (env.Env, error)
	// Page is the environment's page in Markdown, but for the arguments.
	Page func(s Settings, spec env.Spec) string
	// Training returns the settings under which an agent with discount gamma trains, and Judged those under which policies
	// are compared; nil = as they are. They return a copy.
	Training func(s Settings, gamma float64) Settings
	Judged   func(s Settings) Settings
	// Rules act through the action space: RULE@slots. Random play is one of them.
	Rules []Rule
	// Planners decide with the whole instance in sight, for environments without a simulator's queue: PLANNER.
	Planners []Planner
	// Rivals are the policies with which agents are compared unless a run names others.
	Rivals []string
	// Metric is what comparisons count.
	Metric Metric
	// Whole says that comparisons end with one run over the whole test part unless a run says otherwise.
	Whole bool
	// lacks returns what the settings require of a job's model and the job does not have, "" for nothing.
	lacks func(s Settings, j *traces.Job) string
	// placement is the placement rule that the settings name.
	placement func(s Settings) string
	// memory is roughly how many bytes one environment takes apart from its time steps.
	memory func(s Settings, gpus int) float64
	// sha names everything but the jobs that decides episodes, where it is not the usual form.
	sha func(a *Args, spec cluster.Spec) (string, error)
}

// Takes says what an environment takes of what a user has.
type Takes struct {
	Jobs    bool // --trace: jobs with submit times and run times
	Cluster bool // --cluster
	Graphs  bool // --trace: task graphs
	Models  bool // jobs must name models; --set trace.mix draws them
}

// Trace says what --trace can be, "" = nothing.
func (t Takes) Trace() string {
	switch {
	case t.Graphs:
		return "task graphs: WfCommons, Alibaba, TPC-H or dag JSON, a file or a folder"
	case t.Models:
		return "jobs with submit times, run times, GPUs and models"
	case t.Jobs:
		return "jobs with submit times, run times and GPUs"
	}
	return ""
}

// Source is what an environment draws its episodes from, as far as it takes it. It is immutable and can be shared.
type Source struct {
	Cluster cluster.Spec
	Windows Windows
	Graphs  *dagplace.Workload    // nil = generated
	Workers *workerplace.Workload // nil = generated
}

// Windows is a workload of jobs in windows; *traces.Windows is the usual one.
type Windows interface {
	sched.Windows
	Jobs(p traces.Part) []traces.Job
}

// Rule is a simple policy that acts through the action space of one environment.
type Rule struct {
	Name, About string
	Draws       bool // at random: it is played once for each of eval.seeds
	Estimates   bool // it ranks by run times, which estimates: none hides
	// Policy returns the rule for e alone; batches must have one row, e's current time step.
	Policy func(e env.Env) (agents.Policy, error)
}

// Planner is a rival that sees the whole instance at once and does not act step by step.
type Planner struct {
	Name  string
	Draws bool // at random
	// Score is the descriptor's metric for episode ep of e.
	Score func(ctx context.Context, e env.Env, ep env.Episode) (float64, error)
}

// Metric is what comparisons in an environment count.
type Metric struct {
	Key    string // in JSON and best.json: "jct_s"
	Title  string // in tables: "mean JCT"
	Unit   string // "s" = seconds, shown as minutes, hours or days; "" = a number
	Higher bool   // is better
	// Of is the metric of one episode: from the summary of its jobs where a simulator was watched, else nil, and from the
	// info of the last time step where a policy acted through the environment, else nil. NaN = it does not apply.
	Of func(s *metrics.Summary, info []float64) float64
}

// JCT is the mean job completion time of a simulated window.
var JCT = Metric{Key: "jct_s", Title: "mean JCT", Unit: "s", Of: func(s *metrics.Summary, _ []float64) float64 { return s.JCT.Mean }}

// descriptors are all that are registered, in the order of gymctl envs.
var descriptors = slices.Concat(scheduling, planning, problems())

// IDs returns the ids of the registered environments: those over jobs, those over task graphs and workers, then the
// problems with known answers.
func IDs() []string {
	ids := make([]string, len(descriptors))
	for i, d := range descriptors {
		ids[i] = d.ID
	}
	return ids
}

// Find returns the descriptor of the environment called id, nil if there is none.
func Find(id string) *Descriptor {
	if i := slices.IndexFunc(descriptors, func(d *Descriptor) bool { return d.ID == id }); i >= 0 {
		return descriptors[i]
	}
	return nil
}

// Lookup is Find; an unknown id is an *InputError.
func Lookup(id string) (*Descriptor, error) {
	if d := Find(id); d != nil {
		return d, nil
	}
	return nil, unknownEnv(id)
}

func unknownEnv(id string) error {
	if near := nearest.Name(id, IDs()); near != "" {
		return workload.Mistake("environment %q is unknown; did you mean %s?", id, near)
	}
	return workload.Mistake("environment %q is unknown; there are %s", id, strings.Join(IDs(), ", "))
}

// Simulated says whether episodes run on the cluster simulator: then whole-queue schedulers can play them too.
func (d *Descriptor) Simulated() bool { return d.Cut != nil }

// Scheduling says whether the environment is one of scheduling, with rivals and a metric of its own, and not a problem
// with a known answer.
func (d *Descriptor) Scheduling() bool { return d.Metric.Of != nil }

// HasSettings says whether the environment can be configured.
func (d *Descriptor) HasSettings() bool { return d.Settings != nil }

// Placement returns the placement rule that the settings name, "" where the environment has none to name.
func (d *Descriptor) Placement(s Settings) string {
	if d.placement == nil {
		return ""
	}
	return d.placement(s)
}

// TraceKeys returns what of t the environment takes, to be written to config.yaml: nil where that is nothing or t names
// no file.
func (d *Descriptor) TraceKeys(t workload.TraceConfig) any {
	switch {
	case t.File == "":
		return nil
	case d.Takes.Graphs:
		return struct {
			File string `yaml:"file"`
		}{t.File}
	case d.Takes.Models:
		return struct {
			File      string `yaml:"file"`
			Format    string `yaml:"format"`
			Sort      bool   `yaml:"sort"`
			Skip      int    `yaml:"skip"`
			Jobs      int    `yaml:"jobs"`
			Seed      uint64 `yaml:"seed"`
			Profiles  string `yaml:"profiles"`
			Reference string `yaml:"reference"`
			Mix       string `yaml:"mix"`
		}{t.File, t.Format, t.Sort, t.Skip, t.Jobs, t.Seed, t.Profiles, t.Reference, t.Mix}
	}
	return nil
}

// Rule returns the rule called name; ok is false if there is none.
func (d *Descriptor) Rule(name string) (r Rule, ok bool) {
	if i := slices.IndexFunc(d.Rules, func(r Rule) bool { return r.Name == name }); i >= 0 {
		return d.Rules[i], true
	}
	return Rule{}, false
}

// RuleNames returns the names of the rules.
func (d *Descriptor) RuleNames() []string {
	names := make([]string, len(d.Rules))
	for i, r := range d.Rules {
		names[i] = r.Name
	}
	return names
}

// Memory is roughly how many bytes one environment takes, with gpus GPUs in its cluster, apart from its time steps.
func (d *Descriptor) Memory(s Settings, gpus int) float64 {
	const little = 16 << 10
	if d.memory == nil {
		return little
	}
	return d.memory(s, gpus) + little
}

// StepBytes is the memory that the time steps of one environment in a vector take: the batch before a step and the one
// after it, final observations, and the environment's own.
func StepBytes(spec env.Spec) float64 {
	return 6 * (4*float64(spec.ObsLen()) + float64(spec.MaskLen()))
}

// windowBytes is the memory of a simulator with so many jobs in a window and GPUs in its cluster.
func windowBytes(jobs, gpus int) float64 { return 450*float64(jobs) + 400*float64(gpus) }
