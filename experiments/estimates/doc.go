// Package estimates measures what schedulers lose by not knowing run times: predictors by schedulers by workloads.
// README.md has the figures and how they are made.
package estimates
