// Package queuerank is the environment QueueRank-v1: the agent chooses which waiting job is next, and the chosen job is
// held until it fits. It follows RLScheduler (Zhang et al., "RLScheduler: an automated HPC batch job scheduler using
// reinforcement learning", SC 2020) and its machine: one event at a time, arrivals first, back-filling while a job is
// held.
//
// An agent that always chooses the oldest job plays FCFS as gymctl sim does with admission commit.
package queuerank
