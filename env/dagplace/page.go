package dagplace

import (
	"fmt"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
)

// ArgWords are, for each setting, what it can be and what it means.
func ArgWords() map[string][2]string {
	return map[string][2]string{
		"graph":     {"layered, fork-join, erdos, training, instances", "kind of graph"},
		"tasks":     {"1 to 100000", "n, its tasks; of training about so many"},
		"degree":    {"0 to 1000", "parents of a task on average"},
		"ccr":       {"0 to 1000", "mean transfer time over mean run time"},
		"gpus":      {"1 to 10000", "m"},
		"speeds":    {"equal, spread, busy or idle", "how fast the GPUs are; busy and idle = what is left beside the load of machines"},
		"links":     {"equal, racks or random", "bandwidths between GPUs"},
		"vary":      {"true or false", "every episode draws the kind, up to tasks tasks, degree, transfers and platform (with slots, up to gpus GPUs) anew"},
		"order":     {"index or rank", "in which tasks are placed: by index or by falling upward rank, parents always first"},
		"insertion": {"true or false", "tasks may go into gaps between those of a GPU"},
		"reward":    {"hope or makespan", "what is paid"},
		"slots":     {"0, or 2 to 1024", "GPUs that are offered: half of them where the task ends earliest, half nearest to the hope; 0 = all"},
		"hopes":     {"random, search or nothing (random)", "the plans that hopes are drawn from: random ones, or such as a search has late on, where a few tasks are not where they end first"},
		"scale":     {"leader or local", "unit of times: the leader's makespan, or the task's mean run time and from its earliest end on"},
		"max_steps": {"0 or more; 0 = none", "truncate after so many tasks"},
	}
}

// Page describes the environment with configuration cfg and specification s, in the manner of Gymnasium's pages, as
// Markdown.
func Page(cfg Config, s env.Spec) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("# %s\n", s.ID)
	p("Which GPU computes the next task of a task graph? The agent places the tasks one by one, in a topological order. For")
	p("plan generation as in WORL-RTGS.\n")
	p("## Description\n")
	p("An episode builds one plan of a graph (%s, n = %d tasks, degree %g) on m = %d GPUs. Task i takes W(i)/C(g) seconds on", cfg.Graph, cfg.Tasks, cfg.Degree, cfg.GPUs)
	p("GPU g; what it sends to a task on another GPU takes its bytes over the bandwidth between them. A GPU does one task at")
	p("a time, in the order in which they are placed (insertion: true: in gaps too).\n")
	p("The plan is one step of a whale optimiser in running-time space: every task has a hope, the load of its GPU, itself")
	p("included, that it is wished to have. Hopes lie around the position of a leader (the plan of HEFT, of makespan F), or")
	p("of a random plan early on, at a multiple of its distance from the current plan, a random one.\n")
	p("## Workload\n")
	p("Without a workload, graphs and platforms are drawn as the arguments say. A workload is recorded task graphs (WfCommons, Alibaba's")
	p("cluster-trace-v2018, the TPC-H queries of Decima, dag JSON), a platform, or both. Of the graphs, in their order, 70 %% train, 10 %%")
	p("validate and 20 %% test; an episode is one graph, named by its window or drawn from the seed, and takes as many steps as it has tasks.")
	p("A graph runs on the processors of its file, else on the given platform, else on drawn ones; actions beyond its processors are masked.")
	p("On drawn processors the recorded bytes are scaled to ccr; where none are recorded, they are drawn.\n")
	p("## Action space\n")
	p("Discrete(%d): the GPU of the next task (with slots: the slot).", s.Action.Sizes[0])
	p("Legal: able to run it. " + sched.Illegal + "\n")
	p("## Observation space\n")
	p("float32; fields in this order in the flat vector of %d. Times are in units of F, cut at 4 (scale: local: in the task's", s.ObsLen())
	p("mean run time).\n")
	p("| field | shape | low | high | unit | content |")
	p("|---|---|---|---|---|---|")
	for _, f := range s.Obs {
		p("| %s | %v | %v | %v | %s | %s |", f.Name, f.Shape, f.Low, f.High, f.Unit, strings.ReplaceAll(f.Doc, "|", "\\|"))
	}
	p("\n## Reward\n")
	p("| reward | of a step | at the end |")
	p("|---|---|---|")
	p("| hope | −\\|hope − (load + W/C)\\|/F | + (makespan of the current plan − makespan of the new one)/F |")
	p("| makespan | minus the growth of the latest end, /F | nothing more: the return is exactly −makespan/F |")
	p("\nHere: %s. Discount per step; there is no clock. Agents learn with 0.9, or 1 with reward makespan.\n", cfg.Reward)
	p("## Start\n")
	p("Graph, platform, current plan and hopes are drawn from the seed; nothing is placed.\n")
	p("## End\n")
	p("Terminated when every task is placed; Truncated after max_steps tasks.\n")
	p("## Known answers\n")
	p("With reward makespan, a chain of two tasks with W = 10 on two GPUs with C = 1, a transfer of 5 s and F = 20: both on one GPU −1,")
	p("on both −1.25. By default, and with that reward, random plans return −4.4 on average, the GPU nearest to the hope −4.1")
	p("(hopes are far from the leader early on), and the earliest end −1.0.\n")
	b.WriteString(sched.InfoTable(s.Info))
	p("\n## Versions\n")
	p("v1: first.\n")
	p("## Source\n")
	p("Du, Wu, Hou, Nie, Song: Efficient Scheduling for GPU-Based Neural Network Training via Hybrid Reinforcement Learning and")
	p("Metaheuristic Optimization, Big Data and Cognitive Computing 9(11), 284 (2025), doi 10.3390/bdcc9110284. Hopes follow the")
	p("authors' published code; state, action and reward of their DDQN are not public and are a reconstruction here.")
	return b.String()
}
