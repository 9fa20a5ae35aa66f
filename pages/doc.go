// Package pages serves pages about runs, sweeps, experiments and logs of decisions, while they go on and afterwards
// (docs/guides/dashboard.md). A server owns no state: it reads the files that runs write, and computes from checkpoints
// what they do not hold, so that a running folder, a finished one and a copy look the same, and a server that is killed
// loses nothing.
//
//	/                 the pages
//	/api/...          what they show, as JSON
//	/events           new lines of runs, as server-sent events whose ids are line numbers
//	/metrics          the same figures for Prometheus
//
// It is not for changing anything: every request reads.
package pages
