// Package traces is the contract for workloads: what a job is, how a stream of jobs is read, and how a workload is cut
// into windows. It reads no file format itself: each child package reads one format or generates jobs.
//
//	csv                              the native format
//	swf                              logs of supercomputers
//	philly, acme                     clusters that train
//	openb, pai, dlrm, alibaba        Alibaba's clusters; the last has task graphs
//	gavel, sia, chronus, elasticflow, muri, tiresias
//	                                 workloads of published schedulers, most of them made from Philly's
//	tpch                             queries as task graphs
//	synth                            generators
//	profile                          what a model costs: tables of measurements, mixes, interference
//	inventory                        lists of machines, which other packages turn into clusters
//
// A broken row ends the reading with a *RowError. A row that is well formed but is not a job to run, such as one
// without a run time, is left out and counted by reason (Skips). Readers convert to the units of Job: times are
// time.Duration, shares and cores thousandths, memory bytes. docs/reference/traces has a page with the columns of every
// format.
package traces
