// Package heuristic holds the literature's schedulers: an order (who is next) × an admission (what happens when
// the first in line does not fit) × back-filling (who may go before it meanwhile) × a placement (which GPUs); and
// policies that are more than that. One file for each, with its source.
//
// Admission strict stops the pass at the first job that does not fit; skip steps over it; commit holds it until it
// fits, even if a better one arrives. Where the cluster has virtual clusters, each has a line of its own: admission,
// reservations and the job that is held are a virtual cluster's. Back-filling easy and conservative go by estimated
// run times.
//
// Orders that preempt rank running and waiting jobs together at every arrival, finish and timer, give GPUs to the
// first in line and take them from the rest. Every tie ends with the position in the trace.
//
// Queues are heaps keyed by the order (by kind of request for skip), and search trees where jobs are looked for by
// their estimates, so a decision costs the logarithm of the queue, not the queue; conservative back-filling, which
// reserves for all that wait, is the exception. Memory follows the jobs that wait or run, not the trace.
package heuristic
