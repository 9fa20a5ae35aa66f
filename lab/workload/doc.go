// Package workload opens what users name: traces in any known format or from the generator, clusters, throughput
// tables, interference tables and samples of service times. It also counts what it leaves out, so that every result can
// state the jobs on which it was computed.
//
// It is the lowest package of experiments. A mistake of the user, such as a file that does not exist, is a
// *fault.Mistake.
package workload
