package workerplace

import (
	"fmt"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
)

// Page is the environment's page in Markdown, for one configuration.
func Page(c Config, s env.Spec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", ID)
	fmt.Fprintf(&b, "| | |\n|---|---|\n| Action space | Discrete(%d) |\n| Observation space | %d numbers in %d fields |\n| Steps at most | none; %d intervals |\n\n",
		s.Action.Sizes[0], s.ObsLen(), len(s.Obs), c.Limit)
	fmt.Fprintf(&b, `## Description

Distributed training jobs come to %d servers of %d GPUs, %d CPUs and %d GB each. The agent puts their workers onto servers, one by one; a gang is placed whole before another one is begun,
and jobs that run stay where they are. Jobs that share a server slow each other down, each type each other in its own way, and workers that are apart exchange gradients over the network. The agent is not
told how much: it sees what speed a job had in the last interval.

A job has one of eight types (DL2's), 1, 2, 4 or 8 workers, and takes so many intervals alone in its best placement. Workers take 2 CPUs, %d GB and, but for two types, a GPU.

## Action space

Discrete(%d): s·%d + m puts a worker of the job in slot s on server m; the last closes the interval. A worker is legal where it fits and the rest of its gang still does; once a gang is begun only its own. Closing
is legal between gangs, unless nothing runs and nothing will come while something fits. Only closing moves the clock; an interval in which nothing can be placed closes itself.

## Observation space

| field | shape | low | high | unit | meaning |
|---|---|---|---|---|---|
`, c.Servers, c.GPUs, c.CPUs, c.Memory, workerMemory, s.Action.Sizes[0], c.Servers)
	for _, f := range s.Obs {
		fmt.Fprintf(&b, "| `%s` | %v | %v | %v | %s | %s |\n", f.Name, f.Shape, f.Low, f.High, f.Unit, f.Doc)
	}
	b.WriteString("\nInfo, not for agents to act on:\n\n| field | unit | meaning |\n|---|---|---|\n")
	for _, f := range s.Info {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Unit, f.Doc)
	}
	b.WriteString(sched.Metrics(s.Info))
	fmt.Fprintf(&b, `
## Rewards

Given when intervals close. jct: minus the time for which counted jobs were unfinished, in intervals, by the number of jobs; the return of an episode that ends is minus the mean completion time, in intervals of %g s. progress (Harmony, DL2):
the sum over jobs of what they trained, as a part of their work; undiscounted it is %d for every policy.

## Starting state

An empty cluster when the first job comes. Jobs come at the beginnings of intervals, Poisson with a mean of %g, at most %d.

## Episode end

Terminated when all %d jobs have finished; Truncated after %d intervals.

## Workload

Without a workload, jobs are drawn as the arguments say. A workload is recorded jobs: of them, by order of submit, 70 %% train, 10 %% validate and 20 %% test; an episode is a window of consecutive ones, named by its number or drawn from the
seed. A worker is a GPU that the job asks for. A job comes at the end of the interval in which it is submitted; its run time is that alone in its best placement. Its type is the model that it names, of at most %d, or is drawn by a mix
of models. Speeds are DL2's, or come from a table: a CSV file (model, workers, servers, speed) or the published tables of Gavel, Sia, Pollux, ElasticFlow, Lucid and Chronus; so does what models keep beside each other.

## Tasks

| number | values | usual | meaning |
|---|---|---|---|
| arrival_rate | 0.25 to 4 | 1 | factor of the jobs an interval |
| size | 0.25 to 4 | 1 | factor of the lengths of jobs |
| servers | 0.5 to 1 | 1 | share of the servers that are in use |
| interference | 0 to 2 | 1 | factor of the exponent of what jobs keep beside each other |
| failure_rate | 0 to 0.2 | 0 | probability that a server fails in an interval, which is lost to all of its jobs |
| mix (8) | 0 to 1 | 1 | weights of the types |

## Known answer

Two jobs of one worker and one interval that keep half of their speed beside each other: apart the return is -1, together -2. Fewest jobs on a server beat balancing of load, and that beats random play.

## Speeds

Alone: workers/(compute + exchange), with DL2's figures; allreduce sends 2(w-1)/w of the model over the slowest link, ps is DL2's formula with a parameter server beside every worker. Beside others: times what is kept beside each other job on
a server, to the power of the share of its workers that the other has there, on the server where that is least, since workers wait for the slowest; with crowding a job loses more beside every two others than beside each of them. That table is drawn from its seed (table) with what DeepShare published of its measurements: from 0.123 to 1, 0.789 in the mean, 65 %% of the pairs below 0.9.

## Version history

- v1: the first.

## Source

Bao, Peng and Wu, Deep Learning-based Job Placement in Distributed Machine Learning Clusters, INFOCOM 2019; Peng et al., DL2, TPDS 2021; Yang et al., On a Meta Learning-Based Scheduler for Deep Learning Clusters, IEEE TCC 2023; the table's figures
from the code published with DeepShare.
`, c.Interval, c.Jobs, c.Arrivals, maxArrivals, c.Jobs, c.Limit, Types)
	return b.String()
}
