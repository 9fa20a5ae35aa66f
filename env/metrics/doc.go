// Package metrics counts what a run did: job completion times, waits, slowdowns, makespan, utilisation. It
// reads events only, so heuristics, learned policies and other machines are measured alike. Every metric has
// one definition, which stands at its field in Summary. All are over jobs, never over gang members.
package metrics
