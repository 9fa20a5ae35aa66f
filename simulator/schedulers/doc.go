// Package schedulers implements the schedulers of the literature. Most combine an order (which job is next), an
// admission (what happens when the first job in line does not fit), back-filling (which jobs may go before it
// meanwhile) and a placement (which GPUs). Some policies are more than such a combination. Each names its source.
//
// The files are in three layers, and each layer uses those above it:
//
//	orders      orders.go lists them; order_*.go have their keys, by what these look at
//	admission   backfill_*.go: what may start while the first in line waits, commit included
//	frame       scheduler.go passes over the queue, preempt*.go plan the passes that stop jobs; parts.go plays a policy for each
//	            virtual cluster; policy.go, config.go and the rest name, check and describe policies
//
// Below are packages that know nothing of policies: queue (waiting jobs in order), place (GPUs for jobs), attained
// (what orders of attained service note); and policies that are more than an order: rounds, delay, tuned, exact.
//
// Admission strict stops the pass at the first job that does not fit; skip steps over it; commit holds it until it
// fits, even if a better one arrives. Back-filling easy and conservative use estimated run times.
//
// A virtual cluster that owns nodes is a cluster of its own, with a policy of its own (divided). Those that share nodes
// have lines of their own, with their own admission, reservations and held job, and each keeps to its quota.
//
// Orders that preempt rank running and waiting jobs together at every arrival, finish and timer, give GPUs to the
// first in line and take them from the rest. Ties go to the earlier position in the trace.
//
// Queues are heaps keyed by the order (one for each kind of request under skip), or search trees if jobs are found by
// their estimates. A decision therefore costs the logarithm of the queue's length. Orders whose keys change with what
// runs rank classes of jobs anew: drf its users, packer the distinct demands. There are two exceptions: conservative
// back-filling makes a reservation for every waiting job that could matter, and tetris, wfp3 and unicep rank every
// waiting job when keys change; with back-filling or commit, only when the order matters. Memory grows with the jobs
// that wait or run, not with the trace.
package schedulers
