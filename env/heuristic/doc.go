// Package heuristic holds the literature's schedulers: an order (who is next) × an admission (what happens when
// the first in line does not fit) × a placement (which GPUs). One file for each order, with its source.
//
// Admission strict stops the pass at the first job that does not fit; skip steps over it. Orders that preempt
// rank running and waiting jobs together at every arrival, finish and timer, give GPUs to the first in line and
// take them from the rest. Every tie ends with the position in the trace.
//
// Gavel, Themis, Optimus and Gandiva are no orders: they decide in rounds or leases who runs, on how many GPUs and of
// which type (rounds, seats), from fair shares, auctions, marginal gains and turns.
//
// Queues are heaps keyed by the order (by kind of request for skip), so a decision costs the logarithm of the
// queue, not the queue.
package heuristic
