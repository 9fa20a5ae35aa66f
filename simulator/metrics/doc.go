// Package metrics measures what a run did: job completion times, waits, slowdowns, makespan, utilisation. It reads
// only events, so heuristics, learned policies and runs on other machines are measured alike. Each metric has one
// definition, at its field in Summary. All metrics count jobs, never gang members.
package metrics
