// Package benchmark is ClusterGym-Bench: scheduling tasks with fixed windows, scores that compare across them, and a
// leaderboard.
//
// A version is a list of tasks in a file of its own (v1.yaml). A task is an environment with a generated workload, a
// cluster and a rung, what policies know of run times. Its score is 0 for uniform play and 1 for the best rule of the
// task, by the mean of the environment's metric over the windows that are played.
//
// Policies are developed on public windows, drawn from seeds in the file. Rows of the leaderboard are played on sealed
// windows, of which the file has a commitment alone until the version closes. docs/evidence/benchmark.md says how.
package benchmark
