// Package tiresias reads what was published with the simulator of Tiresias (Gu et al., "Tiresias: A GPU Cluster Manager
// for Distributed Deep Learning", NSDI 2019; Apache-2.0): the workload of its testbed, 60 jobs, and the sample of GPU
// times from which its Gittins index is computed. Both are CSV tables whose lines end in CR LF, with columns in any
// order. The workload has
//
//	job_id       number of the job                           ID
//	num_gpu      whole GPUs                                  GPUs
//	submit_time  seconds since the first job                 Submit
//	iterations   of training                                 Iterations
//	model_name   network, as in tables of tensor sizes       Model
//	duration     run time alone on these GPUs, seconds       Work
//	interval     seconds to the next job's submit            not used, need not be there
//
// and the sample one column, duration, in seconds of GPU time (run time times GPUs).
//
// A job with a duration of 0 is left out and counted. Rows are sorted by submit. The header is also valid in the native
// format, which has another name for the model's column and would read the names as labels; Sniff recognises this
// format by its columns. Package traces/inventory reads the cluster specifications published beside these files.
package tiresias
