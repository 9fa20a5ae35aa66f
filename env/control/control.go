package control

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/env"
	"clustergym/internal/nearest"
)

// definition is a problem; its page is in pages.
type definition struct {
	spec env.Spec
	make func() problem
}

// definitions lists the problems by ID. Every call builds the list anew, so that callers share no slices.
func definitions() []definition {
	all := append(probes(), invalidAction(), cartPole(), acrobot(), mountainCar(), bandit(DefaultBanditConfig()), nav2D())
	slices.SortFunc(all, func(a, b definition) int { return strings.Compare(a.spec.ID, b.spec.ID) })
	return all
}

// IDs returns the IDs of the problems, sorted.
func IDs() []string {
	var ids []string
	for _, d := range definitions() {
		ids = append(ids, d.spec.ID)
	}
	return ids
}

// open makes the environment: an *Env, or a *Family if the problem has tasks.
func (d *definition) open() env.Env {
	e := newEnv(d.spec, d.make)
	if e.task != nil {
		return &Family{e}
	}
	return e
}

// New returns the problem called id: an *Env, or a *Family if the problem has tasks.
func New(id string) (env.Env, error) {
	for _, d := range definitions() {
		if d.spec.ID == id {
			return d.open(), nil
		}
	}
	return nil, fmt.Errorf("control: no environment %q, want %s", id, nearest.OneOf(id, IDs()))
}
