// Package benchmark is ClusterGym-Bench: fixed scheduling tasks, scores that compare across them, and a leaderboard.
//
// A version is a list of tasks in a file of its own (v1.yaml, v2.yaml). A task is an environment with a workload, a
// cluster and a rung, what policies know of run times. Its score is 0 for uniform play and 1 for the best rule of the
// task, by the mean of the environment's metric over what is played. Version 1 plays windows, version 2 streams: draws
// of a generator with common random numbers, or a public trace in blocks, over which a score has its interval.
//
// Policies are developed on public windows or draws, from seeds in the file. Rows of the leaderboard are played on
// sealed ones, of which the file has a commitment alone until the version closes. docs/evidence/benchmark.md says how.
package benchmark
