// Package known makes accountings of clusters whose scheduler is known, for tests of what is concluded from accountings:
// jobs are drawn, a scheduler of package schedulers plays them, and what sacct would have printed of it is written down.
//
// The jobs are those of a cluster for deep learning with users who submit the same jobs again and again, also in arrays,
// by day more than by night. Some ask for a GPU type, some need no GPU, some have no time limit, some reach theirs, and
// some are requeued in the middle of their run. The accounting ends with the last submission, so jobs still run and wait
// then. Everything follows from kind and seed.
package known
