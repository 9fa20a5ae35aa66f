// Package reward holds the reward functions of the scheduling environments, each with its unit, sign and the
// identity that its return obeys on a drained episode with discount 1. W is the number of counted jobs, tau the
// time unit of the environment (1 h), n a job's GPUs, G the cluster's. Only counted jobs earn or cost anything:
// the occupants that a warm start leaves behind are free.
//
// No reward is clipped, which would break the identities; agents scale by the running deviation.
package reward
