// Package rollout improves a scheduler by looking ahead: at each decision it plays the simulator on from the current
// state, several times for each of a few candidates, and takes another decision than the scheduler's own only where
// that is better beyond chance. It is one step of policy improvement by Monte Carlo (rollouts: Tesauro and Galperin,
// NIPS 1996; Bertsekas, Tsitsiklis and Wu, Journal of Heuristics 3, 1997).
//
// # One decision
//
// The scheduler that is improved is the base. The candidates are the base's own choice, the next jobs in its order that
// fit now, and waiting for the next event while anything runs. A rollout is a candidate in an imagined future: a fork
// of the simulator (sim.View.Fork) takes over the current state, makes the candidate's decision, and the base plays on
// until all jobs in the system and all jobs of the future have finished. Its cost is the sum of their completion times,
// or of their bounded slowdowns.
//
// All candidates play the same futures, so that their costs are compared pair by pair (common random numbers). The
// budget is spent by sequential halving (Karnin, Koren and Somekh, ICML 2013): each round plays the same number of
// further futures with every candidate left, and drops the worse half; the base's choice stays. At the end the best of
// the others replaces the base's choice if its mean gain over it, future by future, exceeds Confidence standard errors
// of that mean. So where nothing can be told apart, the schedule is the base's.
//
// # What a search knows
//
// A rollout knows what the estimates tell (sim.Estimates) and nothing of the real future. Jobs that will arrive come
// from a Source: stretches of the training part (Recorded) or of the run's own past (Past), never the run's own stream.
// An imagined future has the same number of jobs whether the run is about to end or not. On the exact rung jobs in the
// system have their run times; otherwise each future draws them from what the estimates say of a job of that age.
// Failures are drawn anew. The jobs that arrive in a future have the forecasts that they had when they were recorded.
//
// # Determinism
//
// The draws of a decision follow from the seed and from the state: the time and how many jobs have arrived, ended, wait
// and run. With a budget of rollouts the decision is the same for any number of workers. A budget of time stops between
// two futures.
package rollout
