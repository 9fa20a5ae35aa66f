// Package env is the contract between environments and everything that acts in them: the gym-like interface,
// what a time step is and how an episode begins and ends. It holds no environment. The children implement it:
// env/sched over the cluster simulator env/sim, env/control for problems with known answers; env/vec steps
// many at once, and env/envtest holds any implementation against this contract.
//
// Every scheduling environment is a semi-Markov decision process: decisions are not evenly spaced, so a time
// step carries the simulated time of its transition (Elapsed), and Spec.Tau says over which time the discount
// factor applies once.
package env
