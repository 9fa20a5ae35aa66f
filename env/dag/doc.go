// Package dag is static scheduling of a task graph on heterogeneous processors: who computes what, and when. There is
// no queue, there are no arrivals, and nothing is decided here: planners (env/dag/listsched, agents/woa) and the
// environment env/dagplace decide, and this package says what follows.
//
// The model is the usual one of the literature (Topcuoglu, Hariri and Wu, TPDS 13(3), 2002): task i takes exec(i, g)
// seconds on processor g; an edge's bytes travel from the end of its first task to the start of its second at the
// bandwidth between their processors, and need no time where both are the same; there is no latency and no contention,
// transfers overlap with computing; a processor does one task at a time and never interrupts it; all processors are
// free at 0. The makespan is the latest end.
//
// Children read files (dagjson, wfformat), take the graphs of a trace (alibaba) and generate graphs (synth).
package dag
