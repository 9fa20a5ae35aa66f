// Package dlrm reads Alibaba's trace of GPU-disaggregated recommendation serving: the instances of 156 inference
// services over 31 days (cluster-trace-gpu-v2025 of github.com/alibaba/clusterdata, for research and study; Yang
// et al., "GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale", NSDI 2025). The instances
// live long and serve; they are a background load, or jobs to be packed. The file is a CSV table with these
// columns, in any order; times are seconds since the trace's start:
//
//	instance_sn            instance                                         ID
//	role                   HN (GPU node) or CN (CPU node)                   VC
//	app_name               service                                          Model
//	cpu_request            vCPU                                             CPUMilli
//	gpu_request            GPUs: 1 for an HN, 0 for a CN                    GPUs
//	memory_request         GiB                                              MemBytes
//	creation_time          empty = before the trace                         Submit
//	scheduled_time         empty = before the trace                         Work, from here
//	deletion_time          empty = after the trace                          Work, to here
//	cpu_limit, gpu_limit, memory_limit, rdma_request, rdma_limit (percent of a network card), disk_request,
//	disk_limit (GiB), max_instance_per_node (-1 = any)                      not used, need not be there
//
// What there is to know of it:
//
//   - Times carry the dust of binary fractions, as in 475.00000000000006: they are rounded to the nanosecond.
//   - Most instances existed before the trace or outlive it, and their run time is not known. They are left out
//     and counted, by which of their ends is missing. With Options.Window, the length of the trace, they are
//     kept instead: they exist from 0, to the end of the window.
//   - Some instances live 0 s; they are left out and counted.
//   - The wait between creation and scheduling is the recorded scheduler's and not part of Work.
//   - What an instance asks for is taken, not its limits. GPUs 0 stand, as everywhere, with GPUMilli 1000.
//   - Rows are not in order of creation_time; all of the file is in memory.
package dlrm
