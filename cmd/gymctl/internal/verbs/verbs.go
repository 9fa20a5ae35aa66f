// Package verbs lists the groups of verbs.
package verbs

import (
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/cmd/gymctl/internal/machine"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/cmd/gymctl/internal/research"
	"clustergym/cmd/gymctl/internal/start"
)

// All returns all verbs of gymctl, in the order of its help.
func All() []cli.Group {
	return []cli.Group{start.Group, look.Group, operate.Group, research.Group, machine.Group}
}
