package policymix

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
	p("Which scheduler acts now? The agent chooses among %d orders of the literature; the one that is chosen acts over the whole", len(Policies()))
	p("queue until the next choice.\n")
	p("## Description\n")
	p("An episode is a window of W = %d consecutive jobs of a workload on a cluster of GPUs, as in JobSelect-v1. A choice holds for", cfg.Window)
	p("%v (hold); the next is at the first instant after it when a job that waits fits.\n", cfg.Hold)
	p("## Action space\n")
	p("Discrete(%d), all legal\n", s.Action.Sizes[0])
	p("| action | scheduler, admission skip |")
	p("|---|---|")
	for i, name := range Policies() {
		p("| %d | %s |", i, name)
	}
	p("\n## Observation space\n")
	p("float32, every element in [0, 1]; fields in this order in the flat vector of %d.\n", s.ObsLen())
	p("| field | shape | unit | content |")
	p("|---|---|---|---|")
	for _, f := range s.Obs {
		p("| %s | %v | %s | %s |", f.Name, f.Shape, f.Unit, f.Doc)
	}
	p("\nn = GPUs of a job, G of the cluster, e = its estimated run time, L(x) = ln(1+x/60 s)/ln(1+14 d/60 s) and")
	p("C(k, m) = ln(1+k)/ln(1+m), both cut to [0, 1]. The backlog is all that waits.\n")
	b.WriteString(encode.ForecastSection("a field forecast is added, whose 14 numbers are means over the jobs that wait", true))
	p("## Reward\n")
	p("As JobSelect-v1: %s here. Always the same choice earns what gymctl sim makes of that policy, exactly.\n", cfg.Reward)
	p("## Discount\n")
	p("gamma applies once per tau = %v of simulated time: a transition that takes t is discounted by gamma^(t/tau), which", s.Tau)
	p("info.discount says.\n")
	p("## Start\n")
	p("As JobSelect-v1: windows of the first 70 %% of the workload are for training, of the next 10 %% for validation, of the last 20 %%")
	p("for tests; load %g, %d jobs before the window fill the cluster. Windows whose horizon passes before the first decision are skipped.\n", cfg.Load, cfg.Warm)
	p("## End\n")
	p("Terminated when all counted jobs have finished. Truncated at horizon (simulated time) or after max_steps.\n")
	b.WriteString(sched.InfoTable(s.Info))
	p("\n## Versions\n")
	p("v1: first.\n")
	p("## Source\n")
	p("Improper learning over given schedulers; the policies are those of the literature, see gymctl sim.")
	return b.String()
}
