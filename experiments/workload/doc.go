// Package workload finds what a run is made of by the names that users give: traces in any of the known formats or from
// the generator, clusters, throughput tables, interference tables and samples of service times. It also counts what it
// left out, so that every result can say what it was computed on.
//
// It is the lowest package of experiments. A mistake of the user, such as a file that does not exist, is an *InputError.
package workload
