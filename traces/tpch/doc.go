// Package tpch reads the 22 queries of the TPC-H benchmark as task graphs, with the run times of their tasks as
// measured on Spark for one size of the data and several numbers of executors: the measurements behind the Decima
// scheduler (Mao et al., "Learning Scheduling Algorithms for Data Processing Clusters", SIGCOMM 2019), gathered in
// one JSON document:
//
//	{"<query>": {"edges": [[parent, child], …], "spark_stage_id": {"<stage>": id, …},
//	             "stages": [{"fresh_durations": {"<executors>": [ms, …], …}, "first_wave": {…}, "rest_wave": {…}}, …]}, …}
//
// A query is a job, a stage one traces.Task with as many instances as the stage has tasks. fresh_durations are run
// times on an executor that had to start up, first_wave those of the first task on each executor, rest_wave those of
// later ones. The fresh ones are repeated in the first wave. Lists may be empty, and the numbers of executors may
// differ between stages.
//
//   - Instances: the length of the first wave and the rest wave together, at the smallest number of executors. It is
//     the same at every other number, except in one stage of query 15.
//   - Task.Work: one figure for all instances of a stage, by Options.Rule.
//   - Job: submitted at 0, GPUs 1 and Work the sum of all tasks, which is the run time on one executor. Graph shows how
//     many executors can share the work. ID is the query's key; jobs come in order of the keys' numbers.
package tpch
