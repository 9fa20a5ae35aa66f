// Package sched turns the cluster simulator into decision processes: simulator + actions + encoder + reward.
// It states what those three are; packages env/encode and env/reward implement them, and packages such as
// env/jobselect put an environment together.
//
// # Decision points
//
// After all events of an instant the agent is asked if a visible job can start now; else the clock goes on and
// reward accumulates. A start does not move the clock: the agent acts again until it waits or nothing visible
// fits. Waiting goes to the next event; it is illegal when nothing runs and nothing will arrive. With the queue
// empty and no arrival left, the same step runs on to the last finish.
//
// # Episodes
//
// An episode is a window of consecutive jobs whose submit times are stretched so that the offered load is the
// configured one. The jobs before it run under FIFO skip until its first submit; those then running stay as
// occupants that are not counted, those waiting leave. An episode terminates when all counted jobs have
// finished, and is truncated at the horizon or after the maximum of steps.
//
// # Reward
//
// A reward is a rate per second that only events change, plus lumps at events, so its integral between two
// decisions is exact. Discounting is over simulated time: gamma applies once per Tau. What accumulates before
// the first decision is paid, undiscounted, with the first transition.
package sched
