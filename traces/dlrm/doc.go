// Package dlrm reads Alibaba's trace of GPU-disaggregated recommendation serving: the instances of 156 inference
// services over 31 days (cluster-trace-gpu-v2025 of github.com/alibaba/clusterdata, for research and study; Yang et
// al., "GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale", NSDI 2025). The instances are
// long-lived services: use them as a background load, or as jobs to pack. The file is a CSV table with these columns,
// in any order; times are seconds since the trace's start:
//
//	instance_sn            instance                                         ID
//	role                   HN (GPU node) or CN (CPU node)                   VC
//	app_name               service                                          Model and Name
//	cpu_request            vCPU                                             CPUMilli
//	gpu_request            GPUs: 1 for an HN, 0 for a CN                    GPUs
//	memory_request         GiB                                              MemBytes
//	creation_time          empty = before the trace                         Submit
//	scheduled_time         empty = before the trace                         Work, from here
//	deletion_time          empty = after the trace                          Work, to here
//	cpu_limit, gpu_limit, memory_limit, rdma_request, rdma_limit (percent of a network card), disk_request,
//	disk_limit (GiB), max_instance_per_node (-1 = any)                      not used, need not be there
//
// Notes on the data:
//
//   - Times have rounding errors of binary fractions, as in 475.00000000000006, so they are rounded to the nanosecond.
//   - The run time of most instances is not known, because they existed before the trace or outlived it. They are left
//     out and counted by which end is missing. Options.Window, the length of the trace, keeps them instead: they then
//     start at 0 or end at the end of the window.
//   - Some instances live 0 s; they are left out and counted.
//   - The wait between creation and scheduling was caused by the recorded scheduler and is not part of Work.
//   - Demands are the instance's requests, not its limits. As in every package, GPUMilli is 1000 where GPUs is 0.
//   - Rows are not in order of creation_time; the reader holds all of the file in memory.
package dlrm
