// Package mbmpo learns to place workers from few real intervals, in a closed loop: performance models, meta-learning in
// them, and real data where the models may be wrong. It reconstructs, from its abstract, the scheduler of Yang et al.,
// "On a Meta Learning-Based Scheduler for Deep Learning Clusters" (IEEE TCC 2023), with the structure of model-based
// meta-policy optimisation (Clavera, Rothfuss et al. 2018, arXiv 1809.05214):
//
//	data from a placement rule; the policy begins by imitating it
//	repeat
//	    fit the performance models                                     (package perfmodel)
//	    some meta-steps, a task being one model and one workload seen  (package maml)
//	    place real jobs with the adapted policies, exploring           (see below)
//	until completion times and the models' errors have settled     (Loop.Settled; the caller ends the loop)
//
// There are two kinds of exploration, which can be combined. Tailored: each real episode is played by the policy
// adapted to another model, so actions are tried about which models disagree. Subspace: placements are divided into
// subspaces by the other workers that they put a worker beside (workerplace.Sharing), and an action is drawn with a
// probability proportional to
//
//	π(a|s) · exp(β · (e + c/√(1+n)))
//
// with e the moving average of the models' relative errors in the action's subspace and n how often it was seen. An
// action whose predicted speed of all jobs is more than guard below that of the policy's likeliest action is not taken.
//
// When the workload changes, parameters and models are kept: a few episodes, another fit, and one to three inner steps.
package mbmpo
