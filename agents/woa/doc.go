// Package woa plans task graphs by whale optimisation: a population of plans moves towards the best one.
//
//	direct   plain whale optimisation (Mirjalili and Lewis, Advances in Engineering Software 95, 2016) of a vector with one
//	         number for each task, whose whole part is its processor
//	greedy   RTGS: plans move in running-time space, and a greedy generator makes plans of positions (Du et al., J.
//	         Supercomputing 81(8), 2025, after its authors' published code)
//	policy   WORL-RTGS: the same, and a learned policy makes the plans (Du et al., Big Data and Cognitive Computing 9(11),
//	         2025)
//
// The position of a task is the load of its processor: of all its work (Position final, the released code's reading) or
// of its work up to and including the task (prefix, which the generator compares it with). One iteration gives every
// whale except the leader a hope, the desired position of each task (env/dagplace: Pull, Hopes), from which a generator
// makes a plan. The leader, the plan with the least makespan, is kept.
//
// With Space ranks (ours), whales are priorities instead: upward ranks with noise, from which HEFT's rule makes a plan,
// from the first task to the last or from the last to the first. Some tasks leave out the GPU on which they would end
// first: they take the second, third or fourth or, with generator policy, half of them another one that the policy
// chooses (by hopes in running-time space as above). A whale that looks elsewhere is drawn anew around the ranks, one
// that encircles the leader changes ranks of it, and one on the spiral changes ranks and GPUs of tasks that determine
// the leader's makespan.
//
// Hopes leaves a part out, to show what it does. In running-time space random draws every task's hope uniformly, up to
// the leader's largest position, and leader wishes for the leader's own positions. In rank space random draws every
// whale anew, and leader lets none look elsewhere.
//
// It differs from the published code on purpose: whales as good as the leader move like all others (there, the
// population shrinks and the program can fail or hang if several tie); edges carry data; tasks are placed in the order
// of falling upward rank (Order index is theirs) and may go into gaps (Insert false is theirs).
//
// Every whale has its own random stream in each iteration, so the number of workers changes nothing but speed.
package woa
