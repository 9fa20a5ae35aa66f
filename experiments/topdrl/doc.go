// Package topdrl reproduces TopDRL and its precursor: an agent picks the job, and a heuristic places it on the closest
// GPUs. README.md lists which parts are published and which are ours.
package topdrl
