package schedulers_test

import (
	"flag"
	"math"
	"testing"

	"pgregory.net/rapid"

	"clustergym/internal/raced"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
)

// watched plays x with a witness and the metrics' collector.
func (x *world) watched(t fatal) *witness {
	t.Helper()
	s, h := x.machine(t)
	w := newWitness(x, s, h)
	var c metrics.Collector
	story := x.playOn(t, s, w, new(history), w, &c)
	if err := w.end(); err != nil {
		t.Fatalf("%v\n%s\nwhat happened:\n%s", err, x, story)
	}
	sum := c.Summary(0, 0)
	if span := float64(w.last - w.first); math.Abs(sum.QueueLength.Mean*span-float64(w.inQueue)) >
		1e-9*(float64(w.inQueue)+span) {
		t.Fatalf("the mean queue is %v for %v ns, the jobs wait for %d\n%s", sum.QueueLength.Mean, span, w.inQueue, x)
	}
	if math.Abs(sum.Fragmentation*w.someFree-w.fragments) > 1e-9*(1+w.someFree) {
		t.Fatalf("metrics say that fragmentation is %v, it is %v\n%s", sum.Fragmentation, w.fragments/w.someFree, x)
	}
	if sum.Finished != w.finished || sum.Finished+sum.Unfinished != w.submitted {
		t.Fatalf("metrics know of %d finished and %d unfinished jobs of %d\n%s", sum.Finished, sum.Unfinished, w.submitted, x)
	}
	return w
}

// For any cluster, workload, simulator switches and policy: no capacity is exceeded, gangs are whole, every job ends
// in one state, no job waits for ever, Little's law holds to the nanosecond, and the policy decides as its admission
// and back-filling promise.
func TestAlways(t *testing.T) {
	if raced.On {
		t.Skip("a policy is one goroutine; TestALongRun is enough for the race detector")
	}
	count, seed := map[string]int{}, 0
	for _, order := range schedulers.Orders() {
		for _, way := range ways(order) {
			t.Run(order+"/"+way.String(), func(t *testing.T) {
				all := []wants{{}, {steady: true, patient: true}}
				if way.backfill != "none" { // reservations are about these
					all = append(all, wants{steady: true, alike: true, worked: true},
						wants{steady: true, alike: true, worked: true, most: 16})
				}
				for _, w := range all {
					w.order, w.way = order, &way
					rapid.Check(t, func(t *rapid.T) { drawWorld(t, w).watched(t) })
					worlds := rapid.Custom(func(t *rapid.T) *world { return drawWorld(t, w) })
					for range 25 { // the same worlds in every run, so that the counts below cannot fail by chance
						seed++
						worlds.Example(seed).watched(t).count(count)
					}
				}
			})
		}
	}
	t.Log(count)
	for what, least := range map[string]int{
		"start": 50_000, "preempt": 10_000, "migrate": 5, "resize": 1, "fail": 1000, "refused": 1000, "wait": 3000,
		"drained": 10_000,
		"cut off": 3, "shadow": 1000, "reservation": 20, "held": 5000,
	} {
		if count[what] < least {
			t.Errorf("%s came up %d times, want %d: this tests too little", what, count[what], least)
		}
	}
}

var long = flag.Bool("long", false, "ten million events and decisions instead of a hundred thousand")

// The same with larger workloads, for every order, admission and back-filling in turn.
func TestALongRun(t *testing.T) {
	want := 100_000
	if *long {
		want = 10_000_000
	}
	type turn struct {
		order string
		way   how
	}
	var turns []turn
	for _, order := range schedulers.Orders() {
		for _, way := range ways(order) {
			turns = append(turns, turn{order, way})
		}
	}
	sum, count := 0, map[string]int{}
	for seed := 0; sum < want; seed++ {
		k := turns[seed%len(turns)]
		most := 40
		if k.order == "exact" {
			most = 8 // more take too long to search
		}
		w := rapid.Custom(func(t *rapid.T) *world {
			return drawWorld(t, wants{order: k.order, way: &k.way, most: most, steady: seed%3 == 0})
		}).Example(seed).watched(t)
		w.count(count)
		sum += w.events + w.decisions
	}
	t.Log(count)
}
