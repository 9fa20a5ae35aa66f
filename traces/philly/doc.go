// Package philly reads the job table of the Microsoft Philly trace: jobs of a deep learning cluster from September to
// December 2017 (Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX
// ATC 2019; data under CC BY 4.0), as the table that later work publishes. Its header has these columns, in any order:
//
//	timestamp  submit, "2006-01-02 15:04:05" on the cluster's clock, no zone    Submit
//	duration   seconds on GPUs, all attempts together                           Work
//	num_gpus   GPUs of the gang                                                 GPUs
//	gpu_time   duration times num_gpus                                          not used
//	cluster    virtual cluster                                                  VC
//
// The table has no job ids, users, models, estimates or statuses. A job's ID is the number of its row in the file, from
// 0. Times are differences of clock times as written: the first job is at 0, and one hour occurs twice, because the
// clock was set back for winter.
//
// AttemptReader reads the other table of the same trace: the scheduling attempts of the larger jobs, one row each, with
// the columns job_id, vc, num_gpus, submitted_time, attempt, start_time and end_time.
package philly
