// Package synth makes workloads up; the same profile and seed always give the same jobs. The profiles hpc and lublin
// are a published model of supercomputers (HPC), dally, dally-batch and dally-multi follow the workloads of Dally's authors
// and give jobs their models (traces/dally). Any other is a table of statistics of a real cluster and a small model
// of how its users send jobs.
//
// That model (Generate): every virtual cluster sends bursts of jobs of one size; bursts begin by a Poisson process
// whose rate follows the hour of the day, the day of the week and busy and quiet days; a burst's jobs follow each
// other by tabulated gaps and resemble each other in run time; a clock-driven job comes every ten minutes. Run
// times are then mapped by rank onto the tabulated quantiles of their size, so that every workload, also a short
// one, has the profile's distribution of sizes and of run times.
//
// What it is not for: it knows no failures, no restarts and no feedback (users who wait for results before they
// send more), and nothing about which models run; traces/profile draws those.
package synth
