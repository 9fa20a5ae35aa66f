// Package lab has what a run is: its configuration, workload and directory; training, evaluation, search and their
// reports.
//
// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):
//
//   - catalog: lists the public workloads that a user can fetch: what each is, its licence, where its publisher keeps
//     it, and the SHA-256 of every file
//   - decisionlog: reads and writes logs of decisions: what happened on a cluster, and at each decision how a policy
//     weighed its options beside what a rival would have done
//   - htmlpage: writes results as one HTML page: learning curves, comparisons with their intervals, tables, and the
//     schedules of a workload
//   - stream: is how policies are measured on a cluster in operation: on streams of jobs, whose arrivals do not stop
//     when the jobs that count have come
//   - workload: opens what users name: traces in any known format or from the generator, clusters, throughput tables,
//     interference tables and samples of service times
//   - plan: is gymctl plan: it plans task graphs, recorded or generated, with list schedulers and whale optimisation
//     searches
//   - predictors: makes predictors of run times by name, and measures how well they predict
//   - envs: knows every environment by its id: its settings, its workload, its page and its memory
//   - config: is the configuration of a run: environment, workload, cluster, agent, training and evaluation
//   - report: holds the results of comparisons, the JSON documents of gymctl eval, and prints their tables: policies on
//     windows of a workload, on episodes, and on tasks that they adapt to
//   - brought: handles the files that a task of a work queue brings: the ones that its configuration names
//   - rundir: reads and writes run directories: config.yaml, progress.jsonl, event files for TensorBoard, checkpoints
//     and best.json
//   - simulate: is gymctl sim: it runs schedulers on a workload and a cluster, and reports metrics as a table or JSON
//     document, events as JSON lines, and schedules as an HTML page
//   - arena: holds the scenario that a configuration describes and plays policies in it: agents that are in training,
//     on the validation part; checkpoints, baselines and policies of other programs, on the test part
//   - external: plays simulations whose scheduler is another program: a client of the bridge that sees the whole queue
//     and decides at every point, by the operations simulate and decide of docs/reference/wire.md
//   - mlflow: sends what a training reports to a tracking server of MLflow, over its REST interface
//   - actor: answers observations of any program with the actions of a checkpoint, over a pipe
//   - decisionlog/record: makes logs of decisions: it plays a window with a checkpoint and writes down how the agent
//     weighed its options
//   - modelcard: writes the page that goes with an exported policy: what it is, for which environment and workload,
//     what it knew of run times, how long it was trained, how it did against its baselines, and how to load it
//   - run: is gymctl train: it trains agents as a config.Config says, resumes them bit for bit, has them compared with
//     their baselines, and combines several seeds
//   - speed: is gymctl speed: it measures the speed of the simulator, the environments, training, planning and the
//     bridge on the machine at hand, each beside a peer or a limit that it measures in the same run
//   - tune: finds the weights of a scheduler by trying: it draws weights, simulates the same jobs with all of them, and
//     moves to those that do best (the cross-entropy method: Rubinstein, "The cross-entropy method for combinatorial
//     and continuous optimization", Methodology and Computing in Applied Probability 1, 1999)
//   - benchmark: is ClusterGym-Bench: fixed scheduling tasks, scores that compare across them, and a leaderboard
//   - sweep: is gymctl sweep: it searches for settings by random draws and successive halving over runs of package run
package lab
