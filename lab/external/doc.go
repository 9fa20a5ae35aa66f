// Package external plays simulations whose scheduler is another program: a client of the bridge that sees the whole
// queue and decides at every point, by the operations simulate and decide of docs/reference/wire.md.
//
// A request to simulate opens several plays of one workload on one cluster (Args), each with a policy of package
// schedulers or with the client's own. Every request to decide brings the client's decisions at the points that the
// last reply showed, and its reply shows the next ones (play.go, news.go). The simulator checks every decision
// (decide.go); an impossible one ends its own play with a sentence, and no other.
//
// What a client sees of a job is what the estimates allow (sim.Estimates): no byte that is sent depends on a run time
// before it has had a consequence, except on the rungs noisy and exact.
package external
