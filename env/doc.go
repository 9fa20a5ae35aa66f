// Package env is the contract between environments and everything that acts in them: the gym-like interface, the time
// step, and how an episode begins and ends. It contains no environment; its children implement it. env/sched builds on
// the cluster simulator simulator/sim, env/control holds problems with known answers, env/vec steps many environments
// at once, and env/envtest tests any implementation against this contract.
//
// Every scheduling environment is a semi-Markov decision process: decisions are not evenly spaced, so a time step
// carries the simulated time of its transition (Elapsed), and Spec.Tau is the simulated time over which the discount
// factor applies once.
package env
