package envs

import (
	"context"
	"math"
	"strings"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/control"
	"clustergym/env/dagplace"
	"clustergym/env/delayoffer"
	"clustergym/env/gpupick"
	"clustergym/env/jobselect"
	"clustergym/env/policymix"
	"clustergym/env/queuerank"
	"clustergym/env/queuerank/rlscheduler"
	"clustergym/env/queuerank/rltune"
	"clustergym/env/reward"
	"clustergym/env/sched"
	"clustergym/env/workerplace"
	"clustergym/lab/workload"
	"clustergym/simulator/metrics"
	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// scheduling are the environments over jobs on a simulated cluster.
var scheduling = []*Descriptor{
	describe(Descriptor{
		ID: jobselect.ID, Preset: "quickstart",
		About:   "which visible job starts now, or none; a placement rule picks its GPUs",
		Takes:   Takes{Jobs: true, Cluster: true},
		Cluster: workload.DefaultCluster,
		Trace:   workload.DefaultTraceConfig,
		whyMost: "the observation grows with env.max_gpus × env.visible",
		Rules:   rules(jobselect.Rules(), jobselect.NewRule),
		Rivals: append([]string{"fifo+strict", "fifo+skip", "smallest+skip", "sjf+skip", "area+skip", "las+skip", "srtf+skip"},
			policyname.Rules("random", "random-start", "fifo", "sjf", "area")...),
		StopRivals: append([]string{
			"fifo+skip", "smallest+skip", "sjf+skip", "area+skip",
			"srtf+skip", "srsf+skip", "gittins+skip", "gittins-2d+skip", "las+skip", "las-2d-prompt+skip",
		}, policyname.Rules("random", "fifo", "sjf", "srtf", "srsf", "gittins", "las", "las-2d")...),
		Metric: JCT, Whole: true,
	}, settings[jobselect.Config]{
		defaults: jobselect.DefaultConfig,
		cut: func(c *jobselect.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates, Forecast: c.Forecast}
		},
		// The image of the queue has this many columns for each slot: 256 GPUs and ten slots are a gigabyte of rollout.
		mostGPUs: func(c *jobselect.Config) int {
			if !c.Images {
				return 1024
			}
			return max(8, 2560/c.Visible)
		},
		open: func(c jobselect.Config, src *Source, part traces.Part) (env.Env, error) {
			return jobselect.New(c, src.Cluster, src.Windows, part)
		},
		page:      jobselect.Page,
		placement: func(c *jobselect.Config) string { return c.Placement },
		training:  func(c *jobselect.Config, gamma float64) { c.Gamma = gamma },
		judged:    func(c *jobselect.Config) { c.Config = judged(c.Config) },
		stops:     func(c *jobselect.Config) bool { return c.Preempt },
		memory:    func(c *jobselect.Config, x Extent) float64 { return windowBytes(&c.Config, x) },
		sha:       jobSelectSHA,
	}),
	describe(Descriptor{
		ID: delayoffer.ID, Preset: "delayoffer-ppo",
		About:   "whether a gang takes an offer across machines or racks, or waits for a closer one",
		Takes:   Takes{Jobs: true, Cluster: true},
		Cluster: "dally-slow",
		Trace: func() workload.TraceConfig {
			t := workload.DefaultTraceConfig()
			t.Synth.Profile = "dally"
			return t
		},
		Keys: map[string][2]string{
			"max_gpus":  {"1 to 1048576", "larger jobs are left out of the workload"},
			"comm":      {"ring, contention, tree or none", "how a placement slows a gang down"},
			"ideal":     {"true or false", "with ring: run times are compute times, not those at the best place"},
			"per_gpu":   {"true or false", "with ring: every GPU has links of its own"},
			"relative":  {"true or false", "take off what the timers earn on the same jobs at the same time"},
			"lease":     {"a time of 1s or more", "how long gangs hold their GPUs"},
			"history":   {"leases, 0 to 1000000", "how far the tuner of timers looks back"},
			"auto":      {"true or false", "the timers shown are tuned"},
			"rack_wait": {"leases, 0 to 1000000", "where they are not: how long a rack is declined"},
			"nw_wait":   {"leases, 0 to 1000000", "and the network"},
			"ask":       {"nw, las or nothing (nw)", "which jobs get offers first: those that the network slows most, or those with the least GPU-time"},
		},
		mix:    "dally",
		Rules:  rules(delayoffer.Rules(), delayoffer.NewRule),
		Rivals: append([]string{"fifo+skip", "sjf+skip", "las+skip", "srtf+skip"}, slots(delayoffer.Rules())...),
		Metric: JCT,
	}, settings[delayoffer.Config]{
		defaults: delayoffer.DefaultConfig,
		cut: func(c *delayoffer.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates, Forecast: c.Forecast}
		},
		mostGPUs: unlimited[delayoffer.Config],
		open: func(c delayoffer.Config, src *Source, part traces.Part) (env.Env, error) {
			return delayoffer.New(c, src.Cluster, src.Windows, part)
		},
		page:   delayoffer.Page,
		judged: func(c *delayoffer.Config) { c.Relative = false },
		lacks:  func(c *delayoffer.Config, j *traces.Job) string { return sim.LacksModel(c.Comm, j) },
		memory: func(c *delayoffer.Config, x Extent) float64 {
			bytes := 32<<10 + 1100*float64(c.Window) + clusterBytes(x)
			if c.Relative {
				bytes *= 2 // the timers play the same jobs
			}
			return bytes + forecastBytes(c.Estimates, c.Forecast, c.Window, 1)
		},
	}),
	describe(Descriptor{
		ID: gpupick.ID, Preset: "gpupick-ppo",
		About:   "the GPUs of the job whose turn it is, one by one",
		Takes:   Takes{Jobs: true, Cluster: true},
		Cluster: workload.DefaultCluster,
		Trace:   workload.DefaultTraceConfig,
		Keys: map[string][2]string{
			"gamma": {"above 0, up to 1", "discount of a step"},
			"idle":  {"true or false", "whether the agent may let a job wait"},
			"table": {"true or false", "a row of numbers of each GPU instead of the fields busy and picked"},
		},
		whyMost: "a window of larger gangs may take more than env.max_steps picks",
		Rules:   rules(gpupick.Rules(), gpupick.NewRule),
		Rivals:  slots(gpupick.Rules()),
		Metric: Metric{Key: "comm_cost", Title: "mean communication cost", Of: func(_ *metrics.Summary, info []float64) float64 {
			if info == nil {
				return math.NaN()
			}
			return info[gpupick.InfoCost]
		}},
	}, settings[gpupick.Config]{
		defaults: gpupick.DefaultConfig,
		cut: func(c *gpupick.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates, Forecast: c.Forecast}
		},
		// Every GPU of a gang is a step of its own.
		mostGPUs: func(c *gpupick.Config) int {
			if c.MaxSteps == 0 || !c.Idle {
				return 1 << 10
			}
			return min(1<<10, max(1, c.MaxSteps/c.Window))
		},
		open: func(c gpupick.Config, src *Source, part traces.Part) (env.Env, error) {
			return gpupick.New(c, src.Cluster, src.Windows, part)
		},
		page: gpupick.Page,
		memory: func(c *gpupick.Config, x Extent) float64 {
			return 24<<10 + 1000*float64(c.Window) + 0.3*clusterBytes(x) + forecastBytes(c.Estimates, c.Forecast, c.Window, 1)
		},
	}),
	describe(Descriptor{
		ID: policymix.ID, Preset: "policymix-ppo",
		About:   "which base policy schedules until the next decision",
		Takes:   Takes{Jobs: true, Cluster: true},
		Cluster: workload.DefaultCluster,
		Trace:   workload.DefaultTraceConfig,
		Keys: map[string][2]string{
			"hold":      {"a time above 0s", "how long a choice holds at least"},
			"estimates": {"exact, trace, history, gbdt or noisy:SIGMA", "what is known of run times"},
			"reward":    {strings.Join(reward.Names(), ", "), "what is paid"},
		},
		busy:   func(e sched.Arena) bool { return len(e.View().Waiting()) > 1 }, // every policy is always legal
		Rules:  rules(policymix.Rules(), policymix.NewRule),
		Rivals: append([]string{"fifo+strict", "fifo+skip", "las+skip", "srtf+skip"}, slots(policymix.Rules())...),
		Metric: JCT,
	}, settings[policymix.Config]{
		defaults: policymix.DefaultConfig,
		cut: func(c *policymix.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates, Forecast: c.Forecast}
		},
		open: func(c policymix.Config, src *Source, part traces.Part) (env.Env, error) {
			return policymix.New(c, src.Cluster, src.Windows, part)
		},
		page:      policymix.Page,
		placement: func(c *policymix.Config) string { return c.Placement },
		training:  func(c *policymix.Config, gamma float64) { c.Gamma = gamma },
		judged:    func(c *policymix.Config) { c.Config = judged(c.Config) },
		memory:    func(c *policymix.Config, x Extent) float64 { return windowBytes(&c.Config, x) },
	}),
	describe(Descriptor{
		ID: queuerank.ID, Preset: "queuerank-ppo",
		About:   "which waiting job is next; it holds the queue until it fits",
		Takes:   Takes{Jobs: true, Cluster: true},
		Cluster: "pool:256",
		Trace: func() workload.TraceConfig {
			t := workload.DefaultTraceConfig()
			t.Synth.Profile, t.Synth.Procs = "hpc", 256
			return t
		},
		Keys: map[string][2]string{
			"gamma":     {"above 0, up to 1", "discount of a step"},
			"max_gpus":  {"1 to 1048576", "larger jobs are left out of the workload"},
			"visible":   {"1 to 4096", "jobs that the agent sees and can choose"},
			"placement": {"first-fit, best-fit, …", "which GPUs a job gets"},
			"backfill":  {"none; easy, on counters and with rltune", "what may start while the chosen job waits"},
			"estimates": {"exact, trace, history, gbdt or noisy:SIGMA", "what is known of run times"},
			"metric":    {strings.Join(queuerank.Metrics(), ", "), "what the return is made of"},
			"reward":    {"relative, minus or dense", "against a base order, as it is, or job by job"},
			"base":      {"fifo, sjf, f1, smallest, area; with rltune every order that ranks jobs", "the order to which relative refers"},
			"filter":    {"true or false", "draw training windows again that SJF finds too easy or too hard"},
			"peer":      {"true or false", "equal RLScheduler's program in when the agent is asked and what it sees of a long queue"},
			"rltune":    {"first or programme, on nodes", "follow RLTune's program: its observation, the queue in the order of base, and this placement"},
		},
		Rules:  rules(queuerank.Rules(), queuerank.NewRule),
		Rivals: append([]string{"fifo+strict", "sjf+strict", "f1+strict", "sjf+skip", "las+skip", "srtf+skip"}, slots(queuerank.Rules())...),
		Metric: Metric{Key: "bounded_slowdown", Title: "bounded slowdown", Of: func(s *metrics.Summary, _ []float64) float64 { return s.BoundedSlowdown.Mean }},
	}, settings[queuerank.Config]{
		defaults: queuerank.DefaultConfig,
		cut: func(c *queuerank.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates, Forecast: c.Forecast}
		},
		mostGPUs: unlimited[queuerank.Config],
		open: func(c queuerank.Config, src *Source, part traces.Part) (env.Env, error) {
			switch training := src.Windows.Jobs(traces.Training); {
			case c.RLTune != "":
				return rltune.New(c, src.Cluster, src.Windows, part)
			case c.Peer:
				return rlscheduler.New(c, src.Cluster, src.Windows, training, part)
			default:
				return queuerank.New(c, src.Cluster, src.Windows, training, part)
			}
		},
		page:      queuerank.Page,
		placement: func(c *queuerank.Config) string { return c.Placement },
		judged:    func(c *queuerank.Config) { c.Filter = false },
		memory: func(c *queuerank.Config, x Extent) float64 {
			nodes := 0.0
			if c.RLTune != "" { // a simulator more for the base
				nodes = 2*clusterBytes(x) + 1250*float64(c.Window)
			}
			return 64<<10 + nodes + 1250*float64(c.Window) + 24*float64(c.Visible) + 0.35*clusterBytes(x) + forecastBytes(c.Estimates, c.Forecast, c.Window, simulators(c.Reward == "relative" || c.Filter))
		},
	}),
}

// planning are the environments over task graphs and over intervals of workers, which have simulators of their own.
var planning = []*Descriptor{
	describe(Descriptor{
		ID: dagplace.ID, Preset: "dagplace-ddqn",
		About:    "the processor of the next task of a task graph",
		Takes:    Takes{Graphs: true},
		Keys:     dagplace.ArgWords(),
		Rules:    dagPlaceRules(),
		Planners: dagPlanners(),
		Rivals:   append([]string{"heft", "peft", "cpop"}, policyname.Rules("random", "first-free", "greedy-hope", "eft")...),
		Metric: Metric{Key: "makespan_over_heft", Title: "makespan / HEFT's", Of: func(_ *metrics.Summary, info []float64) float64 {
			return info[dagplace.InfoMakespan] / info[dagplace.InfoLeader]
		}},
	}, settings[dagplace.Config]{
		defaults: dagplace.DefaultConfig,
		open: func(c dagplace.Config, src *Source, part traces.Part) (env.Env, error) {
			return dagplace.NewRecorded(c, src.Graphs, part)
		},
		page:   dagplace.Page,
		memory: dagPlaceBytes,
		record: (*World).loadGraphs,
	}),
	describe(Descriptor{
		ID: workerplace.ID, Preset: "workerplace-maml",
		About:  "the job and server of the next worker, or the end of the interval",
		Takes:  Takes{Jobs: true, Models: true},
		Trace:  workload.DefaultTraceConfig,
		Keys:   workerplace.ArgWords(),
		Rules:  workerPlaceRules(),
		Rivals: policyname.Rules(ruleNames(workerPlaceRules())...),
		Metric: Metric{Key: "jct_s", Title: "mean JCT", Unit: "s", Of: func(_ *metrics.Summary, info []float64) float64 { return info[workerplace.InfoJCT] }},
	}, settings[workerplace.Config]{
		defaults: workerplace.DefaultConfig,
		open: func(c workerplace.Config, src *Source, part traces.Part) (env.Env, error) {
			return workerplace.NewRecorded(c, src.Workers, part)
		},
		page:   workerplace.Page,
		memory: workerPlaceBytes,
		record: (*World).loadWorkers,
	}),
}

// problems returns the environments with known answers. They have no settings, and random play is their only rival.
func problems() []*Descriptor {
	var all []*Descriptor
	for _, id := range control.IDs() {
		all = append(all, &Descriptor{
			ID:     id,
			Open:   func(Settings, *Source, traces.Part) (env.Env, error) { return control.New(id) },
			Page:   func(Settings, env.Spec) string { return control.Page(id) },
			Rules:  []Rule{random},
			Rivals: []string{random.Name},
		})
	}
	return all
}

// judged returns the configuration without the settings that make training easier: contested windows, relative rewards, and
// limits on episodes. Comparisons are undiscounted and play windows until their last job ends, as heuristics do.
func judged(c sched.Config) sched.Config {
	c.Gamma, c.Contested, c.Relative, c.Horizon, c.MaxSteps = 1, false, "", 0, 0
	return c
}

// unlimited is Descriptor.MostGPUs where only the largest value that the settings allow is a bound.
func unlimited[C any](*C) int { return 1 << 20 }

// random is uniform play over the legal actions, the one policy that every environment has.
var random = Rule{
	Name: "random", About: "uniform over the legal actions", Draws: true,
	Policy: func(e env.Env) (agents.Policy, error) { return agents.NewRandom(e.Spec()), nil },
}

// rules returns the rules of one environment's package; E is its environment.
func rules[E env.Env](all []sched.Rule, actor func(name string, e E) (*sched.Actor, error)) []Rule {
	return rulesOf(all, actor, func(r *sched.Rule) Rule {
		return Rule{Name: r.Name, About: r.About, Draws: r.Random, Estimates: r.Estimates, Stops: r.Stops}
	})
}

// rulesOf returns the rules that of describes, which actor makes for an E.
func rulesOf[R any, E env.Env, P agents.Policy](all []R, actor func(name string, e E) (P, error),
	of func(r *R) Rule) []Rule {
	var out []Rule
	for i := range all {
		r := of(&all[i])
		r.Policy = func(e env.Env) (agents.Policy, error) { return actor(r.Name, e.(E)) }
		out = append(out, r)
	}
	return out
}

// slots returns the names of rules as policies.
func slots(rules []sched.Rule) []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return policyname.Rules(names...)
}

func dagPlaceRules() []Rule {
	return rulesOf(dagplace.Rules(), dagplace.NewRule, func(r *dagplace.Rule) Rule {
		return Rule{Name: r.Name, About: r.About, Draws: r.Name == "random"}
	})
}

func workerPlaceRules() []Rule {
	return rulesOf(workerplace.Rules(), workerplace.NewRule, func(r *workerplace.Rule) Rule {
		return Rule{Name: r.Name, About: r.About, Draws: r.Name == "random", Knows: r.Knows()}
	})
}

// dagPlanners returns the planners of whole graphs.
func dagPlanners() []Planner {
	var all []Planner
	for _, name := range dagplace.Planners() {
		all = append(all, Planner{
			Name: name, Draws: name == "random",
			Score: func(ctx context.Context, e env.Env, ep env.Episode) (float64, error) {
				makespan, heft, err := e.(*dagplace.Env).Plan(ctx, ep, name)
				return makespan / heft, err
			},
		})
	}
	return all
}
