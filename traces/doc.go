// Package traces is the contract for workloads: what a job is, how a stream of jobs is read, and how a
// workload is cut into windows. It holds no file format: each child reads one (traces/csv, traces/swf,
// traces/philly) or makes jobs up (traces/synth); traces/profile tells what a model costs.
package traces
