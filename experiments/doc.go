// Package experiments has papers and studies, each with its README, settings and expected figures.
//
// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):
//
//   - improper/queuenet: has small queueing networks in slots of equal length, for which the best scheduler is known
//   - metascheduler/perfmodel: learns from measurements how fast jobs run beside each other
//   - study: defines what an experiment is, and runs, keeps, resumes and reports it
//   - asrpt: rebuilds A-SRPT (Luo, Liu, Lee, Shroff, INFOCOM 2025, arXiv 2501.05563): training jobs that are graphs of
//     pipeline stages with replicas, placed so that heavy edges stay inside a server, and started in the order in which
//     a virtual single machine finishes them under preemptive SRPT, with iterations predicted from earlier runs
//   - ddppo: is the study ddppo: data-parallel PPO without a parameter server, which ranks the queue of one machine
//     over a log of 11.5 million jobs that is streamed from a file
//   - estimates: measures what schedulers lose by not knowing run times: predictors by schedulers by workloads
//   - lwf: reproduces LWF-κ, AdaDUAL and Ada-SRSF (Wang, Shi, Wang, Chu, arXiv 2002.10105) on the machine of its
//     authors' program (peer/lwf), as published and with a question that does not move transfers, and compares that
//     machine with the fluid contention of simulator/sim
//   - metascheduler/mbmpo: learns to place workers from few real intervals, in a closed loop: performance models,
//     meta-learning in them, and real data where the models may be wrong
//   - rlscheduler: plays on the machine of RLScheduler (peer/rlscheduler): the rules of its table, a key tuned on the
//     log's first part, and that key with a search, on its own ten windows, on windows that nobody was trained on, and
//     on fresh logs
//   - study/cell: trains agents in the cells of studies, and has the files that cells leave for each other
//   - study/studytest: runs studies in tests
//   - worlrtgs: reproduces the study of WORL-RTGS, which plans task graphs by whale optimisation with a learned
//     generator of plans
//   - dally: reproduces Dally: delay scheduling with tuned timers, the machine of its authors' program, and an agent in
//     place of the timers
//   - improper: is the study improper: softmax mixtures of base controllers by policy gradient and natural
//     actor-critic, on queueing networks whose optimum is known, and on PolicyMix-v1 against each scheduler, the best
//     one, and PPO
//   - lookahead: is the study lookahead: what agents and searches gain over the best rules, on windows that nothing was
//     tuned on, and how much there is to gain
//   - metascheduler: reproduces a meta-learning scheduler: workers are placed by a policy that adapts inside learned
//     models of speed
//   - rltune: is the study rltune: RLTune's agent and integer programme on a machine equal to its authors' program,
//     against the base policies whose queues they sort, the best of these, and rules by hand, with known and with
//     predicted run times
//   - topdrl: reproduces TopDRL and its precursor: an agent picks the job, and a heuristic places it on the closest
//     GPUs
//   - papers: lists the experiments, those that reproduce a paper and this project's own, and runs one by name
package experiments
