// Package experiments wires everything together: a configuration names a workload, a cluster, an environment and
// an agent, and this package builds them, trains, simulates, evaluates and reports. It is the only place that
// knows all the names; what the command line does, a Go program can do by calling it.
//
// It is not for algorithms, environments or formats, which live below and know nothing of each other. Mistakes
// of the user's, such as a file that is not there or a policy that nobody knows, come back as *InputError.
package experiments
