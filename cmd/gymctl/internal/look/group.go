// Package look holds the verbs that show what there is: runs, environments, workloads, settings, checkpoints.
package look

import "clustergym/cmd/gymctl/internal/cli"

// Group are the verbs that show what there is: runs, environments, workloads, settings, checkpoints.
var Group = cli.Group{Title: "Look", Verbs: []cli.Verb{uiVerb, envsVerb, traceVerb, configVerb, ckptVerb}}
