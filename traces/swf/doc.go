// Package swf reads and writes logs in the Standard Workload Format of the Parallel Workloads Archive (version 2.2,
// Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999): header lines
// after a semicolon, then one job a line in 18 blank-separated fields, -1 where unknown. The logs are free for
// research; publications acknowledge the archive and the person named in the log's header.
//
// The fields become these fields of a job; Reader.Record returns all 18 unchanged:
//
//	1 job number        ID, as written
//	2 submit, s         Submit: the log's own clock, not shifted
//	3 wait, s           Started and Waited; nothing else depends on it
//	4 run time, s       Work; a job with none (0 or -1) is dropped and counted, with Options.Zero only those with -1
//	5, 8 processors     GPUs: those allocated, else those requested (Options.Requested reverses this); a job with
//	                    neither is dropped and counted
//	7, 10 memory, KB    MemBytes, times the processors: what was requested for each, else what each used
//	9 requested time, s Estimate; 0 where unknown
//	11 status           1 and 3 Completed, 0 and 4 Failed, 5 Cancelled, others StatusUnknown
//	12 user             User, as written, "" where unknown
//	13 group            Group and VC (with Options.Queue VC is 15, the queue), likewise
//	14 executable       Name and Model, as written, if the number is positive
//
// A job runs on whole processors, which Job.GPUs counts. Partitions, preceding jobs and think times do not
// become part of a job: they describe the recorded schedule, or feedback that a replay does not model.
package swf
