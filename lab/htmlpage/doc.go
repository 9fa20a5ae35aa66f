// Package htmlpage writes results as one HTML page: learning curves, comparisons with their intervals, tables, and the
// schedules of a workload. Of a schedule it shows the distribution of completion times, the GPUs in use, the numbers of
// running and waiting jobs, and which job held which GPU when. The page needs no other files, no network and no server.
//
// The Runs of a Page are observers of simulations that fill it; Write writes it at the end. Memory and page size are
// bounded for runs of any length, except for 24 bytes for each finished job: time series become buckets with minimum,
// mean and maximum, and if there are too many stints to draw, a map of node × time shows how busy the hardware was. The
// page says which it shows.
//
// Equal contents give equal bytes.
//
// Programs that need the numbers should read the JSON documents of gymctl instead.
package htmlpage
