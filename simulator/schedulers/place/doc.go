// Package place chooses GPUs for jobs that a scheduler starts, moves or resizes.
//
// A Placement finds GPUs for one job: those of package cluster, which look at what is free alone, and others, which
// look at the jobs that run (New). A Plan places several jobs on a copy of the cluster and computes the decisions that
// lead there: stops, moves and changes of size, then starts.
package place
