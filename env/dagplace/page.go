package dagplace

import (
	_ "embed" // the page's template

	"clustergym/env"
	"clustergym/env/page"
)

//go:embed page.md
var text string

// Page returns the environment's page for configuration cfg and specification s, as Markdown.
func Page(cfg Config, s env.Spec) string { return page.Of(text, cfg, s, nil) }

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
