package schedulers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// twoRacks returns two racks of two nodes of four GPUs. An iteration of half takes twice as long between nodes as
// inside one, and four times as long between racks.
func twoRacks() cluster.Spec {
	link := func(gbps float64) cluster.Link { return cluster.Link{Gbps: gbps, Latency: time.Nanosecond} }
	return cluster.Spec{Name: "two racks", Racks: []cluster.RackSpec{{
		Count: 2, Uplink: link(8e-9 / 3 * 1e9),
		Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, Link: link(1e9), NIC: link(8)}},
	}}}
}

// half exchanges 10^9 bytes in an iteration of a second: two ring members need a second over 8 Gbit/s.
var half = &traces.Profile{Name: "half", GradientBytes: 1e9, Compute: time.Second}

func ringed(id string, at, work time.Duration, n int) traces.Job {
	return traces.Job{ID: id, Submit: at, Work: work, GPUs: n, GPUMilli: 1000, Profile: half}
}

// delayed runs jobs and returns the events, one word each.
func delayed(t *testing.T, spec cluster.Spec, jobs []traces.Job, change func(c *schedulers.Config)) string {
	t.Helper()
	cfg := schedulers.DefaultConfig()
	cfg.Order, cfg.Auto, cfg.RackWait, cfg.NetworkWait = "dally", false, 1, 2
	change(&cfg)
	sch, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sc := sim.DefaultConfig()
	sc.Comm = "ring"
	s, err := sim.New(sc, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	var log []string
	if err := sim.Run(t.Context(), s, sch, observed(func(v *sim.View, p *sim.Point) {
		for _, e := range p.Events {
			if e.Job >= 0 && e.Kind != sim.Submit {
				log = append(log, fmt.Sprintf("%s@%v=%s%v", v.Trace(e.Job).ID, e.At.Round(time.Second), e.Kind, e.GPUs))
			}
		}
	})); err != nil {
		t.Fatal(err)
	}
	return strings.Join(log, " ")
}

type observed func(v *sim.View, p *sim.Point)

func (o observed) Observe(v *sim.View, p *sim.Point) error {
	o(v, p)
	return nil
}

// Four jobs of three GPUs leave one GPU on every node, so a gang of two would be split. It declines a rack for one
// lease and the network for two. If a node becomes free meanwhile, it takes that.
func TestAGangDeclinesForAsLongAsItsTimersSay(t *testing.T) {
	const h = time.Hour
	full := func(ends time.Duration) []traces.Job {
		jobs := []traces.Job{ringed("a", 0, 6*h, 3), ringed("b", 0, 6*h, 3), ringed("c", 0, 6*h, 3), ringed("d", 0, ends, 3)}
		return append(jobs, ringed("x", time.Minute, h/2, 2))
	}
	keep := func(c *schedulers.Config) { c.Lease = 100 * h } // the leases of the other jobs do not end
	for _, c := range []struct {
		what   string
		ends   time.Duration
		change func(c *schedulers.Config)
		want   string
	}{
		{"a rack after 0.01 leases of 100 h", 6 * h,
			func(c *schedulers.Config) { keep(c); c.RackWait, c.NetworkWait = .01, .02 }, "x@1h1m0s=start[3 7]"},
		{"at once", 6 * h, func(c *schedulers.Config) { keep(c); c.RackWait, c.NetworkWait = 0, 0 }, "x@1m0s=start[3 7]"},
		{"a node that becomes free before", h / 2,
			func(c *schedulers.Config) { keep(c); c.RackWait, c.NetworkWait = .01, .02 }, "x@30m0s=start[12 13]"},
		{"never, so when all others have ended", 6 * h,
			func(c *schedulers.Config) { keep(c); c.RackWait, c.NetworkWait = 1e6, 1e6 }, "x@6h0m0s=start[0 1]"},
	} {
		got := delayed(t, twoRacks(), full(c.ends), c.change)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: no %s in\n%s", c.what, c.want, got)
		}
	}
}

// p runs on two nodes, at half its rate, b and c on one GPU each. When their leases run out at 1h, n, which has not
// run, is asked first and gets the first GPU that is given back, then b, whose progress equals c's, by its position:
// c stops. At 1h3m p is asked before c, which waits but has progressed at its full rate. At 2h c has waited longest
// of the jobs with equal progress, and n stops.
func TestTheOrderIsNetworkSensitive(t *testing.T) {
	spec := cluster.Spec{Name: "pairs", Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{
		Count: 2, GPUs: 2, Link: cluster.Link{Gbps: 1e9, Latency: 1}, NIC: cluster.Link{Gbps: 8, Latency: 1},
	}}}}}
	const h = time.Hour
	jobs := []traces.Job{
		ringed("a", 0, 3*time.Minute,
			1), ringed("b", 0, 6*h, 1), ringed("c", 0, 6*h, 1), ringed("p", time.Minute, 6*h, 2), ringed("n", 30*time.Minute,
			2*h, 1),
	}
	got := delayed(t, spec, jobs, func(c *schedulers.Config) { c.RackWait = 0 })
	want := "a@0s=start[0] b@0s=start[1] c@0s=start[2] a@3m0s=finish[0] p@3m0s=start[0 3] " +
		"c@1h0m0s=preempt[2] b@1h0m0s=migrate[2] n@1h0m0s=start[1] n@2h0m0s=preempt[1] c@2h0m0s=start[1]"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// No job waits when leases run out: nothing moves, and no job stops.
func TestAGangThatIsOfferedNothingNearerStaysWhereItIs(t *testing.T) {
	got := delayed(t, twoRacks(), []traces.Job{ringed("a", 0, 5*time.Hour, 4), ringed("b", 0, 5*time.Hour, 2)},
		func(*schedulers.Config) {})
	if got != "a@0s=start[0 1 2 3] b@0s=start[4 5] a@5h0m0s=finish[0 1 2 3] b@5h0m0s=finish[4 5]" {
		t.Errorf("got %s", got)
	}
}

// When its lease ends, a gang on two nodes moves into one that has become free.
func TestAtTheEndOfALeaseAGangMovesNearer(t *testing.T) {
	jobs := []traces.Job{ringed("a", 0, 6*time.Hour, 3), ringed("b", 0, 6*time.Hour, 3), ringed("c", 0, 6*time.Hour, 3),
		ringed("d", 0, time.Hour/2, 3),
		ringed("x", time.Minute, 5*time.Hour, 2)}
	got := delayed(t, twoRacks(), jobs, func(c *schedulers.Config) { c.RackWait = 0 })
	if !strings.Contains(got, "x@1m0s=start[3 7]") || !strings.Contains(got, "x@1h1m0s=migrate[12 13]") {
		t.Errorf("got %s", got)
	}
}

func TestSkewedModelsWaitForOneNode(t *testing.T) {
	jobs := []traces.Job{ringed("a", 0, 6*time.Hour, 3), ringed("b", 0, 6*time.Hour, 3), ringed("c", 0, 6*time.Hour, 3),
		ringed("d", 0, 6*time.Hour, 3),
		ringed("x", time.Minute, time.Hour, 2)}
	skewed := *half
	skewed.Skewed = true
	lease := func(c *schedulers.Config) { c.Order, c.Lease = "tiresias-lease", 100*time.Hour }
	if got := delayed(t, twoRacks(), jobs, lease); !strings.Contains(got, "x@1m0s=start[3 7]") {
		t.Errorf("got %s", got)
	}
	jobs[4].Profile = &skewed
	if got := delayed(t, twoRacks(), jobs, lease); !strings.Contains(got, "x@6h0m0s=start[0 1]") {
		t.Errorf("got %s", got)
	}
}

// The gang x would run at half its rate on GPUs of two nodes. It waits for better until half is enough after its
// patience, and looks again when something happens: e arrives at 2h.
func TestAJobOfDelayLASWaitsForAFastPlace(t *testing.T) {
	const h = time.Hour
	jobs := []traces.Job{ringed("a", 0, 6*h, 3), ringed("b", 0, 6*h, 3), ringed("c", 0, 6*h, 3), ringed("d", 0, 6*h, 3),
		ringed("x", time.Minute, h/2, 2), ringed("e", 2*h, time.Minute, 1)}
	for _, c := range []struct {
		what             string
		accept, patience float64
		want             string
	}{
		{"half is enough", .5, 0, "x@1m0s=start[3 7]"},
		{"more than half is wanted", .9, 0, "x@6h0m0s=start[0 1]"},
		{"more than half is wanted for log2(1.8) hours", .9, .01, "x@2h0m0s=start[3 7]"},
		{"the same for longer", .9, .1, "x@6h0m0s=start[0 1]"},
	} {
		got := delayed(t, twoRacks(), jobs, func(cfg *schedulers.Config) {
			cfg.Order, cfg.Lease, cfg.Accept, cfg.Patience = "delay-las", 100*h, c.accept, c.patience
		})
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: no %s in\n%s", c.what, c.want, got)
		}
	}
}

// x takes two nodes when it has waited for a minute. Its wait begins anew when its lease ends, so it gives them up
// although nobody wants them, and takes the node that is free an hour later.
func TestAJobOfDelayLASGivesUpASlowPlace(t *testing.T) {
	const h = time.Hour
	jobs := []traces.Job{ringed("a", 0, 16*h, 3), ringed("b", 0, 16*h, 3), ringed("c", 0, 16*h, 3),
		ringed("d", 0, 16*h, 3),
		ringed("x", time.Minute, 3*h, 2), ringed("e", 2*time.Minute, time.Second, 1)}
	got := delayed(t, twoRacks(), jobs,
		func(c *schedulers.Config) { c.Order, c.Accept, c.Patience = "delay-las", .9, .01 })
	for _, want := range []string{"x@2m0s=start[3 7]", "x@1h2m0s=preempt[3 7]", "x@2h0m0s=start[0 1]"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// x accepts half its rate. When its lease ends, it moves into the node that has become free.
func TestAJobOfDelayLASMovesToAFasterPlace(t *testing.T) {
	jobs := []traces.Job{ringed("a", 0, 6*time.Hour, 3), ringed("b", 0, 6*time.Hour, 3), ringed("c", 0, 6*time.Hour, 3),
		ringed("d", 0, time.Hour/2, 3),
		ringed("x", time.Minute, 5*time.Hour, 2)}
	got := delayed(t, twoRacks(), jobs, func(c *schedulers.Config) { c.Order, c.Accept = "delay-las", .5 })
	if !strings.Contains(got, "x@1m0s=start[3 7]") || !strings.Contains(got, "x@1h1m0s=migrate[12 13]") {
		t.Errorf("got %s", got)
	}
}

// p runs on both nodes, at half its rate. When its lease ends at 1h3m, it has held two GPUs for an hour and c, which
// waits, one: the network-sensitive order asks p first, the order of attained GPU-time c.
func TestDallyAsksInTheOrderThatItIsTold(t *testing.T) {
	spec := cluster.Spec{Name: "pairs", Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{
		Count: 2, GPUs: 2, Link: cluster.Link{Gbps: 1e9, Latency: 1}, NIC: cluster.Link{Gbps: 8, Latency: 1},
	}}}}}
	const h = time.Hour
	jobs := []traces.Job{
		ringed("a", 0, 3*time.Minute,
			1), ringed("b", 0, 6*h, 1), ringed("c", 0, 6*h, 1), ringed("p", time.Minute, 6*h, 2), ringed("n", 30*time.Minute,
			2*h, 1),
	}
	for ask, stops := range map[string]bool{"nw": false, "las": true} {
		got := delayed(t, spec, jobs, func(c *schedulers.Config) { c.RackWait, c.Ask = 0, ask })
		if strings.Contains(got, "p@1h3m0s=preempt[0 3] c@1h3m0s=start") != stops {
			t.Errorf("%s: got %s", ask, got)
		}
	}
}

// b waits for the only GPU. The lease of a, which began at 0h20m, ends after an hour, or with all others at 1h.
func TestLeasesEndTogether(t *testing.T) {
	one := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1}}}}}
	jobs := []traces.Job{ringed("a", 20*time.Minute, 2*time.Hour, 1), ringed("b", 30*time.Minute, time.Hour, 1)}
	for _, order := range []string{"dally", "delay-las", "tiresias-lease"} {
		for together, want := range map[bool]string{false: "b@1h20m0s=start[0]", true: "b@1h0m0s=start[0]"} {
			got := delayed(t, one, jobs, func(c *schedulers.Config) { c.Order, c.Together = order, together })
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", order, want, got)
			}
		}
	}
}

// x has a place on two nodes at once. A skewed model waits until a job on three GPUs has attained 3250 GPU-seconds and
// falls to the second queue, after 1083 s.
func TestRackSkewedConsolidatesSkewedModels(t *testing.T) {
	const h = time.Hour
	jobs := []traces.Job{ringed("a", 0, 6*h, 3), ringed("b", 0, 6*h, 3), ringed("c", 0, 6*h, 3), ringed("d", 0, 6*h, 3),
		ringed("x", time.Minute, h/4, 2)}
	skewed := *half
	skewed.Skewed = true
	las := func(c *schedulers.Config) { c.Order, c.Placement = "las-2d-prompt", "rack-skewed" }
	if got := delayed(t, twoRacks(), jobs, las); !strings.Contains(got, "x@1m0s=start[3 7]") {
		t.Errorf("got %s", got)
	}
	jobs[4].Profile = &skewed
	if got := delayed(t, twoRacks(), jobs, las); !strings.Contains(got, "x@18m3s=start") ||
		strings.Contains(got, "start[3 7]") {
		t.Errorf("got %s", got)
	}
	c := schedulers.DefaultConfig()
	c.Placement = "rack-skewed"
	if _, err := schedulers.New(c); err == nil ||
		!strings.Contains(err.Error(), `placement: got "rack-skewed", want a placement that refuses no job`) {
		t.Errorf("fifo with rack-skewed: %v", err)
	}
}
