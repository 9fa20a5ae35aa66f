// Package sacct reads what Slurm's accounting prints: the jobs of a cluster as sacct -P shows them, one record a line
// between vertical bars. Facts about its fields are from Slurm's manual (sacct(1), version 25.11). The header has these
// columns, in any order and capitals:
//
//	JobID                 123, a task of an array 123_4, a component of a heterogeneous job 123+1   ID
//	Submit                2024-03-01T12:00:00, or as SLURM_TIME_FORMAT=%s                           Submit
//	ElapsedRaw, Elapsed   seconds, [D-]HH:MM:SS: the first that is there                            Work
//	Start, End            as Submit; Work is their difference if neither of those is there
//	AllocTRES, ReqTRES    billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=64G,node=1                 GPUs, CPUMilli, MemBytes, GPUTypes
//	ReqGRES               gpu:v100:4 or gres:gpu:4, on each node                                    GPUs, GPUTypes
//	NNodes, AllocNodes    nodes, by which ReqGRES counts                                            Nodes
//	NodeList              g[1-4,7],h01                                                              Hosts
//	Eligible              as Submit; waits count from Submit all the same                           Eligible
//	NCPUS, AllocCPUS      cores                                                                     CPUMilli
//	ReqMem                64G, 4000Mc for each core, 64Gn for each node                             MemBytes
//	TimelimitRaw          minutes                                                                   Estimate
//	Timelimit             [D-]HH:MM:SS, UNLIMITED, Partition_Limit                                  Estimate
//	State                 COMPLETED, CANCELLED by 1000, …                                           Status
//	User, Partition                                                                                 User, VC
//	JobName, Account                                                                                Name, Group
//	Cluster               must be the same on all rows
//
// A document of sacct --json, of releases 21.08 to 25.05, has the same in other words (AsText). A file may be several
// of these that were joined: each header and each document has columns and a delimiter of its own.
//
// JobID, Submit, a run time and one of AllocTRES, ReqTRES and ReqGRES are required. All other columns are ignored.
//
//   - Job steps (123.batch, 123.0) are parts of jobs and are skipped.
//   - The components of a heterogeneous job start together, so they are one job of the sum of their resources.
//   - A job that was requeued has several records of one id with sacct -D. Its Submit is the first, its Work the sum of
//     its runs as in the other readers of attempts, everything else that of its last run.
//   - Rows of one run, by component, Submit and Start, count once, as dumps of periods that overlap have them. Of a row
//     that was written while the job waited or ran and one that was written later, the later one stays.
//   - Slurm gives ids again when they were reset or have reached the highest. A run is another job of the same id,
//     ID#2, if the one before was over: COMPLETED before the other's Submit; a day before it if it failed, was
//     cancelled or has no state, or at once if name or GPUs differ; a month before it if nodes failed or it was
//     preempted; a year before it if it was REQUEUED.
//   - GPUs are those allocated, else those requested; gres/gpu counts all GPUs, gres/gpu:TYPE those of a type among
//     them. GPUTypes are the types requested: a type that was merely allocated restricts nothing.
//   - Elapsed goes before End less Start, since it leaves out the time for which a job was suspended.
//   - Jobs that did not start, have not ended or have no run time are left out and counted. Options.Unended gives those
//     that were running or waiting when sacct was asked; a row of tasks of an array that wait is then a job for each.
//
// The VC of a job is its partition, which is a set of nodes with a queue as VCs are. Its account is the group of users
// that pays for it. QOS says who may use how much; jobs have no field for it.
package sacct
