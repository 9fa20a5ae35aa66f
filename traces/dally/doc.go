// Package dally reads, writes and generates workloads of Dally's simulator (Sharma et al., arXiv 2401.16492;
// github.com/aakash-sharma/cluster-sim): jobs of a trace of SenseTime's Helios clusters to which the authors gave one
// of six models, a number of iterations and the time of one of them on one GPU.
//
// A file is a CSV whose header has at least
//
//	job, arrival, gpus, model, iterations, time_per_iteration
//
// arrival and time_per_iteration are in seconds. iterations counts those of all GPUs together, so iterations ×
// time_per_iteration is the job's GPU-seconds. Job.Work is that divided by gpus: the run time if communication cost
// nothing. A column job_group gives Job.Group. Other columns are ignored; rows may come in any order.
package dally
