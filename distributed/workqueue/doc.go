// Package workqueue spreads independent tasks over machines. A Coordinator owns the tasks of one command; workers
// (Work) fetch them one at a time, and results come back to the caller of Do, who alone writes files.
//
// Tasks, results and files lie in NATS JetStream: in a server inside the coordinator's process, whose files are in the
// run's folder, or in a NATS that exists already. A task is named by its digest, is done at least once, and is handed
// to another worker when its worker fails, falls silent or leaves; a second result must prove equal to the first. A
// coordinator that was killed goes on when the same command is started again. Results do not depend on who did which
// task, so that any number of workers gives the bytes of one machine. Workers of another build or processor
// architecture, or without the kernel set in use, are refused in one sentence. The package knows nothing of studies,
// trainings or evaluations: Handlers do the tasks. docs/reference/work-queue.md has the protocol.
package workqueue
