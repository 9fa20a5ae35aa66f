// Package rlscheduler is the environment in which RLScheduler's published agent decides (Zhang et al., SC 2020, by its
// program): QueueRank-v1, but for when the agent is asked, which jobs it sees of a long queue and in which order, and
// the arithmetic of waits. It equals that program decision by decision and bit by bit.
//
// QueueRank-v1 with the key env.peer is the older form of this environment: its runs and checkpoints keep that name.
package rlscheduler
