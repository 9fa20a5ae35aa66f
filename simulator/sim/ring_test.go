package sim_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const ms, us = time.Millisecond, time.Microsecond

// tiers returns two racks of four nodes of four GPUs: a GPU's number is rack·16 + node·4 + index. An exchange of 10^8
// bytes takes 10 ms on its link, 20 ms on its NIC, 80 ms on its uplink.
func tiers() cluster.Spec {
	return cluster.Spec{Racks: []cluster.RackSpec{{
		Count: 2, Uplink: cluster.Link{Gbps: 10, Latency: 50 * us},
		Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4, Link: cluster.Link{Gbps: 80, Latency: us},
			NIC: cluster.Link{Gbps: 40, Latency: 5 * us}}},
	}}}
}

// modelled returns a gang whose model exchanges 10^8 bytes after 100 ms of computing.
func modelled(id string, submit, work time.Duration, gpus int) traces.Job {
	j := job(id, submit, work, gpus)
	j.Profile = &traces.Profile{Name: "m", GradientBytes: 100e6, Compute: 100 * ms}
	return j
}

// Worked out on paper for four GPUs. A ring of m members costs 2(m−1)/m of the link's time and 2(m−1) latencies: for
// two members that is 1 and 2, for four 3/2 and 6. The best placement is one node: 15 ms + 6 µs.
func TestRingByHand(t *testing.T) {
	best := 15*ms + 6*us
	for _, c := range []struct {
		what string
		gpus []cluster.GPU
		want time.Duration
	}{
		{"one node", []cluster.GPU{4, 5, 6, 7}, best},
		{"two and two in a rack", []cluster.GPU{0, 1, 4, 5}, 10*ms + 2*us + 20*ms + 10*us},
		{"one on each of four nodes", []cluster.GPU{0, 4, 8, 12}, 30*ms + 30*us},
		{"three and one, a flat ring over the NICs", []cluster.GPU{0, 1, 2, 4}, 30*ms + 30*us},
		{"two nodes in each rack", []cluster.GPU{0, 4, 16, 20}, 20*ms + 10*us + 80*ms + 100*us},
		{"two in each rack", []cluster.GPU{0, 1, 16, 17}, 10*ms + 2*us + 80*ms + 100*us},
		{"three and one across racks, a flat ring over the uplinks", []cluster.GPU{0, 1, 2, 16}, 120*ms + 300*us},
		{"two nodes and one node, the same", []cluster.GPU{0, 1, 4, 16}, 120*ms + 300*us},
		{"in any order", []cluster.GPU{16, 1, 4, 0}, 120*ms + 300*us},
	} {
		for _, overlap := range []float64{0, 0.2, 1} {
			cfg := sim.Config{Comm: "ring", Ring: sim.Ring{Overlap: overlap}}
			s := start(t, cfg, tiers(), []traces.Job{modelled("A", 0, second, 4)})
			advance(t, s)
			hidden := time.Duration(overlap * float64(100*ms))
			iteration := func(d time.Duration) float64 { return float64(100*ms + max(0, d-hidden)) }
			if got, want := s.View().Factor(0, c.gpus), iteration(best)/iteration(c.want); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s, overlap %v: factor %v, want %v", c.what, overlap, got, want)
			}
		}
	}
	// Eight GPUs: two whole nodes of one rack (15 ms + 20 ms) are better than two GPUs on each of four nodes (10 + 30)
	// and than one ring of all (35 ms and more latency).
	s := start(t, sim.Config{Comm: "ring"}, tiers(), []traces.Job{modelled("A", 0, second, 8)})
	advance(t, s)
	if got := s.View().Factor(0, []cluster.GPU{0, 1, 2, 3, 8, 9, 10, 11}); got != 1 {
		t.Errorf("two whole nodes: %v, want 1", got)
	}
	if got, want := s.View().Factor(0, []cluster.GPU{0, 1, 4, 5, 8, 9, 12, 13}),
		135.016/140.032; math.Abs(got/want-1) > 1e-12 {
		t.Errorf("two on each of four nodes: %v, want %v", got, want)
	}
}

// For any cluster, the best placement that the model finds is the best of all placements.
func TestRingKnowsTheBestPlace(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 21))
		var spec cluster.Spec
		link := func() cluster.Link {
			return cluster.Link{Gbps: []float64{1, 3, 10, 40}[r.IntN(4)], Latency: []time.Duration{us, 10 * ms}[r.IntN(2)]}
		}
		left := 9
		for range 1 + r.IntN(3) {
			rack := cluster.RackSpec{Uplink: link()}
			for range 1 + r.IntN(3) {
				n := min(left, r.IntN(4))
				left -= n
				rack.Nodes = append(rack.Nodes, cluster.NodeSpec{GPUs: n, Link: link(), NIC: link()})
			}
			spec.Racks = append(spec.Racks, rack)
		}
		c, err := cluster.New(spec)
		if err != nil {
			continue // no GPU at all
		}
		total := c.GPUs()
		for n := 2; n <= total; n++ {
			s := start(t, sim.Config{Comm: "ring"}, spec, []traces.Job{modelled("A", 0, second, n)})
			advance(t, s)
			most := 0.0
			var gpus []cluster.GPU
			for set := range 1 << total {
				gpus = gpus[:0]
				for g := range total {
					if set>>g&1 == 1 {
						gpus = append(gpus, cluster.GPU(g))
					}
				}
				if len(gpus) == n {
					most = max(most, s.View().Factor(0, gpus))
				}
			}
			if math.Abs(most-1) > 1e-12 {
				t.Fatalf("seed %d, %d GPUs: the best place has factor %v; %+v", seed, n, most, spec)
			}
			seen[n] = true
		}
	}
	if len(seen) < 8 {
		t.Errorf("only gangs of %v", seen)
	}
}

// The rate of a gang without a profile is unknown: the stream is at fault.
func TestModelsThatMustBeKnown(t *testing.T) {
	bad := func(p *traces.Profile) []traces.Job {
		j := job("J7", 0, second, 2)
		j.Profile = p
		return []traces.Job{job("single", 0, second, 1), j}
	}
	elastic := job("J7", 0, second, 1)
	elastic.MaxGPUs = 2
	for name, jobs := range map[string][]traces.Job{
		"none":              bad(nil),
		"no compute":        bad(&traces.Profile{Name: "m", GradientBytes: 1}),
		"less than nothing": bad(&traces.Profile{Name: "m", GradientBytes: -1, Compute: second}),
		"can grow":          {elastic},
	} {
		for _, comm := range []string{"ring", "contention"} {
			cfg := sim.DefaultConfig()
			cfg.Comm = comm
			s, err := sim.New(cfg, short(t, "1x2"))
			if err != nil {
				t.Fatal(err)
			}
			if err = s.Reset(stream(jobs)); err == nil {
				_, err = s.Advance(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), "(J7)") || !strings.Contains(err.Error(), comm) ||
				!strings.Contains(err.Error(), "(mix)") {
				t.Errorf("%s, %s: %v", name, comm, err)
			}
			// On a counter no model is needed.
			advance(t, start(t, cfg, short(t, "pool:4"), jobs))
		}
	}
}

// With Ideal, a gang of two on a node, whose exchange takes a second after a second of compute, runs at half its rate.
func TestIdealRatesCountTheBestPlacesCommunicationToo(t *testing.T) {
	spec := cluster.Spec{
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, Link: cluster.Link{Gbps: 8, Latency: 1}}}}}}
	job := traces.Job{ID: "a", Work: time.Minute, GPUs: 2, GPUMilli: 1000,
		Profile: &traces.Profile{Name: "p", GradientBytes: 1e9, Compute: time.Second}}
	for _, ideal := range []bool{false, true} {
		cfg := sim.DefaultConfig()
		cfg.Comm, cfg.Ring.Ideal = "ring", ideal
		s, err := sim.New(cfg, spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: []traces.Job{job}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := 1.0
		if ideal {
			want = .5
		}
		if f := s.View().Factor(0, []cluster.GPU{0, 1}); math.Abs(f-want) > 1e-8 {
			t.Errorf("ideal %v: %v, want %v", ideal, f, want)
		}
	}
}

// Two nodes of two GPUs: with a link per GPU, the GPUs exchange half the bytes between nodes. Within a node the
// exchange takes negligible time; between nodes 10^9 bytes take a second, so the rates are 1/2 and 1/1.5.
func TestLinksOfEachGPUCarryAPartOfTheBytes(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{
		Count: 2, GPUs: 2, Link: cluster.Link{Gbps: 1e9, Latency: 1}, NIC: cluster.Link{Gbps: 8, Latency: 1},
	}}}}}
	job := traces.Job{ID: "a", Work: time.Minute, GPUs: 4, GPUMilli: 1000,
		Profile: &traces.Profile{Name: "p", GradientBytes: 1e9, Compute: time.Second}}
	for own, want := range map[bool]float64{false: 1. / 2, true: 1 / 1.5} {
		cfg := sim.DefaultConfig()
		cfg.Comm, cfg.Ring.Ideal, cfg.Ring.PerGPU = "ring", true, own
		s, err := sim.New(cfg, spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(&traces.Slice{Jobs: []traces.Job{job}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f := s.View().Factor(0, []cluster.GPU{0, 1, 2, 3}); math.Abs(f-want) > 1e-6 {
			t.Errorf("own links %v: %v, want %v", own, f, want)
		}
	}
}
