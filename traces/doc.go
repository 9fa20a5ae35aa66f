// Package traces is the contract for workloads: what a job is, how a stream of jobs is read, and how a
// workload is cut into windows. It holds no file format: each child reads one, or makes jobs up.
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
//	inventory                        lists of machines, which become clusters elsewhere
//
// A reader puts up with no broken row: it is a *RowError. A row that is sound but no job to run, as one without run
// time, is left out and counted by reason (Skips). Units are those of Job, whatever the file's: times are
// time.Duration, shares and cores thousandths, memory bytes. docs/traces.md has the columns of every format.
package traces
