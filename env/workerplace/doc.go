// Package workerplace is WorkerPlace-v1: the workers of distributed training jobs are put onto servers one by one, and
// what shares a server slows each other down (Bao, Peng and Wu, "Deep Learning-based Job Placement in Distributed
// Machine Learning Clusters", INFOCOM 2019; Yang et al., "On a Meta Learning-Based Scheduler for Deep Learning
// Clusters", IEEE TCC 2023).
//
// Time goes in intervals. Within one, jobs that wait are placed whole, worker by worker; closing the interval moves the
// clock, and every job that runs trains at the speed that its placement gives it. Running jobs are not moved.
//
// How fast jobs run is a Speeds: Truth, made of DL2's eight job types and a table of interference that is drawn with
// the range, the mean and the share below 0.9 that DeepShare published, or whatever else is put in from above, such as
// a model that was learnt from observations. Observations never show the truth, only what was seen of it.
//
// The package does not learn. rules.go has the placement rules that schedulers are compared with.
package workerplace
