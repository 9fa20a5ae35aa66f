// Package dagplace is DAGPlace-v1: which GPU computes the next task of a task graph? For plan generation as in
// WORL-RTGS. It implements env.Env over simulator/dag; Page describes it.
//
// Builder puts a plan together task by task and Encoder shows it to an agent. Both serve the environment, in which an
// agent learns, and the optimiser of agents/woa, in which it then generates plans.
package dagplace
