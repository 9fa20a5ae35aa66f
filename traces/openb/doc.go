// Package openb reads the pod lists of Alibaba's GPU-sharing cluster "openb" (cluster-trace-gpu-v2023 of
// github.com/alibaba/clusterdata, for research and study; Weng et al., "Beware of Fragmentation: Scheduling
// GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023). A list is a CSV file with these
// columns, in any order; times are seconds since the trace's start:
//
//	name            pod                                                      ID
//	cpu_milli       thousandths of a core, of the pod                        CPUMilli
//	memory_mib      MiB, of the pod                                          MemBytes
//	num_gpu         GPUs, 0 to 8                                             GPUs
//	gpu_milli       share of each GPU in thousandths; 1000 = whole           GPUMilli
//	gpu_spec        GPU types it may run on, joined by |; empty = any        GPUTypes, each type once
//	qos             LS, Guaranteed, Burstable or BE                          Priority 3, 2, 1, 0; 0 where empty
//	pod_phase       Running, Succeeded, Failed or Pending                    Status: Completed, Failed, else unknown
//	creation_time                                                            Submit
//	scheduled_time  when a node was found; empty for a pod never placed      Work, from here
//	deletion_time                                                            Work, to here
//
// The columns from gpu_spec on are optional, the three times together.
//
// Notes on the data:
//
//   - Work is how long the pod held its resources. The phase is the last one observed: a Running pod has a deletion
//     time like the others, so its run time is complete.
//   - Pending pods were deleted before they were ever placed. They have no run time, so they are left out and counted,
//     as is a pod with a run time of 0.
//   - Pods without GPU (num_gpu 0) are jobs of cores and memory: GPUs is 0 and, as in every package, GPUMilli is 1000.
//   - A few pods are months older than the rest, which starts near 10,000,000 s. Times are not shifted.
//   - Some lists that upstream sampled from the first for static packing have no times. All their pods are submitted at
//     0 and run for an hour; Options.Static reads any list this way. Reader.Timeless reports it.
//
// Lists that were sampled with times are not in order of creation_time; the reader holds all of a list in memory.
package openb
