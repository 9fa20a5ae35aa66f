// Package synth generates workloads; the same profile and seed always give the same jobs. The profiles hpc and lublin
// are a published model of supercomputers (HPC). dally, dally-batch and dally-multi follow the workloads of Dally's
// authors and give jobs their models (traces/dally). helios and proximity draw sizes, run times and arrivals
// independently of the jobs before. poisson, poisson-constant and poisson-hyper are the workloads of queueing theory,
// whose mean waits are known. philly and philly-users are a table of statistics of a real cluster with a small
// model of how its users submit jobs.
//
// That model (Generate): every virtual cluster submits bursts of jobs of one size. Bursts start by a Poisson process
// whose rate follows the hour of the day, the day of the week and busy and quiet days. The gaps in a burst are
// tabulated, and its jobs have similar run times. A periodic job comes every ten minutes. Run times are then mapped by
// rank onto the tabulated quantiles of their size, so that every workload, even a short one, has the profile's
// distribution of sizes and of run times.
//
// In philly-users, users also have habits: they come back, and repeat jobs whose run times were similar. A predictor
// that learns from jobs that have ended then does about as well as on the recorded ones. Only who submits a job, its
// name and the order of run times differ from philly.
//
// The model leaves out failures, restarts and feedback (users who wait for results before they submit more). It does
// not know which models run either; traces/profile draws those.
package synth
