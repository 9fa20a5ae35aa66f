package delayoffer

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
	p("Does a job take GPUs that lie in one rack, or in several, or does it wait for nearer ones? Dally's delay scheduling with an")
	p("agent in place of its timers.\n")
	p("## Description\n")
	p("An episode is a window of W = %d consecutive jobs of a workload, from an empty cluster. Gangs hold their GPUs for a lease", cfg.Window)
	p("of %v. In a pass the free GPUs, and those whose leases have run out, are offered to the jobs that wait and those whose", cfg.Lease)
	p("leases have run out, the one with the lowest Nw_sens first (the mean rate of its time on GPUs; 0 before its first start), or with")
	p("ask: las the one with the least GPU-time so far; then the one that has waited longest. A job is offered the nearest tier that")
	p("holds it: a machine, which it takes unasked, a rack, or the network. The agent answers for those two. There is a pass whenever a")
	p("job arrives or finishes, a lease runs out, or a timer of the policy dally does.\n")
	p("## Action space\n")
	p("Discrete(2)\n")
	p("| action | meaning | legal |")
	p("|---|---|---|")
	p("| 0 | decline: the job is not asked again at this instant | something runs, has been accepted or will arrive, or a timer of the rule has not run out |")
	p("| 1 | accept | always |\n")
	p(sched.Illegal + "\n")
	p("## Observation space\n")
	p("float32, every element in [0, 1]; fields in this order in the flat vector of %d.\n", s.ObsLen())
	p("| field | shape | unit | content |")
	p("|---|---|---|---|")
	for _, f := range s.Obs {
		p("| %s | %v | %s | %s |", f.Name, f.Shape, f.Unit, f.Doc)
	}
	p("\nn = GPUs of the job, G of the cluster, L(x) = ln(1+x/60 s)/ln(1+14 d/60 s), C(k, m) = ln(1+k)/ln(1+m), cut to [0, 1]. With")
	p("estimates: none the time run replaces what remains, and the share done is 0.\n")
	b.WriteString(encode.ForecastSection("field job has 14 numbers more", false))
	p("## Reward\n")
	p("The rate is −N/(W·tau), N being the jobs submitted and not finished: an episode's return is −(mean JCT)/tau with gamma 1. Slow")
	p("places stay longer, so communication counts. With relative: true what the policy dally, with the timers below, would earn on the")
	p("same jobs at the same time is taken off: the return is the mean JCT that is saved against it.\n")
	p("## Discount\n")
	p("gamma applies once per tau = %v of simulated time: a transition that takes t is discounted by gamma^(t/tau), which", s.Tau)
	p("info.discount says.\n")
	p("## Start\n")
	p("Training: the window's first job is drawn uniformly from the first 70 %% of the workload; evaluation: disjoint windows in")
	p("order from the next 10 %% (validation) or the last 20 %% (test). Submit times are stretched so that")
	p("Σ n·work / (G·span) = load (%g; 0 = as recorded). The first observation is at the first offer of a rack or the network. A", cfg.Load)
	p("window without one is skipped: the seed draws up to 100, then the first window of the part that has an offer is taken. A window")
	p("that is named is never exchanged: a reset of one without an offer is an error.\n")
	p("## End\n")
	p("Terminated when all jobs have finished. Truncated after max_steps.\n")
	b.WriteString(sched.InfoTable(s.Info))
	p("\n## Versions\n")
	p("v1: first.\n")
	p("## Source\n")
	p("Sharma et al., arXiv 2401.16492; the rules as in gymctl sim --policy dally.")
	return b.String()
}
