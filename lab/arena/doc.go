// Package arena holds the scenario that a configuration describes and plays policies in it: agents that are in
// training, on the validation part; checkpoints, baselines and policies of other programs, on the test part.
//
// A policy chooses what is done: an agent's checkpoint, a model, a rule, a heuristic, a planner. A player plays one
// episode of its policy in one environment; every goroutine has its own. Episodes are windows of a workload on the
// simulator, or generated or recorded ones. A game is one policy on one episode. A runner plays one queue of games over
// all policies and episodes, here, on workers of other machines, and beside external programs. Baselines are the
// policies with which agents are compared.
package arena
