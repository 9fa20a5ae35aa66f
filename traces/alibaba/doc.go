// Package alibaba reads jobs that are task graphs from Alibaba's cluster-trace-v2018 (about 4,000 machines, 8 days;
// free for research and study) in the form of a CSV file with a header, as later work passes samples of it on: one
// row for each task, the rows of a job together, jobs in order of their earliest start. The columns, found by name:
//
//	task_name               name and number of the task and its parents, see below  Task.Name, Graph.Edges
//	instance_num            parallel instances                                      Task.Instances; their sum is Job.GPUs
//	job_name                                                                        Job.ID
//	status                  Terminated, Failed, Running, Waiting …                  see below
//	start_time, end_time    seconds                                                 Job.Submit, Job.Work, Task.Work
//	plan_cpu                100 = one core, of one instance                         CPUMilli of task and job
//	plan_mem                percent of a machine's memory, of one instance          MemBytes, with Options.MachineMem
//	mean_instance_duration  seconds, in files with measured usage only              Task.Work
//
// Others (task_type, mean_instance_cpu, mean_instance_mem) are passed over.
//
// A task's name is one letter, its number, and _ with a number for each parent: R4_1_2 needs the tasks 1 and 2 of
// its job. An ending _StgN is no parent. Names of another shape (task_…) are of tasks without parents that nobody
// depends on. A parent that the file does not have, and one that a cut name has lost (it then ends in _), is left
// out of the graph and counted.
//
// What the file cannot tell, and what is done:
//
//   - A task's start_time is often that of its job, so end minus start contains the wait for its parents. Its own
//     work is its end less the latest end of its parents, or less its start where it has none, and not below 0;
//     where mean_instance_duration is given, that.
//   - Submits are not recorded: a job is submitted when its first task starts, on the trace's own clock.
//   - A job's Work is the time from then to its last task's end, which holds with all its instances at once (Job.GPUs,
//     instances counted where GPUs are). The clock ticks in seconds: Work is 0 for one job in ten of the random sample.
//   - A job with a task that has not terminated has no such time; it is left out and counted, by the task's status.
//   - Memory is given relative to a machine that is not described: 0 bytes unless Options.MachineMem says how large.
package alibaba
