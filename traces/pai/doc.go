// Package pai reads the deadline workloads ("hydra") that were made from Alibaba's PAI trace
// (cluster-trace-gpu-v2020, data under CC BY 4.0; Weng et al., "MLaaS in the Wild", NSDI 2022) for the simulator
// of Hydra (Yang et al., "Hydra: Deadline-aware and Efficiency-oriented Scheduling for Deep Learning Jobs on
// Heterogeneous GPUs", IEEE Transactions on Computers 2023).
//
// They are half synthetic: a job's run time on the GPU type that it used is recorded, the run times on the other types
// are random multiples of it, deadlines are random, and all jobs arrive together. A file is a CSV table with these
// columns, in any order:
//
//	(no name)             number of the row                                    not used
//	job_name              job                                                  ID
//	norm_job_submit_time  seconds; 0 in every row of the published files       Submit
//	ddl                   deadline, seconds; inf = none                        Deadline
//	every other column    a GPU type: run time on one of them, seconds         Work and Profile.Speeds
//
// Every job has one whole GPU. Work is the run time on the reference type (Options.Reference; the default is A100 if
// there is such a column, else the first type of the header). Profile.Speeds gives for each type the run time on the
// reference divided by the run time on that type, so a cluster's own speeds for these types do not count.
//
// The order of the types differs between files, and the columns were named by hand: V100 is faster than GTX2080Ti in
// one file and slower in another. Treat the names as classes, not as those GPUs.
package pai
