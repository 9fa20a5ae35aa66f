// Package sched turns the cluster simulator into decision processes: simulator + actions + encoder + reward. It
// declares the interfaces of those three parts; packages env/encode and env/reward implement them, and packages such as
// env/jobselect assemble an environment. It also holds what every scheduling environment needs: the life cycle (Shell),
// the jobs of an episode (Session, Workload), heuristics on the same episodes (Arena, Baseline) and simple rules
// (Rule).
//
// # Decision points
//
// After all events of an instant the agent is asked if a visible job can start now. Otherwise the clock advances and
// reward accumulates. A start does not move the clock: the agent acts again until it waits or no visible job fits.
// Waiting advances to the next event; it is illegal when nothing runs and nothing will arrive. When the queue is empty
// and no job is left to arrive, the step runs on to the last finish.
//
// Where running jobs can be stopped (Parts.Stops), the agent is also asked if none fits, but one can be stopped while
// another waits. Its GPUs are free for the next decision of the same instant; it waits from the next instant on. What a
// stop costs is the simulator's business (sim.Config.Overhead). Nobody is asked because a job has just run long enough
// to be stopped: an instant without an arrival or a finish has no decision, so that every episode ends, whatever the
// agent does. In Drained episodes the jobs of the warm-up are never stopped, because nobody would count what it costs
// them; schedulers that play in the agent's place stop none either, if they are Keepers.
//
// # Episodes
//
// An episode is a window of consecutive jobs whose submit times are stretched to the configured load. There are three
// kinds (Mode):
//
// In Drained episodes, those of version 1, the jobs before the window run under FIFO skip until its first submit. Those
// running then stay as occupants that are not counted; those waiting leave. The episode terminates when all counted
// jobs have finished.
//
// Ongoing episodes, those of version 2, are stretches of time of a cluster in operation. The jobs before the window run
// under the rule of the warm-up (Config.Ahead), and those that run or wait at its first submit are the agent's. The
// episode is truncated when the first job after the window arrives, which is the first submit of the next window. Its
// end is not the end of anything, so learners add the value of the state there. Rewards are integrals over time: summed
// over consecutive stretches under one policy they are those of the whole run, however it is cut, and by Little's law
// the mean over jobs.
//
// Streamed episodes are those of evaluations: the policy plays all jobs, from the empty cluster on.
//
// Every episode is truncated at the horizon or after the maximum number of steps.
//
// # Facts
//
// An Env can also follow a cluster that another scheduler runs (Facts). It shows what an agent would be shown there,
// and imagines what follows from its actions (Imagination). There is nothing to win: no reward, no baseline, no end.
//
// Environments whose agents only start jobs end with the last start (Parts.Starts), and may begin on an empty cluster
// (Parts.Cold).
//
// # Pilots
//
// An action may be more than one decision: PolicyMix-v1 chooses who decides for an hour, QueueRank-v1 a job that is
// waited for. Then a scheduler decides between two actions (Pilot).
//
// # Reward
//
// A reward is a rate per second that changes only at events, plus lump sums at events, so its integral between two
// decisions is exact. Discounting is over simulated time: gamma applies once per Tau. What accumulates before the first
// decision is paid, undiscounted, with the first transition.
//
// An environment that pays for decisions instead has a Score of its own: GPUPick-v1 for every placement, QueueRank-v1
// for the whole window. DelayOffer-v1 has one because its integral is computed in seconds: the other rounds otherwise,
// and rewards do not change.
package sched
