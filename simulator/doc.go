// Package simulator has machines, jobs on them, schedulers, predictors of run times, metrics, task graphs.
//
// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):
//
//   - cluster: models the hardware: racks, nodes and GPUs, what is free, and the rules that choose which GPUs a gang
//     gets
//   - dag: is static scheduling of a task graph on heterogeneous processors: which processor runs each task, and when
//   - policyname: reads, writes and completes the names of policies
//   - predict: is the contract of predictors of run times: what a scheduler can know of a job that no cluster knows
//     when it is submitted
//   - predict/boost: fits gradient-boosted regression trees to quantiles, as LightGBM does with objective=quantile (Ke
//     et al., "LightGBM: A Highly Efficient Gradient Boosting Decision Tree", NeurIPS 2017)
//   - dag/alibaba: makes task graphs from the jobs of Alibaba's cluster-trace-v2018 that traces/alibaba reads
//   - dag/dagjson: reads and writes task graphs with their platforms as JSON, one object for each instance
//   - dag/listsched: plans task graphs by list scheduling, and small ones exactly
//   - dag/synth: generates task graphs and the platforms they run on
//   - dag/wfformat: reads task graphs in WfFormat, the JSON of WfCommons, schema versions 1.5 and 1.6
//   - predict/history: predicts run times from those of similar jobs that have ended, as users and administrators do by
//     eye
//   - predict/predicttest: tests implementations of predict.Predictor: Run checks the contract, and Draw draws the
//     events of a run for tests of their own
//   - sim: is a discrete-event simulation of jobs on a cluster: events out, decisions in
//   - dag/graphs: reads task graphs from files whatever their format, and cuts them into the parts that an agent trains
//     on, is chosen by and is judged by
//   - hindsight: searches for a good schedule of jobs that are all known beforehand
//   - metrics: measures what a run did: job completion times, waits, slowdowns, makespan, utilisation
//   - predict/gbdt: predicts run times with gradient-boosted trees (boost), one ensemble for each quantile, on the
//     statistics of package history and on what is written down at submit: Features names all of them
//   - schedulers/queue: holds the jobs that wait, in the order in which a scheduler serves them, and the books that say
//     which of them may start: it needs a job, its request and its key, and nothing of the policy that made the key
//   - schedulers/attained: keeps what the orders of attained service need to know of each job: the discretised queues
//     of las, las-2d and las-2d-prompt (Queues), and the distribution of GPU-times, with the quanta that jobs have
//     completed, of gittins-2d (Gittins)
//   - schedulers/fairshare: is Slurm's multi-factor priority with its classic fair share: what accounts have used, how
//     it decays, and what priority that gives their jobs
//   - schedulers/place: chooses GPUs for jobs that a scheduler starts, moves or resizes
//   - schedulers/delay: implements delay scheduling with leases: the policies dally, delay-las and tiresias-lease
//   - schedulers/exact: implements the policy exact, which plays the best schedule of a workload that it knows
//     beforehand
//   - schedulers/expression: compiles orders that users write out as text (policyname.Written)
//   - schedulers/rounds: implements schedulers that decide from time to time which jobs run where, and take GPUs from
//     jobs for it: gavel-las, gavel-ftf, themis, optimus and gandiva
//   - schedulers/tuned: implements the orders whose weights gymctl tune searches for: hold, which never stops a running
//     job and can leave GPUs idle, and index, which preempts
//   - schedulers: implements the schedulers of the literature
package simulator
