package control

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/env"
)

// definition is a problem with its words for people.
type definition struct {
	spec env.Spec
	make func() problem

	about   string // description: what is decided, and what the problem tells apart
	actions string
	rewards string
	start   string
	end     string
	answer  string // what a right agent learns
	task    string // what a task is, "" where there are none
	args    string // "" = none
	history string // of versions, "" = the first
	source  string
}

// definitions lists the problems by ID. It is built anew by every call, so that nobody shares slices.
func definitions() []definition {
	all := append(probes(), invalidAction(), cartPole(), acrobot(), mountainCar(), bandit(DefaultBanditConfig()), nav2D())
	slices.SortFunc(all, func(a, b definition) int { return strings.Compare(a.spec.ID, b.spec.ID) })
	return all
}

// IDs lists the problems, sorted.
func IDs() []string {
	var ids []string
	for _, d := range definitions() {
		ids = append(ids, d.spec.ID)
	}
	return ids
}

// open makes the environment: an *Env, or a *Family where there are tasks.
func (d *definition) open() env.Env {
	e := newEnv(d.spec, d.make)
	if e.task != nil {
		return &Family{e}
	}
	return e
}

// New returns the problem called id: an *Env, or a *Family where there are tasks.
func New(id string) (env.Env, error) {
	for _, d := range definitions() {
		if d.spec.ID == id {
			return d.open(), nil
		}
	}
	return nil, fmt.Errorf("control: no environment %q, want one of %s", id, strings.Join(IDs(), ", "))
}
