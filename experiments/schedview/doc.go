// Package schedview shows what schedulers did with a workload as one HTML page: the metrics of every run, their
// distributions of completion times, and for each run the GPUs in use, the jobs that run and wait, and who held
// which GPU when. The page needs nothing beside itself, neither the network nor a server.
//
// A Page is filled by its Runs, which are observers of a simulation, and written at the end. Beside 16 bytes for
// each job that finishes, what it keeps is bounded, and so is the page, however long the runs are: time series are
// cut into buckets that keep minimum, mean and maximum, and where there are too many stints to draw each, a map of
// node × time shows how busy the hardware was. The page says which.
//
// Equal runs give equal bytes.
//
// It is not for numbers that others go on computing with: those are the JSON documents of package experiments.
package schedview
