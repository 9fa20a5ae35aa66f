// Package spot reads the jobs of Alibaba's trace of spot GPUs (cluster-trace-v2026-spot-gpu of
// github.com/alibaba/clusterdata, job_info_df.csv; Duan et al., "GFS: A Preemptive Scheduling Framework for GPU
// Clusters with Predictive Spot Management", ASPLOS 2026): a CSV file with these columns, in any order:
//
//	job_name      number of the job                                   ID
//	organization  cost centre: a department or an agency              VC
//	gpu_model     GPU type asked for                                  GPUTypes; empty = any
//	cpu_request   cores of one worker                                 CPUMilli, times the workers
//	gpu_request   GPUs of one worker                                  GPUs, times the workers; below 1 a share of one GPU each
//	worker_num    workers, which run together                         GPUs and CPUMilli, times this
//	submit_time   seconds since the first job                         Submit
//	duration      seconds                                             Work
//	job_type      HP (high priority) or Spot                          Group; Priority 1 for HP, 0 for Spot
//
// cpu_request may be absent, and other columns are ignored. The file says nothing of users, models, estimates and how
// jobs ended. Its list of nodes, node_info_df.csv, is one that package inventory reads.
package spot
