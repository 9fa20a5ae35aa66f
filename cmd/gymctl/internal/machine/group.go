// Package machine holds the verbs about this program on this machine.
package machine

import "clustergym/cmd/gymctl/internal/cli"

// Group are the verbs about this program on this machine.
var Group = cli.Group{Title: "This machine", Verbs: []cli.Verb{speedVerb, versionVerb, manVerb}}
