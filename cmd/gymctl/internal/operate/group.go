// Package operate holds the verbs that run for long: servers, workers, and what stands next to a real cluster.
package operate

import "clustergym/cmd/gymctl/internal/cli"

// Group are the verbs that run for long: servers, workers, and what stands next to a real cluster.
var Group = cli.Group{Title: "Operate", Verbs: []cli.Verb{ServeVerb, workerVerb, assessVerb, steerVerb, twinVerb}}
