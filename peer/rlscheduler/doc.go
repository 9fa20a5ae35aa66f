// Package rlscheduler is the simulator that the authors of RLScheduler published (Zhang et al., "RLScheduler: an
// automated HPC batch job scheduler using reinforcement learning", SC 2020; github.com/DIR-LAB/deep-batch-scheduler),
// rebuilt from its rules alone: its machine, its observation, its bounded slowdown. It shares no code with
// simulator/sim, and it is small and fast enough that a decision can be looked ahead of thousands of times.
//
// A Machine is a counter of processors. Times are whole seconds. A Policy chooses a waiting job; the job is committed
// to: if it does not fit, the clock runs until it does, and nobody is asked meanwhile. Events are handled one at a
// time, an arrival before a completion of the same second. The next decision follows a start at once where jobs wait,
// before other events of the same second.
//
// With back-filling, other jobs start while a job is held: at each event the queue is gone through in order of submit,
// and what fits and ends by its request before the held job's shadow time starts. The shadow time is when enough
// processors will be free by the requests; it is computed once.
//
// Rule and Score rank jobs. Search looks ahead on copies of the machine: it tries some of the waiting jobs, lets a base
// policy continue on futures drawn from recorded jobs, and deviates from the base only if a paired test says so.
package rlscheduler
