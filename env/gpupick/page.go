package gpupick

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
	gpus := s.Action.Sizes[0] - 1
	p("# %s\n", s.ID)
	p("Which GPUs does the job get whose turn it is? Jobs start in order of submit; the agent picks their GPUs one by one. For")
	p("GPU selection as in Proximity-DRL.\n")
	p("## Description\n")
	p("An episode is a window of %d consecutive jobs of a workload, from an empty cluster of %d GPUs. When the oldest job that", cfg.Window, gpus)
	p("waits fits, its GPUs are picked, one a step; the last pick starts it. Until then nobody else starts. A gang whose GPUs lie")
	p("apart runs slower (comm: tree).\n")
	p("## Action space\n")
	p("Discrete(%d)\n", s.Action.Sizes[0])
	p("| action | meaning | legal |")
	p("|---|---|---|")
	p("| 0 to %d | pick this GPU | it is free, and not picked |", gpus-1)
	p("| %d | let time pass to the next event | idle: true, no pick is open, and something runs or will arrive |\n", gpus)
	p(sched.Illegal + "\n")
	p("## Observation space\n")
	p("float32, every element in [0, 1]; fields in this order in the flat vector of %d.\n", s.ObsLen())
	p("| field | shape | unit | content |")
	p("|---|---|---|---|")
	for _, f := range s.Obs {
		p("| %s | %v | %s | %s |", f.Name, f.Shape, f.Unit, f.Doc)
	}
	p("\nn = GPUs of a job, M = max_gpus, e = its estimated run time, L(x) = ln(1+x/60 s)/ln(1+14 d/60 s),")
	p("C(k, m) = ln(1+k)/ln(1+m), cut to [0, 1]. An")
	p("estimate that a job outlives doubles until it exceeds the time run. With estimates: none the time run replaces what remains")
	p("and the time waited replaces e.\n")
	b.WriteString(encode.ForecastSection("field job has 14 numbers more", false))
	p("### A row of each GPU\n")
	p("With table: true the observation is field job, then field table, [%d, %d] here, which replaces busy and picked. A row has for its", gpus, rowLen)
	p("GPU, in this order: whether it can be picked, whether it has been picked for this job, and L(remaining); of its machine and then of")
	p("its rack each the usable GPUs over all, those picked for this job over n, min(1, usable/missing) and the usable ones beyond the")
	p("missing over all; what its pick adds to the communication cost, over 0.775; and the mean L(remaining) on its machine. Missing are the")
	p("GPUs that the job still wants. How near a GPU is to those picked is thus a number, and one small network can score all GPUs: head slots")
	p("with branch table as in the preset gpupick-table. Its weights then fit clusters of any size.\n")
	p("## Reward\n")
	p("With the last pick of a job 1 − (cost − best)/(worst − best): cost is that of its GPUs on the tree, R/2 + M/4 + n/40 for n GPUs")
	p("on M machines in R racks; best and worst are those of n GPUs on the empty cluster. 0 for the other picks, for idling, and")
	p("where worst = best. So the return of an episode is the sum of the jobs' closeness.\n")
	p("## Discount\n")
	p("gamma a step.\n")
	p("## Start\n")
	p("Training: the window's first job is drawn uniformly from the first 70 %% of the workload; evaluation: disjoint windows in")
	p("order from the next 10 %% (validation) or the last 20 %% (test). Submit times are stretched so that")
	p("Σ n·work / (G·span) = load (%g; 0 = as recorded).\n", cfg.Load)
	p("## End\n")
	p("Terminated when the last job has its GPUs: after as many steps as the jobs have GPUs together. With idle: true, Truncated")
	p("after max_steps.\n")
	b.WriteString(sched.InfoTable(s.Info))
	p("\n## Versions\n")
	p("v1: first.\n")
	p("## Source\n")
	p("Deng et al., GPU Job Scheduler with Deep Reinforcement Learning, Canadian AI 2024, by its code")
	p("(github.com/djjbxxz/Proximity-DRL). There, time goes in steps of 241.5 s and observations are on a linear axis.")
	return b.String()
}
