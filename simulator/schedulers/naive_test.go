package schedulers_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// naive is the reference for the heaps: at every point it ranks all jobs again and walks down the list.
type naive struct {
	cfg   schedulers.Config
	skip  bool
	over  bool // the job behind each one that starts is passed over
	place cluster.Placement
	keys  schedulers.Policy // used only for its order's keys

	open  bool
	plan  []sim.Decision // for preemptive orders
	until time.Duration
	lists [][]sim.Job // for las: by queue, all its jobs in order
	left  map[int]bool

	displaced []sim.Job // stopped because others take their GPUs

	of, scratch *cluster.Cluster
}

func newNaive(t fatal, cfg schedulers.Config) *naive {
	t.Helper()
	n := &naive{cfg: cfg, skip: cfg.Admission == "skip" || cfg.Admission == "" && schedulers.Preemptive(cfg.Order)}
	if n.over = schedulers.PassesOver(cfg.Order); n.over {
		n.skip = false
	}
	var err error
	if n.place, err = cluster.NewPlacement(cfg.Placement); err != nil {
		t.Fatal(err)
	}
	if n.keys, err = schedulers.New(cfg); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *naive) Reset(*sim.View) {
	n.open, n.lists, n.left = false, make([][]sim.Job, len(n.cfg.Limits)+1), map[int]bool{}
}

func (n *naive) key(v *sim.View, j sim.Job) float64 { return schedulers.KeyOf(n.keys, v, j) }

func (n *naive) ranked(v *sim.View, jobs ...sim.Job) []sim.Job {
	slices.SortFunc(jobs, func(a, b sim.Job) int {
		return cmp.Or(cmp.Compare(n.key(v, a), n.key(v, b)), cmp.Compare(v.Pos(a), v.Pos(b)))
	})
	return jobs
}

func (n *naive) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if !schedulers.Preemptive(n.cfg.Order) {
		over := map[int32]bool{} // virtual clusters whose pass has ended
		for _, j := range n.ranked(v, slices.Clone(v.Waiting())...) {
			if n.left[v.Pos(j)] || over[v.Request(j).VC] {
				continue
			}
			var ok bool
			if d.GPUs, ok = n.place.Place(v.Cluster(), v.Request(j), nil); ok {
				d.Op, d.Job = sim.StartJob, j
				if n.over {
					n.passOver(v, j)
				}
				return nil
			}
			over[v.Request(j).VC] = !n.skip
		}
		clear(n.left)
		return nil
	}
	if !n.open {
		n.open, n.until = true, 0
		n.rerank(v, p)
	}
	for len(n.plan) > 0 {
		*d, n.plan = n.plan[0], n.plan[1:]
		if d.Op == sim.PreemptJob || d.GPUs != nil {
			return nil
		}
		var ok bool
		if d.GPUs, ok = n.place.Place(v.Cluster(), v.Request(d.Job), nil); ok {
			return nil
		}
	}
	*d = sim.Decision{}
	n.finish(v)
	for _, j := range n.displaced {
		if c := v.Cluster(); len(c.VCs()) > 0 && c.Owner() == 0 && v.State(j) == sim.Waiting {
			if _, ok := n.place.Place(c, v.Request(j), nil); ok {
				n.until = v.Now() + 1
			}
		}
	}
	n.open, d.Until = false, n.until
	return nil
}

// passOver excludes the job behind j from this pass.
func (n *naive) passOver(v *sim.View, j sim.Job) {
	all := n.ranked(v, slices.Clone(v.Waiting())...)
	for _, k := range all[slices.Index(all, j)+1:] {
		if !n.left[v.Pos(k)] && v.Request(k).VC == v.Request(j).VC {
			n.left[v.Pos(k)] = true
			return
		}
	}
}

func (n *naive) las() bool { return n.cfg.Order == "las" || n.cfg.Order == "las-2d-prompt" }

// got returns what counts towards the limits.
func (n *naive) got(v *sim.View, j sim.Job) time.Duration {
	if n.cfg.Order == "las-2d-prompt" {
		return v.Ran(j) * time.Duration(v.Request(j).GPUs*v.Request(j).Milli) / 1000
	}
	return v.Ran(j)
}

func (n *naive) rerank(v *sim.View, p *sim.Point) {
	var order []sim.Job
	if n.las() {
		for _, e := range p.Events {
			if e.Kind == sim.Submit {
				n.lists[0] = append(n.lists[0], e.Job)
			}
		}
		n.drop(v)
		byPos := slices.Clone(v.Running())
		slices.SortFunc(byPos, func(a, b sim.Job) int { return v.Pos(a) - v.Pos(b) })
		for _, j := range byPos {
			for q := range n.cfg.Limits {
				if i := slices.Index(n.lists[q], j); i >= 0 && n.got(v, j) >= n.cfg.Limits[q] {
					n.lists[q] = slices.Delete(n.lists[q], i, i+1)
					n.lists[q+1] = append(n.lists[q+1], j)
				}
			}
		}
		order = slices.Concat(n.lists...)
	} else {
		order = n.ranked(v, slices.Concat(v.Waiting(), v.Running())...)
	}
	n.displaced = nil
	keep, stops, starts := n.count(v, order)
	if c := v.Cluster(); !c.Pool() {
		for _, j := range order {
			if r := v.Request(j); r.Milli != 1000 || r.Types != 0 || r.CPUMilli != 0 || r.MemBytes != 0 || r.Each != 0 ||
				cluster.Constrained(n.place) {
				stops, starts = n.place1by1(v, order, keep)
				break
			}
		}
	}
	n.plan = append(stops, starts...)
}

// count chooses the jobs that have a place by counting GPUs.
func (n *naive) count(v *sim.View, order []sim.Job) (keep map[sim.Job]bool, stops, starts []sim.Decision) {
	c := v.Cluster()
	left, full := (c.GPUs()-c.DownGPUs())*1000, map[int32]bool{}
	quota := map[int32]int{} // what is left of them
	for i, vc := range c.Spec().VCs {
		if quota[int32(i+1)] = vc.Quota * 1000; vc.Quota == 0 {
			quota[int32(i+1)] = math.MaxInt
		}
	}
	keep = map[sim.Job]bool{}
	for _, j := range order {
		r := v.Request(j)
		if need := r.GPUs * r.Milli; !full[r.VC] && need <= left && (r.VC == 0 || need <= quota[r.VC]) {
			left -= need
			quota[r.VC] -= need
			if v.State(j) == sim.Waiting {
				starts = append(starts, sim.Decision{Op: sim.StartJob, Job: j})
			} else {
				keep[j] = true
			}
			continue
		}
		full[r.VC] = full[r.VC] || !n.skip
		if v.State(j) == sim.Running {
			stops = append(stops, sim.Decision{Op: sim.PreemptJob, Job: j})
		}
	}
	return keep, stops, starts
}

// place1by1 does what exactPlan describes, and builds each copy anew each time.
func (n *naive) place1by1(v *sim.View, order []sim.Job, keep map[sim.Job]bool) (stops, starts []sim.Decision) {
	type held struct {
		r    *cluster.Request
		gpus []cluster.GPU
	}
	if n.of != v.Cluster() {
		n.of = v.Cluster()
		n.scratch = n.of.Twin()
	}
	var high []held
	over := map[int32]bool{}
	build := func(rest []sim.Job, which func(j sim.Job) bool) *cluster.Cluster {
		c := n.scratch
		c.Reset()
		for i := range c.Nodes() {
			if !c.Pool() && v.Cluster().Down(i) {
				if err := c.SetDown(i, true); err != nil {
					panic(err)
				}
			}
		}
		for _, h := range high {
			if err := c.Allocate(h.r, h.gpus); err != nil {
				panic(err)
			}
		}
		for _, j := range rest {
			if v.State(j) == sim.Running && which(j) {
				_ = c.Allocate(v.Request(j), v.GPUs(j)) // as far as there is room
			}
		}
		return c
	}
	for i, j := range order {
		r := v.Request(j)
		rest := order[i+1:]
		if v.State(j) == sim.Running {
			if !over[r.VC] && build(nil, nil).Allocate(r, v.GPUs(j)) == nil {
				high = append(high, held{r, v.GPUs(j)})
			} else {
				stops = append(stops, sim.Decision{Op: sim.PreemptJob, Job: j})
				if !over[r.VC] {
					n.displaced = append(n.displaced, j)
				}
				over[r.VC] = over[r.VC] || !n.skip
			}
			continue
		}
		if over[r.VC] {
			continue
		}
		try := func(c *cluster.Cluster) bool {
			gpus, ok := n.place.Place(c, r, nil)
			if ok {
				high = append(high, held{r, gpus})
				starts = append(starts, sim.Decision{Op: sim.StartJob, Job: j, GPUs: gpus})
			}
			return ok
		}
		placed := try(build(rest, func(sim.Job) bool { return true })) ||
			try(build(rest, func(j sim.Job) bool { return keep[j] }))
		if !placed {
			var lower []sim.Job
			gaveWay := 0
			room := build(nil, nil).VCRoom(r.VC)
			limited := room != math.MaxInt
			room -= r.GPUs * r.Milli
			for _, k := range rest {
				if v.State(k) != sim.Running {
					continue
				}
				if q := v.Request(k); limited && q.VC == r.VC {
					if q.GPUs*q.Milli > room {
						gaveWay++
						continue
					}
					room -= q.GPUs * q.Milli
				}
				lower = append(lower, k)
			}
			beside := func(k int) *cluster.Cluster { return build(lower[:k], func(sim.Job) bool { return true }) }
			some, none := 0, len(lower)+min(1, gaveWay)
			for none-some > 1 {
				mid := (some + none) / 2
				if _, ok := n.place.Place(beside(mid), r, nil); ok {
					some = mid
				} else {
					none = mid
				}
			}
			placed = try(beside(some))
		}
		over[r.VC] = over[r.VC] || !placed && !n.skip
	}
	return stops, starts
}

// drop removes ended jobs from the lists; their numbers may be reused.
func (n *naive) drop(v *sim.View) {
	live := map[sim.Job]bool{}
	for _, j := range slices.Concat(v.Running(), v.Waiting()) {
		live[j] = true
	}
	for q := range n.lists {
		n.lists[q] = slices.DeleteFunc(n.lists[q], func(j sim.Job) bool { return !live[j] })
	}
}

// finish moves waiting jobs behind running ones, queue by queue, and finds the next fall.
func (n *naive) finish(v *sim.View) {
	if !n.las() {
		return
	}
	for q, list := range n.lists {
		slices.SortStableFunc(list, func(a, b sim.Job) int { return cmp.Compare(b2i(v, a), b2i(v, b)) })
		if q == len(n.cfg.Limits) {
			break
		}
		for _, j := range list {
			if v.State(j) == sim.Running {
				per := time.Duration(1000)
				if n.cfg.Order == "las-2d-prompt" {
					if per = time.Duration(v.Request(j).GPUs * v.Request(j).Milli); per == 0 {
						continue
					}
				}
				wait := n.cfg.Limits[q]*1000 - v.Ran(j)*per
				at := v.Now() + wait/per
				if wait%per > 0 {
					at++
				}
				if n.until == 0 || at < n.until {
					n.until = at
				}
			}
		}
	}
}

func b2i(v *sim.View, j sim.Job) int {
	if v.State(j) == sim.Running {
		return 0
	}
	return 1
}

type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// log is an observer that writes every event down.
type log struct{ b bytes.Buffer }

func (l *log) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		id := ""
		if e.Job >= 0 {
			id = v.Trace(e.Job).ID
		}
		fmt.Fprintln(&l.b, e.At, e.Kind, id, e.GPUs)
	}
	return nil
}

// drawn returns a workload and a cluster: gangs, shares, types, cores, simultaneous arrivals, and few distinct run
// times, so that ties are common.
func drawn(r *rand.Rand, n int) (cluster.Spec, []traces.Job) {
	var spec cluster.Spec
	gpus := 12
	switch r.IntN(3) {
	case 0:
		spec.Pool = gpus
	case 1:
		spec.Racks = []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 3}}}}
	default:
		spec.Speeds = map[string]float64{"k80": 0.4}
		spec.Racks = []cluster.RackSpec{
			{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, GPUType: "v100"}, {GPUs: 4, GPUType: "k80", CPUs: 16}}}}
	}
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		if r.IntN(3) > 0 {
			at += time.Duration(r.IntN(30)) * time.Second
		}
		j := traces.Job{ID: fmt.Sprint("j", i), Submit: at, Work: time.Duration(1+r.IntN(12)) * 10 * time.Second,
			GPUs: 1 + r.IntN(5), GPUMilli: 1000}
		j.Estimate = time.Duration(1+r.IntN(12)) * 10 * time.Second
		j.User = fmt.Sprint("u", i*7%4)
		switch r.IntN(8) {
		case 0:
			j.GPUMilli = 1 + r.IntN(999)
		case 1:
			j.GPUTypes = []string{"k80"}
		case 2:
			j.CPUMilli = int64(r.IntN(5)) * 4000
		case 3:
			j.GPUs = 12
		}
		if spec.Pool > 0 || spec.Speeds == nil {
			j.GPUTypes = nil
		}
		jobs[i] = j
	}
	return spec, jobs
}

// simulate runs jobs under sch and returns all events as text.
func simulate(t fatal, cfg sim.Config, spec cluster.Spec, jobs []traces.Job, sch sim.Scheduler) string {
	t.Helper()
	s, err := sim.New(cfg, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	var l log
	if err := sim.Run(context.Background(), s, sch, &l); err != nil {
		t.Fatalf("%v; so far:\n%s", err, l.b.String())
	}
	return l.b.String()
}

// fixedPlacements do not depend on the number of earlier calls.
var fixedPlacements = []string{"first-fit", "best-fit", "worst-fit", "pack", "closest-a", "closest-b", "closest-c",
	"consolidate-first", "consolidate-best", "rack", "tetris"}

// Every order × admission decides exactly as if all jobs were ranked anew at every point.
func TestHeapsAgreeWithRankingAnew(t *testing.T) {
	for _, order := range schedulers.Orders() {
		if !schedulers.IsOrder(order) || schedulers.Remembers(order) && order != "las" && order != "las-2d-prompt" {
			continue // it has its own tests
		}
		for _, admission := range []string{"strict", "skip"} {
			t.Run(order+"+"+admission, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
					spec, jobs := estimated(r, rapid.IntRange(1, 60).Draw(t, "jobs"))
					cfg := schedulers.DefaultConfig()
					cfg.Order, cfg.Admission, cfg.Seed = order, admission, r.Uint64()
					cfg.Placement = fixedPlacements[r.IntN(len(fixedPlacements))]
					cfg.Estimates = sim.MustEstimates([]string{"exact", "trace", "noisy:0.7"}[r.IntN(3)])
					cfg.Limits = [][]time.Duration{nil, {40 * time.Second}, {25 * time.Second, 90 * time.Second}}[r.IntN(3)]
					run := sim.Config{Comm: []string{"none", "tree"}[r.IntN(2)], Restart: time.Duration(r.IntN(2)) * 5 * time.Second}
					h, err := schedulers.New(cfg)
					if err != nil {
						t.Fatal(err)
					}
					got := simulate(t, run, spec, jobs, h)
					want := simulate(t, run, spec, jobs, schedulers.OnParts(func() sim.Scheduler { return newNaive(t, cfg) }))
					if got != want {
						t.Fatalf("%+v on %+v:\n%s", cfg, spec, diff(got, want))
					}
					if again := simulate(t, run, spec, jobs, h); again != want {
						t.Fatalf("used again:\n%s", diff(again, want))
					}
				})
			})
		}
	}
}

// diff returns the place where two logs differ.
func diff(got, want string) string {
	g, w := bytes.Split([]byte(got), []byte("\n")), bytes.Split([]byte(want), []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			from := max(0, i-12)
			return fmt.Sprintf("… %s\ngot\n%s\nwant\n%s", bytes.Join(g[from:i], []byte("\n")),
				bytes.Join(g[i:min(i+5, len(g))], []byte("\n")), bytes.Join(w[i:min(i+5, len(w))], []byte("\n")))
		}
	}
	return fmt.Sprintf("%d and %d events", len(g), len(w))
}

// A workload in which every job has a different request: empty lines are forgotten on the way.
func TestManyKindsOfRequests(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 4, CPUs: 32}}}}}
	var jobs []traces.Job
	for i := range 700 {
		jobs = append(jobs,
			traces.Job{ID: fmt.Sprint("j", i), Submit: time.Duration(i) * 10 * time.Second, GPUs: 1 + r.IntN(4), GPUMilli: 1000,
				Work: time.Duration(1+r.IntN(50)) * time.Second, CPUMilli: int64(1000 + i*7)})
	}
	for _, order := range []string{"sjf", "srtf"} {
		cfg := schedulers.DefaultConfig()
		cfg.Order, cfg.Admission = order, "skip"
		h, err := schedulers.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		got, want := simulate(t, sim.DefaultConfig(), spec, jobs,
			h), simulate(t, sim.DefaultConfig(), spec, jobs, newNaive(t, cfg))
		if got != want {
			t.Errorf("%s:\n%s", order, diff(got, want))
		}
	}
}
