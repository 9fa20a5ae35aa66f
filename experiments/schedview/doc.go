// Package schedview draws the schedules of a workload as one HTML page: the metrics of every run, the distributions of
// completion times, and for each run the GPUs in use, the numbers of running and waiting jobs, and which job held which
// GPU when. The page needs no other files, no network and no server.
//
// The Runs of a Page are observers of simulations that fill it; Write writes it at the end. Memory and page size are
// bounded for runs of any length, except for 16 bytes for each finished job: time series become buckets with minimum,
// mean and maximum, and if there are too many stints to draw, a map of node × time shows how busy the hardware was. The
// page says which it shows.
//
// Equal runs give equal bytes.
//
// Programs that need the numbers should read the JSON documents of package simulate instead.
package schedview
