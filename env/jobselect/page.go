package jobselect

import (
	"fmt"
	"strings"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/sched"
)

// groups says what a group of columns is in each field that has groups.
var groups = map[string]string{
	"cluster": "the GPUs of a machine. Where machines differ in size, their greatest common divisor; 1 where a\ncolumn is a machine, or a GPU of a counter",
	"queue":   "the columns of a slot. A convolution without kernel takes one group at a time",
}

// preemption is the section about preempt.
const preemption = `### Preemption

With preempt: true, which needs running: R, there are R actions between the K slots and waiting: action K+r stops the gang in row r of
field running. It is legal once the gang has run for min_run since its last start, while another job waits. The agent is then
also asked where no visible job fits. The GPUs are free for the next decision of the same instant. The stopped job waits in its
place by age from the next event on, with what is left of it; so nothing is stopped and started again at one instant. At its next start
it holds its n GPUs for checkpoint + restart + n·(checkpoint_per_gpu + restart_per_gpu) before it goes on where it was stopped; a
first start costs nothing. This time counts as run time, so reward wait does not see it and throughput takes it for work: use jct.

Jobs from before the window are not counted and cannot be stopped, because nobody would pay for it. Schedulers over the whole queue that
stop jobs pay the same, obey the same minimum and spare the same jobs if they are orders (srtf, srsf, gittins, gittins-2d, las, las-2d, …);
the others (gavel-las, themis, tiresias-lease, …) pay the same and stop what they like. Field jobs has two numbers more at the end of a
row, L(time run so far) and C(stops, 32); e is what is left of a stopped job.

`

// Page returns the environment's page for configuration cfg and specification s, as Markdown in the manner of Gymnasium's
// pages.
func Page(cfg Config, s env.Spec) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# %s\n", s.ID)
	p("Which job starts now? The agent sees %d jobs of the queue and starts one of them, or waits; the placement", cfg.Visible)
	p("%s picks its GPUs. For job selection as in TopDRL.\n", cfg.Placement)
	p("## Description\n")
	p("An episode is a window of W = %d consecutive jobs of a workload on a cluster of GPUs. After all events of an", cfg.Window)
	p("instant the agent is asked if a visible job can start now; else the clock goes on. A start does not move the")
	p("clock: the agent acts again until it waits or nothing visible fits. With the queue empty and no arrival left,")
	p("the same step runs on to the last finish. A gang whose GPUs lie apart runs slower (comm: tree).\n")
	p("Visible (slots: mixed) are the %d oldest jobs, the %d others of least estimate × GPUs that fit now, then the", cfg.Visible/2, cfg.Visible/2)
	p("next oldest; with slots: oldest, the %d oldest.\n", cfg.Visible)
	p("## Action space\n")
	p("Discrete(%d)\n", s.Action.Sizes[0])
	p("| action | meaning | legal |")
	p("|---|---|---|")
	p("| 0 to %d | start the job in that slot | the slot is filled and its gang fits |", cfg.Visible-1)
	last := s.Action.Sizes[0] - 1
	if cfg.Preempt {
		p("| %d to %d | stop the gang in that row of running | see Preemption |", cfg.Visible, last-1)
	}
	p("| %d | wait for the next event | something runs or will arrive |\n", last)
	p(sched.Illegal + "\n")
	b.WriteString(preemption)
	p("## Observation space\n")
	p("float32, every element in [0, 1]; fields in this order in the flat vector of %d.\n", s.ObsLen())
	p("| field | shape | unit | content |")
	p("|---|---|---|---|")
	for _, f := range s.Obs {
		p("| %s | %v | %s | %s |", f.Name, f.Shape, f.Unit, strings.ReplaceAll(f.Doc, "|", "/"))
	}
	for _, f := range s.Obs {
		if f.Group > 0 {
			p("\nThe columns of %s form groups of %d: %s.", f.Name, f.Group, groups[f.Name])
		}
	}
	p("\nn = GPUs of a job, G of the cluster, e = its estimated run time, L(x) = ln(1+x/60 s)/ln(1+14 d/60 s) and")
	p("C(k, m) = ln(1+k)/ln(1+m), both cut to [0, 1]. Bars have 20 rows with edges 0 and 60 s·20160^((h−1)/19), h = 1 … 20")
	p("(time_axis: linear: equal rows). GPUs that are shared show their longest job. An estimate that a job outlives")
	p("doubles until it exceeds the time run. With estimates: none the time run replaces what remains, the time waited")
	p("replaces e, and slots rank by n.\n")
	b.WriteString(encode.ForecastSection("every row of field jobs has 14 numbers more", true))
	b.WriteString(encode.RunningSection())
	b.WriteString(encode.TruthSection())
	p("## Reward\n")
	p("W = counted jobs, tau = %v of simulated time. The return of a whole episode, undiscounted, equals exactly:\n", s.Tau)
	p("| reward | return |")
	p("|---|---|")
	for _, r := range [][2]string{
		{"jct", "−mean JCT / tau"}, {"wait", "−mean wait / tau"}, {"slowdown", "−mean JCT/work"},
		{"bsld", "−mean bounded slowdown (10 s)"}, {"makespan, utilisation", "−makespan / tau"},
		{"throughput", "(Σ n·work − c·Σ n·wait) / (G·tau), c = wait_cost"},
	} {
		mark := ""
		if strings.HasPrefix(r[0], cfg.Reward) {
			mark = " (this one)"
		}
		p("| %s%s | %s |", r[0], mark, r[1])
	}
	p("\nrelative: fifo, sjf or smallest (fewest GPUs first) subtracts what that baseline (admission skip) earns on the same")
	p("window at the same time: the same optimum with less noise. It knows run times as well as the agent does, but for sjf")
	p("with estimates: none, which knows the true ones. relative: auto is sjf, and smallest with estimates: none. What")
	p("accumulates before the first decision is paid with the first step.\n")
	p("## Discount\n")
	p("gamma applies once per tau: a transition that takes t is discounted by gamma^(t/tau), which info.discount says;")
	p("several starts in one instant cost nothing.\n")
	p("## Start\n")
	p("Training: the window's first job is drawn uniformly from the first 70 %% of the workload; evaluation: disjoint")
	p("windows in order from the next 10 %% (validation) or the last 20 %% (test). Submit times are stretched so that")
	p("Σ n·work / (G·span) = load (%g; 0 = as recorded). The %d jobs before the window run under FIFO skip until its", cfg.Load, cfg.Warm)
	p("first submit (warm); those then running stay as occupants that are not counted, those waiting leave.")
	p("contested: true draws training windows again where FIFO skip and SJF skip differ by less than 1 %%. A window whose horizon passes")
	p("before the first decision is skipped: the seed draws up to 100, then the first window of the part with a decision is taken.\n")
	p("## End\n")
	p("Terminated when all counted jobs have finished. Truncated at horizon (simulated time) or after max_steps.\n")
	b.WriteString(sched.InfoTable(s.Info))
	p("\n## Versions\n")
	p("v1: first.\n")
	p("## Source\n")
	p("Ayadi et al., TopDRL, JPDC 204, 105138 (2025), doi 10.1016/j.jpdc.2025.105138: the paper's abstract, and the code")
	p("of its precursor (github.com/djjbxxz/Proximity-DRL; Deng et al., Canadian AI 2024). A reconstruction, not the paper's")
	p("own code: read it as TopDRL-like.")
	return b.String()
}
