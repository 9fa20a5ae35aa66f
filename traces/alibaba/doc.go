// Package alibaba reads jobs that are task graphs from Alibaba's cluster-trace-v2018 (about 4,000 machines, 8 days;
// free for research and study) as a CSV file with a header, the form of the samples that later work publishes: one row
// for each task, the rows of a job together, jobs in order of their earliest start. The columns, found by name:
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
// Other columns (task_type, mean_instance_cpu, mean_instance_mem) are ignored.
//
// A task's name is one letter, the task's number, and _ with a number for each parent: R4_1_2 needs tasks 1 and 2 of
// its job. A suffix _StgN is not a parent. A name of another shape (task_…) is a task without parents and children. A
// parent that is not in the file, and a parent lost because the name was cut (it then ends in _), is left out of the
// graph and counted.
//
// What the file does not say, and what the reader does instead:
//
//   - A task's start_time is often that of its job, so end minus start includes the wait for its parents. Its own work
//     is mean_instance_duration if that is given. Otherwise it is the task's end less the latest end of its parents, or
//     less its start if it has none, and not below 0.
//   - Submits are not recorded: a job is submitted when its first task starts, on the trace's own clock.
//   - A job's Work is the time from its submit to the end of its last task, which is right if all its instances run at
//     once (Job.GPUs counts instances). The clock ticks in seconds: Work is 0 for one job in ten of the random sample.
//   - A job with a task that has not terminated has no Work; it is left out and counted by the task's status.
//   - Memory is relative to a machine that is not described: it is 0 bytes unless Options.MachineMem gives the
//     machine's memory.
package alibaba
