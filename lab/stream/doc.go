// Package stream is how policies are measured on a cluster in operation: on streams of jobs, whose arrivals do not stop
// when the jobs that count have come. A stream has a warm-up, whose jobs do not count, the counted jobs, and the jobs
// after them, which arrive until the counted ones have ended. Every policy plays all of them from the empty cluster on.
//
// Of a generated workload there are draws: independent replications of the generator (Law, Simulation Modeling and
// Analysis, 5th ed., 2015, ch. 9.5.2: replication/deletion). Of a recorded one there is one stream, its test part,
// warmed up by the validation part before it; it is cut into blocks of time, longer than what its queue remembers.
package stream
