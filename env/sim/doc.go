// Package sim is a discrete-event simulation of jobs on a cluster: events out, decisions in. It calls nobody
// back: Advance runs until something has happened and returns that point in time; the caller takes decisions
// (Apply) until it waits, and advances again. Run does this for a Scheduler.
//
// # Time and order
//
// Simulated time is an integer time.Duration since the trace's origin. At one instant job finishes come first,
// then arrivals, then timers; finishes in the order in which the jobs were started, arrivals in the order of
// the trace. Then there is one decision point for the instant. It ends only when the policy waits, so a
// preemptive policy is asked on a full cluster too. At one point a job may be started or stopped once, so a
// point always ends. A job without work finishes in the instant in which it starts, which makes a second point
// at the same time.
//
// # Work
//
// A job's work is its run time alone on the GPUs asked for, at reference speed and best placement. It
// progresses at rate = speed of its slowest GPU × communication factor. What is left of it is a float64 of
// nanoseconds, brought up to date only when its rate changes; it finishes at now + ⌈left/rate⌉, and that
// completes it by definition. So at rate 1 times are exact (for work below 2^53 ns, 104 days), and else within
// 1 ns for each change of rate. Preemption keeps all progress; Config.Restart is added to what is left
// whenever a job is started again.
//
// # End
//
// The run ends when every job has finished, or at Config.Horizon, where unfinished jobs stay visible in the
// View. Waiting is refused (ErrWait) when nothing runs, nothing will arrive and no timer is set while a job
// waits: nothing would ever happen. Jobs that can never fit the cluster are refused as they are read, counted
// and named (Refused).
package sim
