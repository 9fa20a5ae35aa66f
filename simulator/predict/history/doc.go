// Package history predicts run times from those of similar jobs that have ended, as users and
// administrators do by eye.
//
// # Keys
//
// A job has up to five keys, the finest first: user, GPUs and name; user and GPUs; user; virtual cluster and GPUs; and
// one for all jobs. Keys of what its trace does not give are left out. Each key has the last Keep run times of its jobs
// that have ended. The forecast comes from the first key that has one; its quantiles are those of the sample. A sample
// of less than Enough gives its median only: the ratios of the other quantiles to it come from the first coarser key
// that has enough.
//
// # Requested times
//
// If jobs come with a requested time (predict.Requested), samples hold shares of it instead of times, and no forecast
// exceeds the request: users ask for too much, but by a similar factor each time.
//
// # Jobs that still run
//
// Jobs that run are observations too, of "longer than that" (censored). Of a job's finest key the last Recent started
// jobs are kept. Those which still run, and have run for longer than the median, enter the sample as censored
// observations, and the quantiles become those of its Kaplan–Meier estimate (Kaplan and Meier, JASA 1958). The others
// say little: on Philly's jobs, samples of the last jobs that have started, finished or not, put fewer pairs of jobs in
// the right order than samples of the last that have finished.
//
// # Archive
//
// A run that begins in the middle of a trace, as an episode does, has little history of its own. An Archive gives it
// the jobs of the trace that had ended by then, taken to have started when they were submitted.
package history
