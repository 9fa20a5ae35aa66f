// Package reward holds the reward functions of the scheduling environments. Each is documented with its unit, its
// sign, and the identity that its return satisfies on a drained episode with discount 1. W is the number of counted
// jobs, tau the environment's time unit (1 h), n a job's GPUs, G the cluster's GPUs. Only counted jobs earn or cost
// anything: the jobs that a warm start leaves running are free.
//
// No reward is clipped, because that would break the identities; agents scale rewards by the running deviation.
package reward
