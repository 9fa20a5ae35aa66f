// Package acme reads the trace of the Kalos cluster of Shanghai AI Laboratory's Acme data centre (Hu et al.,
// "Characterization of Large Language Model Development in the Datacenter", NSDI 2024; data under CC BY 4.0) as others
// converted it for a simulator of network-bound training. It has the completed GPU jobs of the types pretraining,
// fine-tuning (SFT) and other. It lacks the failed and cancelled jobs, which take most of the GPU time in the whole
// log. The file is a CSV table with these columns, in any order:
//
//	job_id                     number of the job                                       ID
//	arrival_time               seconds since the first job of the table                Submit
//	num_iteration              run time in half seconds, rounded down                  Work
//	gpu_workers                nodes                                                   GPUs, together with the next
//	gpu_per_worker             GPUs on each node
//	cpu_per_gpu_worker         cores for each GPU                                      CPUMilli, times all GPUs
//	tensorsizes                main memory on each node in units of 100 GB; 5 = not    MemBytes, times all nodes
//	                           known
//	iteration_networking_time  0.75 for pretraining, 0.25 for the others               Model and Name "Pretrain", or ""
//	iteration_computing_time, ps, cpu_per_ps_worker, profiled_network                  not used
//
// The last seven are optional. The columns are named after what that simulator used them for, but they hold what its
// conversion put there:
//
//   - An iteration was set to 0.5 s for every job, so num_iteration is the recorded run time and says nothing about
//     iterations: Iterations stays 0. iteration_computing_time is 0.5 s times the recorded share of the run time during
//     which the GPUs were held, not a measurement.
//   - cpu_per_gpu_worker is the job's cores divided by its GPUs: jobs of one, two and eight GPUs on a node all had 120
//     cores there.
//   - tensorsizes is the memory of one node's part of the job divided by 100, or 5 if it was not known. The table has
//     no sizes of tensors or gradients, so jobs have no Profile.
//   - Network times and speeds are constants that depend on the type of the job only.
//
// A job whose run time is below half a second is left out and counted. The status of every job is Completed. There are
// no users or virtual clusters.
package acme
