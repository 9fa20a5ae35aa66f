// Package queuerank is the environment QueueRank-v1: which job of the queue is next? The one that is chosen is held
// until it fits, as in RLScheduler (Zhang et al., "RLScheduler: an automated HPC batch job scheduler using
// reinforcement learning", SC 2020), whose machine it is: one event at a time, arrivals first, back-filling while a
// job is held.
//
// The always oldest job, chosen here, is FCFS under gymctl sim's admission commit.
package queuerank
