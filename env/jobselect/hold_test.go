package jobselect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/internal/testseed"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// order notes the jobs in the order in which they start.
type order []string

func (o *order) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		if e.Kind == sim.Start {
			*o = append(*o, v.Trace(e.Job).ID)
		}
	}
	return nil
}

// Where every waiting job is visible, hold@slots plays as hold over the whole queue. It waits while jobs fit.
func TestHoldThroughTheSlots(t *testing.T) {
	seed := testseed.Or(41)
	r := rand.New(rand.NewPCG(seed, 1))
	waited := 0
	for range 12 {
		var jobs window
		at := time.Duration(0)
		for i := range 30 {
			at += time.Duration(r.IntN(40)) * time.Minute
			j := gang(fmt.Sprint("j", i), []int{1, 1, 2, 4, 8}[r.IntN(5)], 60<<r.IntN(12))
			j.Submit = at
			jobs = append(jobs, j)
		}
		e := room(t, "pool:8", len(jobs), "exact", jobs)
		var want order
		c := schedulers.DefaultConfig()
		c.Order, c.Placement = "hold", e.Parts().Placement
		h, err := schedulers.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Simulate(t.Context(), env.Episode{Window: 0}, h, &want); err != nil {
			t.Fatal(err)
		}
		did := strings.Fields(starts(t, "hold", e))
		for i, d := range did {
			if d == "wait" && i > 0 {
				waited++
			}
		}
		did = slices.DeleteFunc(did, func(d string) bool { return d == "wait" })
		// Jobs that are alone in fitting, when nothing can be waited for, are started without a decision.
		if !subsequence(did, want) {
			t.Errorf("seed %d: %v through the slots, %v over the whole queue", seed, did, want)
		}
	}
	if waited == 0 {
		t.Error("it never waits")
	}
}

// subsequence reports whether all of a are in b, in this order.
func subsequence(a, b []string) bool {
	for _, x := range b {
		if len(a) > 0 && a[0] == x {
			a = a[1:]
		}
	}
	return len(a) == 0
}
