package queuerank

import (
	"fmt"
	"strings"

	"clustergym/env"
	"clustergym/env/encode"
	"clustergym/env/sched"
)

// Page returns the environment's page for configuration cfg and specification s, as Markdown in the manner of Gymnasium's
// pages.
func Page(cfg Config, s env.Spec) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# %s\n", s.ID)
	p("Which job is next? The agent sees up to %d jobs of the queue and chooses one, which is held until it fits. For ranking", cfg.Visible)
	p("queues as in RLScheduler.\n")
	p("## Description\n")
	p("An episode is a window of W = %d consecutive jobs of a workload, from an empty machine. Whenever jobs wait and none is", cfg.Window)
	p("held, after all arrivals of the instant, the agent chooses the next one. It starts when it fits, even if a better one")
	p("arrives meanwhile; the clock moves on until then. With backfill: easy other jobs start meanwhile, in order of submit, that")
	p("fit and end, by their estimates, before the time at which enough will be free for the one that is held.\n")
	p("Visible are all that wait, in order of submit; where they are more than %d, the oldest and, alternately, the shortest and", cfg.Visible)
	p("the smallest of the others.\n")
	p("With peer: true the environment equals RLScheduler's program, decision by decision and bit by bit: the agent is asked after")
	p("every arrival, even if more jobs arrive in the same second, and where more wait than are visible, the next of the list by")
	p("(estimate, submit, GPUs), if it is not visible yet, and the next of that by (GPUs, submit, estimate) alternate, in this order.\n")
	p("With rltune the environment follows RLTune's program instead (Dongare et al., SoCC 2025; github.com/dshruti20/RLTune), on nodes.")
	p("The agent is asked after every arrival, and sees the queue in the order of base, which can be any order that ranks jobs. A job")
	p("runs on nodes of its virtual cluster and its types of GPU, its pool, and starts when its gang fits the fewest of them that it needs. With")
	p("first it takes the first of such placements by node and GPUs, as base policies do there; with programme the one of up to four that")
	p("its integer programme chooses; placement has no say. Back-filling looks at the jobs of the held one's pool only. A row then is:")
	p("wait/12 h; n/GPUs of the largest node; (n/free GPUs)/capacity; (free − demand of the visible jobs + capacity)/(2 capacity);")
	p("partial nodes/nodes with a free GPU, or by all nodes where all jobs have one pool; ways/3; can start: 1e-5 no, 1 − 1e-5 in one way, half as much again in several.")
	p("Free GPUs, capacity, demand and nodes are those of the pool. Ways are 2 for several placements on the fewest nodes, 1 for one, and 1 more")
	p("for any on one node more that leaves no more nodes partly free; in a cluster with virtual clusters that one is not counted. There are")
	p("no forecasts.\n")
	p("## Action space\n")
	p("Discrete(%d)\n", s.Action.Sizes[0])
	p("| action | meaning | legal |")
	p("|---|---|---|")
	p("| 0 to %d | the job in that slot is next | the slot is filled |\n", cfg.Visible-1)
	p(sched.Illegal + " There is no waiting.\n")
	p("## Observation space\n")
	p("float32, every element in [0, 1]; a flat vector of %d.\n", s.ObsLen())
	p("| field | shape | unit | content |")
	p("|---|---|---|---|")
	for _, f := range s.Obs {
		p("| %s | %v | %s | %s |", f.Name, f.Shape, f.Unit, f.Doc)
	}
	p("\nn = processors of a job, G of the machine, e = its estimated run time, L(x) = ln(1+x/60 s)/ln(1+14 d/60 s) and")
	p("C(k, m) = ln(1+k)/ln(1+m), both cut to [0, 1]. Maxima are those of the training part.\n")
	b.WriteString(encode.ForecastSection("every row of field jobs has 14 numbers more", false))
	p("## Reward\n")
	p("S is the mean over the window's jobs of the metric: bsld (max(1, JCT/max(work, 10 s))), wait, jct, slowdown; or minus the")
	p("utilisation. Lower is better.\n")
	p("| reward | paid |")
	p("|---|---|")
	for _, r := range [][2]string{
		{"relative", fmt.Sprintf("(S_base − S)/max(S_base, S, 1) with the last start; base: %s with the same admission and back-filling", cfg.Base)},
		{"minus", "−S with the last start"}, {"dense", "each job's share of −S as it starts: the same return as minus"},
	} {
		mark := ""
		if r[0] == cfg.Reward {
			mark = " (this one)"
		}
		p("| %s%s | %s |", r[0], mark, r[1])
	}
	p("\n## Discount\n")
	p("gamma a step.\n")
	p("## Start\n")
	p("Training: the window's first job is drawn uniformly from the first 70 %% of the workload; evaluation: disjoint windows in")
	p("order from the next 10 %% (validation) or the last 20 %% (test). load stretches submit times (%g; 0 = as recorded). With", cfg.Load)
	p("filter: true training windows are drawn again whose S under SJF is not between 10 and 150.\n")
	p("## End\n")
	p("Terminated when the last job has started: after W steps, fewer with back-filling.\n")
	b.WriteString(sched.InfoTable(s.Info))
	p("\n## Versions\n")
	p("v1: first.\n")
	p("## Source\n")
	p("Zhang et al., RLScheduler: an automated HPC batch job scheduler using reinforcement learning, SC 2020, by its code")
	p("(github.com/DIR-LAB/deep-batch-scheduler), whose machine gymctl sim has as admission commit.")
	return b.String()
}
