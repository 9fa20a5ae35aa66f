package envs

import (
	"context"
	"fmt"
	"math"
	"time"

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
	jobSelect(jobselect.ID, "quickstart", "8x8", jobselect.OngoingConfig, usersTrace(2, 180_000)),
	jobSelect(jobselect.V1, "quickstart-v1", workload.DefaultCluster, jobselect.DefaultConfig,
		workload.DefaultTraceConfig),
	delayOffer(Descriptor{ID: delayoffer.ID, Preset: "delayoffer-v2-ppo", Ongoing: true,
		Trace: generated("dally-multi", 7, 100_000)}, settings[delayoffer.Ongoing]{
		defaults: delayoffer.OngoingConfig,
		cut: func(c *delayoffer.Ongoing) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates,
				Forecast: c.Forecast, Load: c.Load, Mode: sched.Ongoing}
		},
		open: func(c delayoffer.Ongoing, src *Source, part traces.Part) (env.Env, error) {
			c.Mode = ongoing(c.Mode)
			return delayoffer.NewOngoing(c, src.Cluster, src.Windows, part)
		},
		page:     delayoffer.OngoingPage,
		training: func(c *delayoffer.Ongoing, gamma float64) { c.Gamma = gamma },
		judged:   func(c *delayoffer.Ongoing) { c.Gamma, c.Relative, c.MaxSteps = 1, false, 0 },
		streamed: func(c *delayoffer.Ongoing) { c.Mode, c.MaxSteps = sched.Streamed, 0 },
		lacks:    func(c *delayoffer.Ongoing, j *traces.Job) string { return sim.LacksModel(c.Comm, j) },
		memory: func(c *delayoffer.Ongoing, x Extent) float64 {
			return delayOfferBytes(&c.Config, c.Window+c.Warm/4, x) // most of the warm-up has left
		},
	}),
	delayOffer(Descriptor{ID: delayoffer.V1, Preset: "delayoffer-ppo"}, settings[delayoffer.Config]{
		defaults: delayoffer.DefaultConfig,
		cut: func(c *delayoffer.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates, Forecast: c.Forecast,
				Load: c.Load}
		},
		open: func(c delayoffer.Config, src *Source, part traces.Part) (env.Env, error) {
			return delayoffer.New(c, src.Cluster, src.Windows, part)
		},
		page:     delayoffer.Page,
		judged:   func(c *delayoffer.Config) { c.Relative = false },
		streamed: func(c *delayoffer.Config) { c.Mode, c.MaxSteps = sched.Streamed, 0 },
		lacks:    func(c *delayoffer.Config, j *traces.Job) string { return sim.LacksModel(c.Comm, j) },
		memory:   func(c *delayoffer.Config, x Extent) float64 { return delayOfferBytes(c, c.Window, x) },
	}),
	gpuPick(Descriptor{ID: gpupick.ID, Preset: "gpupick-v2-ppo", Ongoing: true,
		Trace: generated("proximity", 5, 100_000)}, settings[gpupick.Ongoing]{
		defaults: gpupick.OngoingConfig,
		cut: func(c *gpupick.Ongoing) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates,
				Forecast: c.Forecast, Load: c.Load, Mode: sched.Ongoing}
		},
		open: func(c gpupick.Ongoing, src *Source, part traces.Part) (env.Env, error) {
			c.Mode = ongoing(c.Mode)
			return gpupick.NewOngoing(c, src.Cluster, src.Windows, part)
		},
		page:     gpupick.OngoingPage,
		streamed: func(c *gpupick.Ongoing) { c.Mode, c.MaxSteps = sched.Streamed, 0 },
		memory: func(c *gpupick.Ongoing, x Extent) float64 {
			return gpuPickBytes(&c.Config, c.Window+c.Warm, x)
		},
	}),
	gpuPick(Descriptor{ID: gpupick.V1, Preset: "gpupick-ppo"}, settings[gpupick.Config]{
		defaults: gpupick.DefaultConfig,
		cut: func(c *gpupick.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates, Forecast: c.Forecast,
				Load: c.Load}
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
		page:     gpupick.Page,
		streamed: func(c *gpupick.Config) { c.Mode, c.MaxSteps = sched.Streamed, 0 },
		memory:   func(c *gpupick.Config, x Extent) float64 { return gpuPickBytes(c, c.Window, x) },
	}),
	policyMix(policymix.ID, "policymix-v2-ppo", policymix.OngoingConfig, usersTrace(4, 120_000)),
	policyMix(policymix.V1, "policymix-ppo", policymix.DefaultConfig, workload.DefaultTraceConfig),
	describe(ranking(Descriptor{
		ID: queuerank.ID, Preset: "queuerank-v2-ppo",
		About:   "which waiting job is next; it holds the queue until it fits",
		Cluster: "pool:256",
		Trace:   func() workload.TraceConfig { t := hpcTrace(); t.Seed, t.Synth.Jobs = 3, 200_000; return t },
		Ongoing: true,
	}), settings[queuerank.Ongoing]{
		defaults: queuerank.OngoingConfig,
		cut: func(c *queuerank.Ongoing) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates,
				Forecast: c.Forecast, Load: c.Load, Mode: sched.Ongoing}
		},
		mostGPUs: unlimited[queuerank.Ongoing],
		open: func(c queuerank.Ongoing, src *Source, part traces.Part) (env.Env, error) {
			versioned(&c.Config, queuerank.ID)
			return queuerank.NewOngoing(c, src.Cluster, src.Windows, src.Windows.Jobs(traces.Training), part)
		},
		page:      queuerank.OngoingPage,
		placement: func(c *queuerank.Ongoing) string { return c.Placement },
		training:  func(c *queuerank.Ongoing, gamma float64) { c.Gamma = gamma },
		judged:    func(c *queuerank.Ongoing) { c.Config = judged(c.Config) },
		streamed:  func(c *queuerank.Ongoing) { c.Mode = sched.Streamed },
		memory:    func(c *queuerank.Ongoing, x Extent) float64 { return 24*float64(c.Visible) + windowBytes(&c.Config, x) },
	}),
	describe(ranking(Descriptor{
		ID: queuerank.V1, Preset: "queuerank-ppo",
		About:   "which waiting job is next; it holds the queue until it fits",
		Cluster: "pool:256",
		Trace:   hpcTrace,
	}), ranked(queuerank.DefaultConfig, queuerank.Page, func(c *queuerank.Config) { c.Filter = false },
		func(c *queuerank.Config) *queuerank.Common { return &c.Common },
		func(c queuerank.Config, src *Source, part traces.Part) (env.Env, error) {
			switch training := src.Windows.Jobs(traces.Training); {
			case c.RLTune != "":
				return rltune.New(queuerank.V1, rltune.FromOlder(c), src.Cluster, src.Windows, part)
			case c.Peer:
				return rlscheduler.New(queuerank.V1, rlscheduler.FromOlder(c), src.Cluster, src.Windows, training, part)
			default:
				return queuerank.New(c, src.Cluster, src.Windows, training, part)
			}
		})),
	describe(ranking(Descriptor{
		ID: rlscheduler.ID, Preset: "rlscheduler-ppo",
		About:   "which waiting job is next, as RLScheduler's program asks and shows it",
		Cluster: "pool:256",
		Trace:   hpcTrace,
	}), ranked(rlscheduler.DefaultConfig, rlscheduler.Page, func(c *rlscheduler.Config) { c.Filter = false },
		func(c *rlscheduler.Config) *queuerank.Common { return &c.Common },
		func(c rlscheduler.Config, src *Source, part traces.Part) (env.Env, error) {
			return rlscheduler.New(rlscheduler.ID, c, src.Cluster, src.Windows, src.Windows.Jobs(traces.Training), part)
		})),
	describe(ranking(Descriptor{
		ID: rltune.ID, Preset: "rltune-ppo",
		About:   "which job of a sorted queue is next, on nodes where RLTune's integer programme places it",
		Cluster: workload.DefaultCluster,
		Trace:   workload.DefaultTraceConfig,
	}), ranked(rltune.DefaultConfig, rltune.Page, nil, func(c *rltune.Config) *queuerank.Common { return &c.Common },
		func(c rltune.Config, src *Source, part traces.Part) (env.Env, error) {
			return rltune.New(rltune.ID, c, src.Cluster, src.Windows, part)
		})),
}

// jobSelect describes a version of JobSelect.
func jobSelect(id, preset, cluster string, defaults func() jobselect.Config,
	trace func() workload.TraceConfig) *Descriptor {
	return describe(Descriptor{
		ID: id, Preset: preset,
		About:   "which visible job starts now, or none; a placement rule picks its GPUs",
		Takes:   Takes{Jobs: true, Cluster: true},
		Cluster: cluster,
		Trace:   trace,
		whyMost: "the observation grows with env.max_gpus × env.visible",
		Rules:   rules(jobselect.Rules(), jobselect.NewRule),
		written: func(order string, e env.Env) (agents.Policy, error) { return actorOf(jobselect.NewWritten, order, e) },
		Rivals: append([]string{"fifo+strict", "fifo+skip", "smallest+skip", "sjf+skip", "area+skip", "las+skip",
			"srtf+skip"},
			policyname.Rules("random", "random-start", "fifo", "sjf", "area")...),
		StopRivals: append([]string{
			"fifo+skip", "smallest+skip", "sjf+skip", "area+skip",
			"srtf+skip", "srsf+skip", "gittins+skip", "gittins-2d+skip", "las+skip", "las-2d-prompt+skip",
		}, policyname.Rules("random", "fifo", "sjf", "srtf", "srsf", "gittins", "las", "las-2d")...),
		Metric: JCT, Whole: id == jobselect.V1, Ongoing: id == jobselect.ID,
	}, settings[jobselect.Config]{
		defaults: defaults,
		cut: func(c *jobselect.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates,
				Forecast: c.Forecast, Load: c.Load, Mode: modeOf(id)}
		},
		// The image of the queue has this many columns for each slot: 256 GPUs and ten slots are a gigabyte of rollout.
		mostGPUs: func(c *jobselect.Config) int {
			if !c.Images {
				return 1024
			}
			return max(8, 2560/c.Visible)
		},
		open: func(c jobselect.Config, src *Source, part traces.Part) (env.Env, error) {
			versioned(&c.Config, id)
			return jobselect.New(c, src.Cluster, src.Windows, part)
		},
		page:      jobselect.Page,
		placement: func(c *jobselect.Config) string { return c.Placement },
		training:  func(c *jobselect.Config, gamma float64) { c.Gamma = gamma },
		judged:    func(c *jobselect.Config) { c.Config = judged(c.Config) },
		streamed:  func(c *jobselect.Config) { c.Mode = sched.Streamed },
		stops:     func(c *jobselect.Config) bool { return c.Preempt },
		price: func(c *jobselect.Config) string {
			if !c.Preempt {
				return ""
			}
			return c.Price()
		},
		memory: func(c *jobselect.Config, x Extent) float64 { return windowBytes(&c.Config, x) },
		sha:    jobSelectSHA,
	})
}

// policyMix describes a version of PolicyMix.
func policyMix(id, preset string, defaults func() policymix.Config, trace func() workload.TraceConfig) *Descriptor {
	return describe(Descriptor{
		ID: id, Preset: preset,
		About:   "which base policy schedules until the next decision",
		Takes:   Takes{Jobs: true, Cluster: true},
		Cluster: workload.DefaultCluster,
		Trace:   trace,
		busy:    func(e sched.Arena) bool { return len(e.View().Waiting()) > 1 }, // every policy is always legal
		Rules:   rules(policymix.Rules(), policymix.NewRule),
		Rivals:  append([]string{"fifo+strict", "fifo+skip", "las+skip", "srtf+skip"}, slots(policymix.Rules())...),
		Metric:  JCT, Ongoing: id == policymix.ID,
	}, settings[policymix.Config]{
		defaults: defaults,
		cut: func(c *policymix.Config) sched.Taken {
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Warm: c.Warm, Estimates: c.Estimates,
				Forecast: c.Forecast, Load: c.Load, Mode: modeOf(id)}
		},
		open: func(c policymix.Config, src *Source, part traces.Part) (env.Env, error) {
			versioned(&c.Config, id)
			return policymix.New(c, src.Cluster, src.Windows, part)
		},
		page:      policymix.Page,
		placement: func(c *policymix.Config) string { return c.Placement },
		training:  func(c *policymix.Config, gamma float64) { c.Gamma = gamma },
		judged:    func(c *policymix.Config) { c.Config = judged(c.Config) },
		streamed:  func(c *policymix.Config) { c.Mode = sched.Streamed },
		memory:    func(c *policymix.Config, x Extent) float64 { return windowBytes(&c.Config, x) },
	})
}

// delayOffer describes a version of DelayOffer.
func delayOffer[C any, P interface {
	*C
	Settings
}](d Descriptor, by settings[C]) *Descriptor {
	d.About = "whether a gang takes an offer across machines or racks, or waits for a closer one"
	d.Takes, d.Cluster, d.mix = Takes{Jobs: true, Cluster: true}, "dally-slow", "dally"
	if d.Trace == nil {
		d.Trace = generated("dally", workload.DefaultTraceConfig().Seed, workload.DefaultTraceConfig().Synth.Jobs)
	}
	d.Rules = rules(delayoffer.Rules(), delayoffer.NewRule)
	d.Rivals = append([]string{"fifo+skip", "sjf+skip", "las+skip", "srtf+skip"}, slots(delayoffer.Rules())...)
	d.Metric, by.mostGPUs = JCT, unlimited[C]
	return describe[C, P](d, by)
}

// gpuPick describes a version of GPUPick.
func gpuPick[C any, P interface {
	*C
	Settings
}](d Descriptor, by settings[C]) *Descriptor {
	d.About = "the GPUs of the job whose turn it is, one by one"
	d.Takes, d.Cluster = Takes{Jobs: true, Cluster: true}, workload.DefaultCluster
	if d.Trace == nil {
		d.Trace = workload.DefaultTraceConfig
	}
	d.Rules, d.Rivals = rules(gpupick.Rules(), gpupick.NewRule), slots(gpupick.Rules())
	d.Metric = Metric{Key: "comm_cost", Title: "mean communication cost",
		Of: func(_ *metrics.Summary, info []float64) float64 {
			if info == nil {
				return math.NaN()
			}
			return info[gpupick.InfoCost]
		}}
	if by.mostGPUs != nil {
		d.whyMost = "a window of larger gangs may take more than env.max_steps picks"
	}
	return describe[C, P](d, by)
}

// versioned gives settings the hidden fields of the version called id, whatever defaults they were decoded over.
func versioned(c *sched.Config, id string) {
	if modeOf(id) == sched.Ongoing {
		c.ID, c.Mode = id, ongoing(c.Mode)
		return
	}
	if c.ID = ""; c.Mode != sched.Streamed {
		c.Mode = sched.Drained
	}
}

// ongoing returns how episodes of version 2 begin and end, whatever defaults their settings were decoded over.
func ongoing(m sched.Mode) sched.Mode {
	if m == sched.Streamed {
		return m
	}
	return sched.Ongoing
}

// modeOf returns how episodes of the environment called id begin and end in trainings.
func modeOf(id string) sched.Mode {
	if id == jobselect.ID || id == policymix.ID || id == queuerank.ID {
		return sched.Ongoing
	}
	return sched.Drained
}

// usersTrace returns jobs whose users repeat themselves, so that forecasts from jobs that have ended say something.
// They have a time limit: Philly had none, and a few jobs of weeks would decide the mean of each draw on a small
// cluster. Seed and number of jobs are those of the environment's preset, so that all who name the environment play the
// same jobs.
func usersTrace(seed uint64, jobs int) func() workload.TraceConfig {
	return func() workload.TraceConfig {
		t := generated("philly-users", seed, jobs)()
		t.Synth.MaxTime = 48 * time.Hour
		return t
	}
}

// generated returns so many jobs of a profile.
func generated(profile string, seed uint64, jobs int) func() workload.TraceConfig {
	return func() workload.TraceConfig {
		t := workload.DefaultTraceConfig()
		t.Seed, t.Synth.Profile, t.Synth.Jobs = seed, profile, jobs
		return t
	}
}

// ranking returns d with what the environments have in common in which the agent chooses the next job.
func ranking(d Descriptor) Descriptor {
	d.Takes = Takes{Jobs: true, Cluster: true}
	d.Rules = rules(queuerank.Rules(), queuerank.NewRule)
	d.written = func(order string, e env.Env) (agents.Policy, error) { return actorOf(queuerank.NewOrder, order, e) }
	whole := []string{"fifo+strict", "sjf+strict", "f1+strict", "sjf+skip", "las+skip", "srtf+skip"}
	d.Rivals = append(whole, slots(queuerank.Rules())...)
	d.Metric = Metric{
		Key: "bounded_slowdown", Title: "bounded slowdown",
		Of: func(s *metrics.Summary, _ []float64) float64 { return s.BoundedSlowdown.Mean },
	}
	return d
}

// ranked returns how such an environment looks at its settings, which QueueRank-v1 has in an older form.
func ranked[C interface{ Older() queuerank.Config }](
	defaults func() C, page func(C, env.Spec) string, judged func(*C), common func(*C) *queuerank.Common,
	open func(C, *Source, traces.Part) (env.Env, error),
) settings[C] {
	return settings[C]{
		defaults: defaults, open: open, page: page, judged: judged,
		cut: func(own *C) sched.Taken {
			c := (*own).Older()
			return sched.Taken{MaxGPUs: c.MaxGPUs, Window: c.Window, Estimates: c.Estimates, Forecast: c.Forecast,
				Load: c.Load}
		},
		mostGPUs: unlimited[C],
		streamed: func(c *C) { // no base order plays, and no window is drawn again
			common(c).Mode, common(c).Reward = sched.Streamed, "minus"
		},
		placement: func(c *C) string { return (*c).Older().Placement },
		memory:    rankedBytes[C],
		older:     C.Older,
	}
}

// hpcTrace returns the jobs of a machine of 256 processors.
func hpcTrace() workload.TraceConfig {
	t := workload.DefaultTraceConfig()
	t.Synth.Profile, t.Synth.Procs = "hpc", 256
	return t
}

// planning are the environments over task graphs and over intervals of workers, which have simulators of their own.
var planning = []*Descriptor{
	describe(Descriptor{
		ID: dagplace.ID, Preset: "dagplace-ddqn",
		About:    "the processor of the next task of a task graph",
		Takes:    Takes{Graphs: true},
		Rules:    rules(dagplace.Rules(), dagplace.NewRule),
		Planners: dagPlanners(),
		Rivals:   append([]string{"heft", "peft", "cpop"}, policyname.Rules("random", "first-free", "greedy-hope", "eft")...),
		Metric: Metric{Key: "makespan_over_heft", Title: "makespan / HEFT's",
			Of: func(_ *metrics.Summary, info []float64) float64 {
				return info[dagplace.InfoMakespan] / info[dagplace.InfoLeader]
			}},
	}, settings[dagplace.Config]{
		defaults: dagplace.DefaultConfig,
		open: func(c dagplace.Config, src *Source, part traces.Part) (env.Env, error) {
			return dagplace.NewRecorded(c, src.Graphs, part)
		},
		page:   dagplace.Page,
		memory: dagPlaceBytes,
		record: (*Workload).loadGraphs,
	}),
	workerPlace(workerplace.V2, "workerplace-v2-ppo", workerplace.DrawnConfig),
	workerPlace(workerplace.ID, "workerplace-maml", workerplace.DefaultConfig),
}

// workerPlace describes a version of WorkerPlace.
func workerPlace(id, preset string, defaults func() workerplace.Config) *Descriptor {
	return describe(Descriptor{
		ID: id, Preset: preset,
		About:  "the job and server of the next worker, or the end of the interval",
		Takes:  Takes{Jobs: true, Models: true},
		Trace:  workload.DefaultTraceConfig,
		Rules:  rules(workerplace.Rules(), workerplace.NewRule),
		Rivals: slots(workerplace.Rules()),
		Metric: Metric{Key: "jct_s", Title: "mean JCT", Unit: "s",
			Of: func(_ *metrics.Summary, info []float64) float64 { return info[workerplace.InfoJCT] }},
	}, settings[workerplace.Config]{
		defaults: defaults,
		open: func(c workerplace.Config, src *Source, part traces.Part) (env.Env, error) {
			c.Drawn = id == workerplace.V2
			return workerplace.NewRecorded(c, src.Workers, part)
		},
		page: func(c workerplace.Config, s env.Spec) string {
			c.Drawn = id == workerplace.V2
			return workerplace.Page(c, s)
		},
		memory: workerPlaceBytes,
		record: (*Workload).loadWorkers,
	})
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

// judged returns the configuration without the settings that make training easier: contested windows, relative rewards,
// and limits on episodes. Comparisons are undiscounted and play windows until their last job ends, as heuristics do.
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
func rules[R sched.Described, E env.Env](all []R, actor func(name string, e E) (*sched.Actor, error)) []Rule {
	var out []Rule
	for _, one := range all {
		r := one.Described()
		out = append(out, Rule{
			Name: r.Name, About: r.About, Draws: r.Random, Estimates: r.Estimates, Stops: r.Stops, Knows: r.Knows,
			Policy: func(e env.Env) (agents.Policy, error) { return actor(r.Name, e.(E)) },
		})
	}
	return out
}

// actorOf returns what plays an order in e.
func actorOf[E env.Env](actor func(order string, e E) (*sched.Actor, error), order string,
	e env.Env) (agents.Policy, error) {
	own, ok := e.(E)
	if !ok {
		return nil, fmt.Errorf("%s: an environment of type %T has no slots", order, e)
	}
	return actor(order, own)
}

// slots returns the names of rules as policies.
func slots[R sched.Described](rules []R) []string { return policyname.Rules(sched.RuleNames(rules)...) }

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
