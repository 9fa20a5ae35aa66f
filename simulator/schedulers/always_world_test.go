package schedulers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/rng"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict/gbdt"
	past "clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// world is everything that determines a run. It is drawn value by value, so that a counter-example shrinks, and can
// be printed in readable form.
type world struct {
	spec   cluster.Spec
	cfg    sim.Config
	jobs   []traces.Job
	policy schedulers.Config
}

// wants restricts the worlds that a test draws.
type wants struct {
	order   string
	way     *how          // nil = any valid for the order
	steady  bool          // every job runs for its work: rate 1, nothing fails, no overheads
	rate1   bool          // the same, but starts may cost time
	alike   bool          // a counter or nodes of equal GPUs, no virtual clusters, jobs for whole GPUs and nothing else
	worked  bool          // every job has some work
	shared  bool          // virtual clusters share all nodes, within quotas
	owned   bool          // the nodes are divided among virtual clusters, of which at least one owns some
	patient bool          // no job outlives its estimate in the trace
	apart   bool          // nothing is learned from other jobs: estimates are those of the job alone
	unit    time.Duration // of all times, 0 = a second
	most    int           // jobs, 0 = 10
}

// drawWorld draws a small world.
func drawWorld(t *rapid.T, w wants) *world {
	if w.unit == 0 {
		w.unit = second
	}
	if w.most == 0 {
		w.most = 10
	}
	if w.order == "exact" { // exact plans for no others
		w.steady, w.alike = true, true
	}
	x := &world{cfg: sim.DefaultConfig()}
	drawCluster(t, &x.spec, w)
	if !w.steady {
		drawSimulator(t, x, w)
	}
	drawJobs(t, x, w)
	drawPolicy(t, x, w)
	x.policy.Simulator(&x.cfg)
	return x
}

func number(t *rapid.T, from, to int, what string) int { return rapid.IntRange(from, to).Draw(t, what) }

func one[T any](t *rapid.T, of []T, what string) T { return rapid.SampledFrom(of).Draw(t, what) }

func yes(t *rapid.T, what string) bool { return rapid.Bool().Draw(t, what) }

func drawCluster(t *rapid.T, s *cluster.Spec, w wants) {
	nodes := 0
	switch kind := one(t, []string{"counter", "like nodes", "nodes"}, "cluster"); {
	case w.shared:
		nodes = drawNodes(t, s, w)
		defer func() {
			for i := range s.VCs {
				s.VCs[i].Nodes = 0
			}
			if len(s.VCs) == 0 {
				s.VCs = append(s.VCs, cluster.VCSpec{Name: "vc0"})
			}
			s.VCs[0].Quota = number(t, 1, 4, "quota")
		}()
	case w.owned:
		nodes = drawNodes(t, s, w)
		if nodes == 1 {
			s.Racks = append(s.Racks, cluster.RackSpec{Nodes: []cluster.NodeSpec{{GPUs: 2}}})
			nodes++
		}
	case kind == "counter":
		s.Pool = number(t, 1, 8, "GPUs")
	case kind == "like nodes" || w.alike:
		r := cluster.RackSpec{Count: cluster.Count(number(t, 1, 2, "racks")),
			Nodes: []cluster.NodeSpec{{Count: cluster.Count(number(t, 1, 3, "nodes")), GPUs: number(t, 1, 4, "GPUs of a node")}}}
		nodes = r.Count.N() * r.Nodes[0].Count.N()
		s.Racks = append(s.Racks, r)
	default:
		nodes = drawNodes(t, s, w)
	}
	if w.alike || !w.owned && !yes(t, "virtual clusters") {
		return
	}
	for i := range number(t, 1, 3, "number of virtual clusters") {
		v := cluster.VCSpec{Name: fmt.Sprint("vc", i)}
		if nodes > 1 {
			least := 0
			if w.owned && i == 0 {
				least = 1
			}
			v.Nodes = number(t, least, nodes-1, "nodes of a VC") // one node is left for jobs without
			nodes -= v.Nodes
		}
		if v.Nodes == 0 {
			v.Quota = number(t, 0, 5, "quota")
		}
		s.VCs = append(s.VCs, v)
	}
	if s.Pool > 0 || w.owned || number(t, 0, 3, "hosts") > 0 {
		return
	}
	all := 0
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			all += r.Count.N() * n.Count.N()
		}
	}
	for i := range s.VCs { // partitions that may overlap
		v := &s.VCs[i]
		if v.Nodes = 0; number(t, 0, 3, "named hosts") > 0 {
			from := number(t, 0, all-1, "first host")
			v.Hosts = []string{fmt.Sprintf("[%d-%d]", from, number(t, from, all-1, "last host"))}
		}
	}
}

// drawNodes draws racks of different nodes and returns the number of nodes.
func drawNodes(t *rapid.T, s *cluster.Spec, w wants) (nodes int) {
	used := map[string]bool{}
	for i := range number(t, 1, 2, "racks") {
		var r cluster.RackSpec
		for k := range number(t, 1, 2, "kinds of nodes") {
			n := cluster.NodeSpec{Count: cluster.Count(number(t, 1, 2, "nodes")),
				GPUType: one(t, []string{"", "a", "b"}, "type"),
				CPUs:    float64(one(t, []int{0, 8}, "cores")), MemGB: float64(one(t, []int{0, 16}, "GiB"))}
			n.GPUs = number(t, 1-min(1, i+k), 4, "GPUs of a node") // the first has some
			used[n.GPUType] = true
			nodes += n.Count.N()
			r.Nodes = append(r.Nodes, n)
		}
		r.Uplink.Gbps = float64(one(t, []int{0, 1, 100}, "uplink"))
		s.Racks = append(s.Racks, r)
	}
	for _, k := range []string{"a", "b"} {
		if used[k] && !w.steady && !w.rate1 {
			if s.Speeds == nil {
				s.Speeds = map[string]float64{}
			}
			s.Speeds[k] = one(t, []float64{1, 2, 0.5, 0.3}, "speed")
		}
	}
	return nodes
}

// kept is an interference that is a function of the two models.
type kept struct{}

func (kept) Kept(victim, other *traces.Job) float64 {
	return []float64{1, 0.5, 0.9, 0.3}[rng.Hash(victim.Model+" beside "+other.Model)%4]
}

func (kept) String() string { return "by model" }

// drawSimulator switches on features that make a job run for another time than its work.
func drawSimulator(t *rapid.T, x *world, w wants) {
	c := &x.cfg
	c.Horizon = 3000 * w.unit // a policy that keeps changing its mind may never end
	some := func(most int, what string) time.Duration { return time.Duration(number(t, 0, most, what)) * w.unit }
	if yes(t, "stints cost") {
		c.Restart = some(3, "restart")
		c.Overhead = sim.Overhead{Start: some(2, "start"), StartPerGPU: some(1, "start per GPU"), Stop: some(2, "stop"),
			StopPerGPU: some(1, "stop per GPU")}
		c.Checkpoint = some(4, "checkpoint")
	}
	c.Serial = number(t, 0, 4, "serial") == 4
	if w.rate1 {
		return
	}
	c.Comm = one(t, sim.CommNames(), "comm")
	if x.spec.Pool == 0 && yes(t, "nodes fail") {
		c.Failures = sim.Failures{MTBF: time.Duration(number(t, 30, 300, "MTBF")) * w.unit,
			MTTR: time.Duration(number(t, 1, 30, "MTTR")) * w.unit}
		c.Seed = rapid.Uint64().Draw(t, "seed of the failures")
	}
	if yes(t, "interference") {
		c.Interference, c.InterferenceScope = kept{}, one(t, []string{"gpu", "node"}, "scope")
	}
}

// madeUp are invented models.
var madeUp = []*traces.Profile{
	{Name: "small", GradientBytes: 10e6, Compute: 20 * time.Millisecond},
	{Name: "large", GradientBytes: 500e6, Compute: 100 * time.Millisecond, Skewed: true,
		Speeds: map[string]float64{"a": 3, "b": 0.4}},
	{Name: "flat", GradientBytes: 100e6, Compute: 50 * time.Millisecond,
		Scaling: []traces.ScalePoint{{GPUs: 1, Throughput: 2}, {GPUs: 4, Throughput: 5}}},
}

// drawJobs draws a workload. Many jobs arrive together, and few distinct run times and sizes make ties common.
func drawJobs(t *rapid.T, x *world, w wants) {
	at, least := time.Duration(0), 0
	if w.worked {
		least = 1
	}
	for i := range number(t, 1, w.most, "jobs") {
		at += time.Duration(max(0, number(t, -3, 5, "gap"))) * w.unit
		j := traces.Job{ID: fmt.Sprint("j", i), User: one(t, []string{"", "u", "v"}, "user"),
			Name: one(t, []string{"", "n"}, "name"), Submit: at, GPUs: number(t, 1, 4, "GPUs of a job"), GPUMilli: 1000}
		j.Work = time.Duration(number(t, least, 12, "work")) * w.unit
		j.Estimate = time.Duration(number(t, 1, 12, "estimate")) * w.unit
		if w.patient {
			j.Estimate += j.Work
		}
		j.Profile = madeUp[0]
		if !w.steady && !w.rate1 {
			j.Profile = one(t, madeUp, "model")
		}
		j.Model = j.Profile.Name
		if n := len(x.spec.VCs); n > 0 {
			j.VC = fmt.Sprint("vc", number(t, 0, n-1, "VC"))
			if number(t, 0, 9, "elsewhere") == 9 {
				j.VC = "elsewhere"
			}
		}
		if !w.alike {
			drawOddity(t, x, &j)
		}
		x.jobs = append(x.jobs, j)
	}
}

// drawOddity changes j into something other than a gang of whole GPUs.
func drawOddity(t *rapid.T, x *world, j *traces.Job) {
	switch one(t, []string{"none", "share", "type", "cores", "memory", "no GPU", "elastic", "deadline", "nodes"}, "oddity") {
	case "share":
		j.GPUMilli = one(t, []int{500, 300, 999, 1}, "thousandths")
	case "type":
		if x.spec.Pool == 0 {
			j.GPUTypes = one(t, [][]string{{"a"}, {"b"}, {"a", "b"}, {"c"}}, "types")
		}
	case "cores":
		j.CPUMilli = int64(number(t, 1, 9, "cores of the job")) * 1000
	case "memory":
		j.MemBytes = int64(number(t, 1, 17, "memory of the job")) << 30
	case "no GPU":
		j.GPUs, j.GPUMilli, j.CPUMilli = 0, 0, int64(number(t, 0, 8, "cores of the job"))*1000
	case "elastic":
		j.MinGPUs, j.MaxGPUs = number(t, 0, j.GPUs, "least GPUs"), j.GPUs+number(t, 0, 3, "more GPUs")
	case "nodes":
		j.GPUs, j.Nodes = one(t, []int{2, 2, 3, 4, 4, 6}, "GPUs on nodes"), number(t, 1, 3, "nodes of the job")
	case "deadline":
		j.Deadline, j.Priority = j.Submit+j.Work*2, number(t, 0, 3, "priority")
	}
}

// how is an admission and a way of back-filling.
type how struct{ admission, backfill string }

func (h how) String() string {
	return strings.TrimSuffix(strings.Trim(h.admission+"+"+h.backfill, "+"), "+none")
}

// ways returns all that are valid for order.
func ways(order string) (all []how) {
	for _, admission := range []string{"strict", "skip", "commit", ""} {
		for _, backfill := range []string{"none", "easy", "conservative"} {
			c := schedulers.DefaultConfig()
			c.Order, c.Admission, c.Backfill = order, admission, backfill
			if c.Validate() == nil && (admission != "" || !schedulers.IsOrder(order)) {
				all = append(all, how{admission, backfill})
			}
		}
	}
	return all
}

// freePlacements returns the placements that place every job that fits and look only at requests.
func freePlacements() []string {
	return slices.DeleteFunc(cluster.PlacementNames(), func(name string) bool {
		p, err := cluster.NewPlacement(name)
		return err != nil || cluster.Constrained(p)
	})
}

func drawPolicy(t *rapid.T, x *world, w wants) {
	c := schedulers.DefaultConfig()
	c.Order = w.order
	way := w.way
	if way == nil {
		k := one(t, ways(w.order), "admission and back-filling")
		way = &k
	}
	c.Admission, c.Backfill = way.admission, way.backfill
	all := place.Names()
	if w.order == "exact" {
		all = freePlacements()
	}
	if !schedulers.IsOrder(w.order) || !schedulers.Preemptive(w.order) {
		all = slices.DeleteFunc(all, func(name string) bool { return name == "rack-skewed" }) // it goes with these only
	}
	c.Placement = one(t, all, "placement")
	some := 3
	if !w.apart {
		some = 5 - min(1, number(t, 0, 7, "no trees"))
	}
	c.Estimates = sim.MustEstimates(one(t, []string{"exact", "trace", "noisy:1", "history", "gbdt"}[:some], "estimates"))
	switch c.Estimates.String() {
	case "history":
		x.cfg.Predictor = past.NewArchive(nil)
	case "gbdt": // too few jobs for trees: what is tested is that they are told what they need
		x.cfg.Predictor = gbdt.New(1)
	}
	c.Limits = [][]time.Duration{{4 * w.unit}, nil, {2 * w.unit, 9 * w.unit}}[number(t, 0, 2, "limits")]
	c.Promote = float64(one(t, []int{0, 1, 8}, "promote"))
	c.Quantum = time.Duration(number(t, 1, 8, "quantum")) * w.unit
	c.Round, c.Migrate = time.Duration(number(t, 1, 8, "round"))*w.unit, time.Duration(number(t, 0, 8, "migrate"))*w.unit
	c.Align = one(t, []float64{0.5, 0, 1}, "align")
	c.Seed = rapid.Uint64().Draw(t, "seed of the policy")
	c.Given.Interference, c.Given.InterferenceScope = x.cfg.Interference, x.cfg.InterferenceScope
	x.policy = c
	if w.order == "exact" || yes(t, "the workload is known") {
		x.know()
	}
}

// know gives the policy what it may know of the workload.
func (x *world) know() {
	c, err := cluster.New(x.spec)
	if err != nil {
		panic(err)
	}
	x.policy.Know(x.jobs, c)
}

// String returns the world in readable form.
func (x *world) String() string {
	var b strings.Builder
	c := &x.policy
	fmt.Fprintf(&b,
		"policy %s, placement %s, estimates %s, limits %v, promote %v, quantum %v, round %v, migrate %v, align %v, seed %d\non ",
		c.Name(), c.Placement, c.Estimates, c.Limits, c.Promote, c.Quantum, c.Round, c.Migrate, c.Align, c.Seed)
	if x.spec.Pool > 0 {
		fmt.Fprintf(&b, "a counter of %d", x.spec.Pool)
	}
	for _, r := range x.spec.Racks {
		fmt.Fprintf(&b, "%d racks of", r.Count.N())
		for _, n := range r.Nodes {
			fmt.Fprintf(&b, " %d nodes (%d GPUs %q, %v cores, %v GiB)", n.Count.N(), n.GPUs, n.GPUType, n.CPUs, n.MemGB)
		}
		fmt.Fprintf(&b, ", uplink %v; ", r.Uplink.Gbps)
	}
	fmt.Fprintf(&b, " speeds %v, VCs %+v\nin %+v\n", x.spec.Speeds, x.spec.VCs, x.cfg)
	for i := range x.jobs {
		j := &x.jobs[i]
		fmt.Fprintf(&b, "%s: at %v for %v (estimate %v) on %d×%d‰", j.ID, j.Submit, j.Work, j.Estimate, j.GPUs, j.GPUMilli)
		for _, k := range []struct {
			what  string
			value any
			none  bool
		}{
			{"types", j.GPUTypes, j.GPUTypes == nil}, {"milli-cores", j.CPUMilli, j.CPUMilli == 0},
			{"bytes", j.MemBytes, j.MemBytes == 0},
			{"elastic", [2]int{j.MinGPUs, j.MaxGPUs}, j.MaxGPUs == 0}, {"user", j.User, j.User == ""}, {"VC", j.VC, j.VC == ""},
			{"nodes", j.Nodes, j.Nodes == 0}, {"model", j.Model, false},
		} {
			if !k.none {
				fmt.Fprintf(&b, ", %s %v", k.what, k.value)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// machine returns a simulator and a policy for x.
func (x *world) machine(t fatal) (*sim.Simulator, schedulers.Policy) {
	t.Helper()
	s, err := sim.New(x.cfg, x.spec)
	if err != nil {
		t.Fatalf("%v\n%s", err, x)
	}
	h, err := schedulers.New(x.policy)
	if err != nil {
		t.Fatalf("%v\n%s", err, x)
	}
	return s, h
}

// history writes the events down. If it has a unit, times and remaining work are in units.
type history struct {
	b     strings.Builder
	unit  time.Duration
	shift time.Duration // subtracted from all times
	blind bool          // to placements
}

func (h *history) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		id := fmt.Sprint("node ", e.Node)
		if e.Job >= 0 {
			id = v.Trace(e.Job).ID
		}
		at := e.At - h.shift
		if h.unit > 0 {
			fmt.Fprintf(&h.b, "%d+%d", at/h.unit, at%h.unit)
		} else {
			fmt.Fprint(&h.b, at)
		}
		fmt.Fprint(&h.b, " ", e.Kind, " ", id, " ", e.N)
		if len(e.GPUs) > 0 && !h.blind {
			fmt.Fprint(&h.b, " ", e.GPUs)
		}
		h.b.WriteByte('\n')
	}
	return nil
}

// playOn runs x on s under sch.
func (x *world) playOn(t fatal, s *sim.Simulator, sch sim.Scheduler, h *history, observers ...sim.Observer) string {
	t.Helper()
	if err := s.Reset(&traces.Slice{Jobs: x.jobs}); err != nil {
		t.Fatalf("%v\n%s", err, x)
	}
	if err := sim.Run(context.Background(), s, sch, append([]sim.Observer{h}, observers...)...); err != nil {
		t.Fatalf("%v\n%s\nso far:\n%s", err, x, h.b.String())
	}
	return h.b.String()
}

// played runs x from the start and returns the events as h writes them.
func (x *world) played(t fatal, h history) string {
	t.Helper()
	s, p := x.machine(t)
	return x.playOn(t, s, p, &h)
}
