// Package pai reads the deadline workloads ("hydra") that were made from Alibaba's PAI trace
// (cluster-trace-gpu-v2020, data under CC BY 4.0; Weng et al., "MLaaS in the Wild", NSDI 2022) for the simulator
// of Hydra (Yang et al., "Hydra: Deadline-aware and Efficiency-oriented Scheduling for Deep Learning Jobs on
// Heterogeneous GPUs", IEEE Transactions on Computers 2023).
//
// They are half made up: a job's run time on the type of GPU that it used is as recorded, those on the other
// types are random multiples of it, deadlines are random, and all jobs arrive together. A file is a CSV table
// with these columns, in any order:
//
//	(no name)             number of the row                                    not used
//	job_name              job                                                  ID
//	norm_job_submit_time  seconds; 0 in every row of the published files       Submit
//	ddl                   deadline, seconds; inf = none                        Deadline
//	every other column    a GPU type: run time on one of them, seconds         Work and Profile.Speeds
//
// Every job has one whole GPU. Work is the run time on the reference type (Options.Reference; A100 where there is
// such a column, else the first type of the header), and Profile.Speeds gives for each type the run time on the
// reference divided by the one on it, so that a cluster's own speeds for these types do not count.
//
// The types stand in other orders in other files, and the names were given to the columns by hand: one file has
// V100 faster than GTX2080Ti, another slower. Take them as names of classes, not as those machines.
package pai
