// Package kube watches and steers the jobs of a Kubernetes cluster: batch/v1 Jobs, Kueue's Workloads, and pods on their
// own, as far as they ask for GPUs. It speaks plain HTTPS and JSON with the API server (get, list, watch, merge patch).
//
// # What it writes
//
// A hold is spec.suspend of a Job that has not started; a start is one patch that takes spec.suspend back and narrows
// the nodes of its pods. A pod that was created with the scheduling gate clustergym/gate starts when that gate is
// removed. A rank is spec.priority of a Kueue Workload. Nothing else is written, PriorityClasses least of all.
//
// Every write marks the object with an annotation in the same patch, so that another process finds it:
//
//	clustergym/held      on a Job or Workload that we hold back
//	clustergym/freed     on what we have let start: the host names that we have narrowed its nodes to, * = none
//	clustergym/requeues  on a Job: how often we have stopped it
//	clustergym/rank      on a Workload: the score, the priority written for it and the one that was there before
//
// An owner hands a Job over by creating it suspended with the label clustergym/gate, or a pod with that scheduling
// gate. A Job that was suspended without the label is its owner's, and is left alone.
package kube
