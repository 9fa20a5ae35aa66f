// Package dag is static scheduling of a task graph on heterogeneous processors: which processor runs each task, and
// when. There is no queue, there are no arrivals, and this package decides nothing: planners (simulator/dag/listsched,
// agents/woa) and the environment env/dagplace decide, and this package computes the resulting times.
//
// The model is the usual one of the literature (Topcuoglu, Hariri and Wu, TPDS 13(3), 2002). Task i takes exec(i, g)
// seconds on processor g. An edge's bytes travel from the end of its first task to the start of its second at the
// bandwidth between their processors; they need no time if both run on the same one. There is no latency and no
// contention, and transfers overlap with computing. A processor runs one task at a time and never interrupts it. All
// processors are free at 0. The makespan is the latest end.
//
// Subpackages read files (dagjson, wfformat), convert the graphs of a trace (alibaba), generate graphs (synth) and
// plan (listsched).
package dag
