// Package topdrl reproduces TopDRL and its precursor: an agent picks the job, a heuristic the closest GPUs. README.md says
// which part is whose.
package topdrl
