package envs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"clustergym/agents"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/dagplace"
	"clustergym/env/sched"
	"clustergym/env/workerplace"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// Settings are the configuration of one environment: a pointer to a plain struct with yaml tags. The command line, run
// directories and the bridge use the same keys, defaults and faults.
type Settings = configs.Validator

// Descriptor is everything that the rest of the program knows of an environment: its page (gymctl envs ID), the
// arguments of clients, --env and --set env.KEY, memory bounds, scenario hashes, windows for training and evaluation,
// and the table at the end follow from it.
type Descriptor struct {
	ID     string
	About  string // what the agent decides, in one sentence
	Preset string // the embedded run in which an agent learns it; "" = none
	Takes  Takes
	// Cluster and Trace are the defaults of those keys if the environment takes them.
	Cluster string
	Trace   func() workload.TraceConfig
	// Settings returns the defaults, nil for an environment without settings.
	Settings func() Settings
	// Cut returns which jobs of a workload the environment takes.
	Cut func(s Settings) sched.Taken
	// MostGPUs returns the largest max_gpus that follows from a workload (Fit), nil = 1024. Users may set more.
	MostGPUs func(s Settings) int
	whyMost  string // why it is not more
	// busy reports whether jobs compete at a decision, for an environment whose legal actions do not tell; nil = they do.
	busy func(e sched.Arena) bool
	// Open returns an environment over one part of src.
	Open func(s Settings, src *Source, part traces.Part) (env.Env, error)
	// Page returns the environment's page in Markdown, without the arguments.
	Page func(s Settings, spec env.Spec) string
	// Training returns a copy of the settings for training an agent with discount gamma, and Judged a copy for comparisons
	// of policies; nil = the settings as they are.
	Training func(s Settings, gamma float64) Settings
	Judged   func(s Settings) Settings
	// Streamed returns a copy of settings of comparisons for streams, whose episodes are sched.Streamed; nil = the
	// environment has no workload on the simulator.
	Streamed func(s Settings) Settings
	// Rules act through the action space: RULE@slots. Random play is one of them.
	Rules []Rule
	// written returns what plays an order that is written out through the action space; nil = nothing does.
	written func(order string, e env.Env) (agents.Policy, error)
	// Planners see the whole instance when they decide; for environments without a queue of the simulator: PLANNER.
	Planners []Planner
	// Rivals are the policies that agents are compared with by default; StopRivals, where actions can stop running jobs.
	Rivals, StopRivals []string
	// Metric is the quantity that comparisons use.
	Metric Metric
	// Ongoing says that episodes are stretches of a cluster in operation (sched.Ongoing), so that comparisons play streams
	// by default.
	Ongoing bool
	// Whole is whether comparisons end with one run over the whole test part by default.
	Whole bool
	// lacks returns what a job's model lacks under the settings, "" for nothing.
	lacks func(s Settings, j *traces.Job) string
	// mix is the mix from which Fit draws models for jobs that lack one; "" = none.
	mix string
	// stops returns whether actions can stop running jobs under the settings; nil = they cannot.
	stops func(s Settings) bool
	// price says in words what a stop of a job costs under the settings, "" = nothing; nil = nothing.
	price func(s Settings) string
	// placement returns the placement rule in the settings.
	placement func(s Settings) string
	// memory returns an upper bound on the bytes that one environment takes, without its time steps (memory.go).
	memory func(s Settings, x Extent) float64
	// record loads the task graphs or jobs of a file into w, for environments over these. t has the paths of files, shown
	// their names in messages.
	record func(ctx context.Context, w *Workload, s Settings, t, shown workload.TraceConfig) error
	// sha returns the text of everything but the jobs that decides episodes, if its form is not the usual one.
	sha func(a *Args, spec cluster.Spec) (string, error)
	// older returns the settings of QueueRank-v1 that play the same episodes, which had no id of their own once. Scenario
	// hashes are those of the older form.
	older func(s Settings) Settings
}

// Takes says which inputs of a user the environment takes.
type Takes struct {
	Jobs    bool // --trace: jobs with submit times and run times
	Cluster bool // --cluster
	Graphs  bool // --trace: task graphs
	Models  bool // jobs must name models; --set trace.mix draws them
}

// Trace returns what --trace can be, "" for nothing.
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

// Source is where an environment draws its episodes from. It is immutable and can be shared.
type Source struct {
	Cluster cluster.Spec
	Windows Windows
	Graphs  *dagplace.Workload    // nil = generated
	Workers *workerplace.Workload // nil = generated
}

// Windows is a workload of jobs cut into windows, usually a *traces.Windows.
type Windows interface {
	sched.Windows
	Jobs(p traces.Part) []traces.Job
}

// Rule is a simple policy that acts through the action space of one environment.
type Rule struct {
	Name, About string
	Draws       bool // at random: it is played once for each of eval.seeds
	Estimates   bool // it ranks by run times, which estimates: none hides
	Stops       bool // it stops running jobs, so actions must be able to (Descriptor.Stops)
	Knows       bool // it knows what no agent sees, so it is a measure of what could be had and no rival
	// Policy returns the rule for e alone; batches must have one row, the current time step of e.
	Policy func(e env.Env) (agents.Policy, error)
}

// Planner is a rival that sees the whole instance at once and does not act step by step.
type Planner struct {
	Name  string
	Draws bool // at random
	// Score returns the descriptor's metric for episode ep of e.
	Score func(ctx context.Context, e env.Env, ep env.Episode) (float64, error)
}

// Metric is the quantity that comparisons in an environment use.
type Metric struct {
	Key    string // in JSON and best.json: "jct_s"
	Title  string // in tables: "mean JCT"
	Unit   string // "s" = seconds, shown as minutes, hours or days; "" = a number
	Higher bool   // higher values are better
	// Of returns the metric of one episode. s is the summary of its jobs, nil without a simulator; info is that of the
	// last time step, nil if no policy acted through the environment. NaN = the metric does not apply.
	Of func(s *metrics.Summary, info []float64) float64
}

// JCT is the mean job completion time of a simulated window.
var JCT = Metric{Key: "jct_s", Title: "mean JCT", Unit: "s",
	Of: func(s *metrics.Summary, _ []float64) float64 { return s.JCT.Mean }}

// descriptors are all registered environments in the order of gymctl envs.
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

// Lookup is Find, but an unknown id is a *fault.Mistake.
func Lookup(id string) (*Descriptor, error) {
	if d := Find(id); d != nil {
		return d, nil
	}
	return nil, unknownEnv(id)
}

func unknownEnv(id string) error {
	if near := nearest.Name(id, IDs()); near != "" {
		return fault.Mistakef("environment %q is unknown; did you mean %s?", id, near)
	}
	return fault.Mistakef("environment %q is unknown; there are %s", id, strings.Join(IDs(), ", "))
}

// HasChoice reports whether the decision at ts of e is one: more than one action is legal besides doing nothing. Where
// there are two actions in all, both must be legal.
func (d *Descriptor) HasChoice(e sched.Arena, ts *env.TimeStep) bool {
	spec := e.Spec()
	legal := 0
	for a, ok := range ts.Mask {
		if ok && (a != spec.NoOp || len(ts.Mask) == 2) {
			legal++
		}
	}
	return legal > 1 && (d.busy == nil || d.busy(e))
}

// Simulated returns whether episodes run on the cluster simulator, so that whole-queue schedulers can play them too.
func (d *Descriptor) Simulated() bool { return d.Cut != nil }

// Scheduling returns whether the environment is a scheduling problem, with rivals and a metric, and not a problem with
// a known answer.
func (d *Descriptor) Scheduling() bool { return d.Metric.Of != nil }

// HasSettings returns whether the environment can be configured.
func (d *Descriptor) HasSettings() bool { return d.Settings != nil }

// Stops returns whether actions can stop running jobs under settings s.
func (d *Descriptor) Stops(s Settings) bool { return d.stops != nil && d.stops(s) }

// Price says in words what a stop of a running job costs under settings s, "" for nothing.
func (d *Descriptor) Price(s Settings) string {
	if d.price == nil {
		return ""
	}
	return d.price(s)
}

// RivalsUnder returns the policies that agents are compared with by default under settings s.
func (d *Descriptor) RivalsUnder(s Settings) []string {
	if d.Stops(s) {
		return d.StopRivals
	}
	return d.Rivals
}

// Placement returns the placement rule in the settings, "" if they have none.
func (d *Descriptor) Placement(s Settings) string {
	if d.placement == nil {
		return ""
	}
	return d.placement(s)
}

// TraceKeys returns the keys of t that the environment takes, for config.yaml; nil if it takes none or t names no file.
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
	if d.written != nil && schedulers.Written(name) {
		return Rule{Name: name, About: "the visible job of the least key", Estimates: schedulers.Estimating(name),
			Policy: func(e env.Env) (agents.Policy, error) { return d.written(name, e) }}, true
	}
	if i := slices.IndexFunc(d.Rules, func(r Rule) bool { return r.Name == name }); i >= 0 {
		return d.Rules[i], true
	}
	return Rule{}, false
}

// CheckWritten says in one sentence why a written order cannot play in the environment, over the whole queue or through
// the action space; nil = it can.
func (d *Descriptor) CheckWritten(n policyname.Name) error {
	if n.Kind != policyname.Rule {
		return schedulers.CheckWritten(n)
	}
	plain := n
	plain.Kind = policyname.Queue
	switch err := schedulers.CheckWritten(plain); {
	case err != nil:
		return err
	case d.written == nil:
		return fmt.Errorf("%s has no slots in which an expression could choose; leave %s out", d.ID, policyname.Slots(""))
	case schedulers.Preemptive(n.Base):
		return fmt.Errorf("stop if stops running jobs, which no expression does through slots; leave %s out",
			policyname.Slots(""))
	}
	return nil
}

// RuleNames returns the names of the rules.
func (d *Descriptor) RuleNames() []string { return ruleNames(d.Rules) }

func ruleNames(rules []Rule) []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.Name
	}
	return names
}
