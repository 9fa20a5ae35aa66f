// Package start holds the verbs with which everybody begins: they simulate, train, compare and plan.
package start

import "clustergym/cmd/gymctl/internal/cli"

// Group are the verbs with which everybody begins: they simulate, train and compare.
var Group = cli.Group{Title: "Start", Verbs: []cli.Verb{trainVerb, evalVerb, simVerb, tuneVerb, predictVerb, planVerb,
	peerVerb}}
