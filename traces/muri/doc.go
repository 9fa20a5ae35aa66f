// Package muri reads the traces of Muri (Zhao et al., "Multi-Resource Interleaving for Deep Learning Training", SIGCOMM
// 2022; published with its code under Apache-2.0). They are semi-synthetic: arrivals, sizes and run times come from
// virtual clusters of the Philly trace (CC BY 4.0); the authors drew the models and measured the iteration time of
// each. The header has these columns, in any order; lines end in CR LF:
//
//	job_id           ID, as written
//	num_gpu          GPUs
//	submit_time      milliseconds since the origin                                         Submit
//	iterations       Iterations
//	model_name       Model and Profile.Name, without the batch size
//	batch_size       examples in a batch on each GPU; one for each model                   Batch, times num_gpu
//	duration         milliseconds; it is iterations times iteration_time, rounded          Work
//	iteration_time   milliseconds of one iteration alone on these GPUs                     Profile
//	resource_time_0  of it on storage and CPU: input, or the simulation in learning by it  (likewise the next two)
//	resource_time_1  of it on the GPU
//	resource_time_2  of it on the network
//	priority         0 = has its resources guaranteed, 1 = opportunistic                   Priority, inverted
//	interval         the authors do not explain it                                         not used
//
// All times are milliseconds, resource times with decimals. The files do not say which resource is which, but the
// numbers show it: resource_time_2 is 0 on one GPU and grows with the gang, and resource_time_0 is largest for
// reinforcement learning, which runs a simulation. The stages overlap slightly, so their sum may exceed iteration_time.
// Job.Priority is 1 for a guaranteed job and 0 for an opportunistic one, because a larger Priority is more urgent in
// all traces.
//
// Jobs of one model and batch size share a Profile, built from all rows of the file; if rows of one size differ, the
// first counts:
//
//	Scaling  for each size n that occurs, n / iteration_time, in examples of a GPU's batch a second: every GPU has
//	         its own batch, so throughput grows with GPUs and falls with slower iterations
//	Compute  the iteration without its network stage, on the fewest GPUs that occur; never less than the GPU stage
//
// The size of the gradients and the memory are not in the file.
package muri
