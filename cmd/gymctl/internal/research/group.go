// Package research holds the verbs of papers, of the benchmark and of searches for settings.
package research

import "clustergym/cmd/gymctl/internal/cli"

// Group are the verbs of papers, of the benchmark and of searches for settings.
var Group = cli.Group{Title: "Research", Verbs: []cli.Verb{experimentVerb, benchmarkVerb, sweepVerb}}
