package schedulers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
)

// Equal worlds give equal events, and a reused simulator and policy behave like new ones.
func TestEqualSeedsGiveEqualEvents(t *testing.T) {
	forAllOrders(t, func(t *rapid.T, order string) {
		x := drawWorld(t, wants{order: order})
		want := x.played(t, history{})
		if got := x.played(t, history{}); got != want {
			t.Fatalf("played again:\n%s\n%s", diff(got, want), x)
		}
		s, h := x.machine(t)
		before := *x
		if order != "exact" { // exact has planned for these jobs
			before.jobs = x.jobs[len(x.jobs)/2:]
		}
		before.playOn(t, s, h, &history{})
		if got := x.playOn(t, s, h, &history{}); got != want {
			t.Fatalf("after another run:\n%s\n%s", diff(got, want), x)
		}
	})
}

// forAllOrders checks a claim for every order except those in but, which give the reason for the exception.
func forAllOrders(t *testing.T, claim func(t *rapid.T, order string), but ...map[string]string) {
	t.Helper()
	if raced.On {
		t.Skip("a policy is one goroutine; TestALongRun is enough for the race detector")
	}
	for _, order := range schedulers.Orders() {
		t.Run(order, func(t *testing.T) {
			for _, but := range but {
				if why, ok := but[order]; ok {
					t.Skip(why)
				}
			}
			rapid.Check(t, func(t *rapid.T) { claim(t, order) })
		})
	}
}

// clocked are orders whose keys depend on the clock's origin.
var clocked = map[string]string{
	"f1": "its key has the logarithm of the submit time", "f2": "as f1", "f3": "as f1", "f4": "as f1",
	"wfp3-rlscheduler": "it counts waits from a second before the origin", "unicep-rlscheduler": "as wfp3-rlscheduler",
}

// unscaled are further orders whose keys are not multiples of times.
var unscaled = map[string]string{
	"multifactor": "it weighs hours against sizes",
	"fairshare":   "it weighs waits and usage against sizes",
	"hold":        "it weighs hours, and those below a second count as one",
	"index":       "as hold",
	"las-2d":      "jobs fall at whole seconds",
	"unicep":      "as RLScheduler's code it adds 10⁻¹⁵ s to waits",
	"gavel-las":   "gangs that change places start again a nanosecond later",
	"gavel-ftf":   "as gavel-las", "themis": "as gavel-las", "gandiva": "as gavel-las",
	"optimus": "as gavel-las, and gangs of other sizes than asked for do not run at rate 1",
}

// If all times and every constant that is a time are multiplied by a power of two, a run at rate 1 is the same run,
// scaled.
func TestScalingAllTimesScalesTheRun(t *testing.T) {
	forAllOrders(t, func(t *rapid.T, order string) {
		// A job without work is expected to run a nanosecond. Forecasts are rounded to nanoseconds, and those of the first
		// jobs are constants.
		w := wants{order: order, rate1: true, worked: true, apart: true}
		halves := order == "las-2d-prompt" || order == "gittins-2d"
		if halves { // GPU-time reaches a limit between the nanoseconds, unless all divisions come out even
			w.unit = 1 << 30
		}
		x := drawWorld(t, w)
		if x.policy.Estimates.String() == "noisy:1" {
			x.policy.Estimates = sim.MustEstimates("exact") // noise is rounded to nanoseconds
		}
		if schedulers.Preemptive(order) &&
			slices.ContainsFunc(x.spec.VCs, func(v cluster.VCSpec) bool { return v.Nodes == 0 }) {
			x.spec.VCs = nil // a job that gives way to another virtual cluster's starts elsewhere a nanosecond later
		}
		for i := range x.jobs {
			if j := &x.jobs[i]; halves && j.GPUs > 0 {
				j.GPUs, j.GPUMilli = []int{0, 1, 2, 4, 4}[min(j.GPUs, 4)], 1000
			}
		}
		factor := time.Duration(1) << number(t, 1, 4, "power")
		y := x.scaled(factor)
		want := x.played(t, history{unit: 1})
		if got := y.played(t, history{unit: factor}); got != want {
			t.Fatalf("times %d:\n%s\n%s", factor, diff(got, want), x)
		}
	}, clocked, unscaled)
}

// scaled is x with all times multiplied.
func (x *world) scaled(by time.Duration) *world {
	y := *x
	y.jobs = slices.Clone(x.jobs)
	for i := range y.jobs {
		j := &y.jobs[i]
		j.Submit, j.Work, j.Estimate, j.Deadline = j.Submit*by, j.Work*by, j.Estimate*by, j.Deadline*by
	}
	c := &y.cfg
	c.Restart, c.Checkpoint, c.Horizon = c.Restart*by, c.Checkpoint*by, c.Horizon*by
	o := &c.Overhead
	o.Start, o.StartPerGPU, o.Stop, o.StopPerGPU = o.Start*by, o.StartPerGPU*by, o.Stop*by, o.StopPerGPU*by
	times := func(all []time.Duration) []time.Duration {
		all = slices.Clone(all)
		for i := range all {
			all[i] *= by
		}
		return all
	}
	p := &y.policy
	p.Limits, p.Service, p.Quantum = times(p.Limits), times(p.Service), p.Quantum*by
	p.Round, p.Migrate = p.Round*by, p.Migrate*by
	if p.Workload != nil {
		p.Workload = y.jobs
	}
	return &y
}

// If every job is submitted later by the same time, everything happens later by that time, and nothing else changes.
func TestShiftingTheOriginShiftsTheRun(t *testing.T) {
	forAllOrders(t, func(t *rapid.T, order string) {
		x := drawWorld(t, wants{order: order})
		x.cfg.Failures.MTBF = 0 // failures do not shift with the jobs
		by := time.Duration(number(t, 1, 1_000_000, "seconds")) * second
		y := *x
		y.jobs = slices.Clone(x.jobs)
		for i := range y.jobs {
			y.jobs[i].Submit += by
			if y.jobs[i].Deadline > 0 {
				y.jobs[i].Deadline += by
			}
		}
		if y.cfg.Horizon > 0 {
			y.cfg.Horizon += by
		}
		if y.policy.Workload != nil {
			y.policy.Workload = y.jobs
		}
		want := x.played(t, history{})
		if got := y.played(t, history{shift: by}); got != want {
			t.Fatalf("later by %v:\n%s\n%s", by, diff(got, want), x)
		}
	}, clocked, map[string]string{"multifactor": "hours are rounded, and ties with them",
		"gandiva": "it moves gangs at fixed times from the beginning of the run"})
}

// A job that arrives after all others have ended changes nothing before.
func TestAJobAfterTheEndChangesNothing(t *testing.T) {
	forAllOrders(t, func(t *rapid.T, order string) {
		x := drawWorld(t, wants{order: order})
		s, h := x.machine(t)
		want := x.playOn(t, s, h, &history{})
		end := max(s.View().Now(), x.jobs[len(x.jobs)-1].Submit)
		if x.cfg.Horizon > 0 && end >= x.cfg.Horizon {
			return // it has not ended
		}
		y := *x
		y.jobs = append(slices.Clone(x.jobs), x.jobs[number(t, 0, len(x.jobs)-1, "job")])
		late := &y.jobs[len(x.jobs)]
		late.ID, late.Submit, late.Deadline = "late", end+time.Duration(number(t, 1, 100, "gap"))*second, 0
		if y.cfg.Horizon > 0 {
			y.cfg.Horizon += late.Submit // it may be one that never ends
		}
		if got := y.played(t, history{}); !strings.HasPrefix(got, want) {
			t.Fatalf("%s\n%s", diff(got, want), y.String())
		}
	}, map[string]string{"exact": "it plans for all jobs together"})
}

// A cluster with one more node holds every job that it could hold before.
func TestOneMoreNodeNeverRefusesMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawWorld(t, wants{order: "fifo"})
		y := *x
		if y.spec.Pool > 0 {
			y.spec.Pool++
		} else {
			y.spec.Racks = append(slices.Clone(x.spec.Racks),
				cluster.RackSpec{Nodes: []cluster.NodeSpec{x.spec.Racks[0].Nodes[0]}})
			y.spec.Racks[len(x.spec.Racks)].Nodes[0].Count = 1
		}
		small, large := newCluster(t, x.spec), newCluster(t, y.spec)
		for i := range x.jobs {
			_, before := small.Request(&x.jobs[i])
			_, after := large.Request(&x.jobs[i])
			if before && !after {
				t.Fatalf("%s is refused with one more node\n%s", x.jobs[i].ID, x)
			}
		}
		for _, z := range []*world{x, &y} {
			z.watched(t)
		}
	})
}

func newCluster(t fatal, spec cluster.Spec) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Equal nodes are interchangeable: the decisions of any policy, mapped to other nodes, give the same run except for
// names.
func TestPermutingEqualNodesChangesOnlyNames(t *testing.T) {
	forAllOrders(t, func(t *rapid.T, order string) {
		x := drawWorld(t, wants{order: order})
		racks, nodes, gpus := number(t, 1, 2, "racks"), number(t, 1, 3, "nodes"), number(t, 1, 3, "GPUs of a node")
		x.spec = cluster.Spec{Racks: []cluster.RackSpec{{Count: cluster.Count(racks),
			Nodes: []cluster.NodeSpec{{Count: cluster.Count(nodes), GPUs: gpus, CPUs: 8}}}}}
		x.cfg.Failures.MTBF = 0 // every node has its own failures
		if order == "exact" {
			x.spec.Racks[0].Nodes[0].CPUs = 0
		}
		var to []int // racks change places, and nodes within each
		count := func(n int) []int {
			all := make([]int, n)
			for i := range all {
				all[i] = i
			}
			return rapid.Permutation(all).Draw(t, "places")
		}
		for _, r := range count(racks) {
			for _, n := range count(nodes) {
				to = append(to, r*nodes+n)
			}
		}
		s, h := x.machine(t)
		tape := &tape{Policy: h}
		want := x.playOn(t, s, tape, &history{blind: true})
		for i := range tape.all {
			for k, g := range tape.all[i].GPUs {
				if g < 0 {
					g = cluster.Slot(to[-1-int(g)])
				} else {
					g = cluster.GPU(to[int(g)/gpus]*gpus + int(g)%gpus)
				}
				tape.all[i].GPUs[k] = g
			}
		}
		if got := x.playOn(t, s, &replay{tape.all}, &history{blind: true}); got != want {
			t.Fatalf("nodes renamed %v:\n%s\n%s", to, diff(got, want), x)
		}
	})
}

// tape records the decisions of a policy.
type tape struct {
	schedulers.Policy
	all []sim.Decision
}

func (r *tape) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	err := r.Policy.Decide(v, p, d)
	c := *d
	c.GPUs = slices.Clone(d.GPUs)
	r.all = append(r.all, c)
	return err
}

// replay repeats recorded decisions.
type replay struct{ all []sim.Decision }

func (*replay) Reset(*sim.View) {}

func (r *replay) Decide(_ *sim.View, _ *sim.Point, d *sim.Decision) error {
	*d, r.all = r.all[0], r.all[1:]
	return nil
}
