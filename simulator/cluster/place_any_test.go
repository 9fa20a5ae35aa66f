package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// drawShared draws a cluster with virtual clusters: some own nodes, some have a quota, some have neither.
func drawShared(t *rapid.T) cluster.Spec {
	spec := drawSpec(t)
	if rapid.Bool().Draw(t, "undivided") {
		return spec
	}
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	left := c.Nodes() - 1
	hosts := rapid.IntRange(0, 2).Draw(t, "hosts") == 0
	for i := range rapid.IntRange(1, 3).Draw(t, "vcs") {
		vc := cluster.VCSpec{Name: fmt.Sprint("vc", i)}
		switch k := rapid.IntRange(0, 2).Draw(t, "kind"); {
		case k == 0 && hosts:
			for range rapid.IntRange(1, 3).Draw(t, "hosts of the VC") {
				vc.Hosts = append(vc.Hosts, fmt.Sprint(rapid.IntRange(0, c.Nodes()-1).Draw(t, "host")))
			}
		case k == 0 && left > 0:
			vc.Nodes = rapid.IntRange(1, left).Draw(t, "own")
			left -= vc.Nodes
		case k == 1:
			vc.Quota = rapid.IntRange(1, c.GPUs()).Draw(t, "quota")
		}
		spec.VCs = append(spec.VCs, vc)
	}
	return spec
}

func anyJob(r *rand.Rand, vcs []string) traces.Job {
	j := traces.Job{GPUs: r.IntN(8), GPUMilli: 1000}
	if len(vcs) > 0 {
		j.VC = vcs[r.IntN(len(vcs))]
	}
	if r.IntN(3) == 0 {
		j.GPUMilli = []int{1, 250, 333, 500, 501, 999}[r.IntN(6)]
	}
	if r.IntN(4) == 0 {
		j.GPUTypes = [][]string{{"v100"}, {"", "p100"}}[r.IntN(2)]
	}
	if r.IntN(3) == 0 {
		j.CPUMilli = r.Int64N(6000)
	}
	if r.IntN(3) == 0 {
		j.MemBytes = r.Int64N(4 << 30)
	}
	if r.IntN(2) == 0 {
		j.Nodes = 1 + r.IntN(3)
	}
	return j
}

// For any cluster and request, a successful placement lists the requested number of distinct GPUs, and they can be
// allocated. An unconstrained rule succeeds exactly when the gang fits; a constrained one always succeeds on an idle
// cluster.
func TestEveryPlacementPlacesWhatFits(t *testing.T) {
	placed, chunks := map[string]int{}, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c, err := cluster.New(drawShared(t))
		if err != nil {
			t.Fatal(err)
		}
		var rules []cluster.Placement
		for _, name := range cluster.PlacementNames() {
			rules = append(rules, rule2(t, name))
		}
		type run struct {
			r    cluster.Request
			gpus []cluster.GPU
		}
		var running []run
		var gpus []cluster.GPU
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		for range 60 {
			if len(running) > 0 && r.IntN(4) == 0 {
				i := r.IntN(len(running))
				c.Release(&running[i].r, running[i].gpus)
				running = append(running[:i], running[i+1:]...)
			}
			if node := r.IntN(c.Nodes()); r.IntN(8) == 0 {
				_ = c.SetDown(node, !c.Down(node)) // refused where something runs
			}
			j := anyJob(r, c.VCs())
			q, ok := c.Request(&j)
			if !ok {
				continue
			}
			fits := c.Fits(&q)
			keep := rules[r.IntN(len(rules))]
			var kept []cluster.GPU
			for _, p := range rules {
				version := c.Version()
				gpus, ok = p.Place(c, &q, gpus)
				if c.Version() != version {
					t.Fatalf("%s changes the cluster", p.Name())
				}
				idle := len(running) == 0 && c.DownGPUs() == 0
				if ok && !fits || !ok && fits && (idle || !cluster.Constrained(p)) {
					t.Fatalf("%s places %+v: %v; it fits: %v", p.Name(), q, ok, fits)
				}
				if !ok {
					if len(gpus) != 0 {
						t.Fatalf("%s refuses and names %v", p.Name(), gpus)
					}
					continue
				}
				placed[p.Name()]++
				if len(gpus) != max(1, q.GPUs) {
					t.Fatalf("%s places %+v on %v", p.Name(), q, gpus)
				}
				shaped(t, c, p.Name(), &q, gpus)
				if q.Each > 0 && q.Each < q.GPUs {
					chunks[p.Name()]++
				}
				if err := c.Allocate(&q, gpus); err != nil {
					t.Fatalf("%s places %+v on %v: %v", p.Name(), q, gpus, err)
				}
				c.Release(&q, gpus)
				if p == keep {
					kept = append(kept, gpus...)
				}
			}
			if len(kept) > 0 {
				if err := c.Allocate(&q, kept); err != nil {
					t.Fatal(err)
				}
				running = append(running, run{q, kept})
			}
		}
	})
	t.Log("gangs placed: ", placed, "of them in chunks: ", chunks)
	for _, name := range cluster.PlacementNames() {
		if placed[name] < 50 || chunks[name] < 50 {
			t.Errorf("%s placed %d gangs and %d in chunks only", name, placed[name], chunks[name])
		}
	}
}

func TestPlacementsWithoutAllocationsOnDividedClusters(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: 3,
		Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4, CPUs: 32, MemGB: 64, GPUType: "a"}, {GPUs: 8, GPUType: "b"}}}},
		VCs: []cluster.VCSpec{{Name: "vc0", Nodes: 5}, {Name: "vc1", Quota: 20}, {Name: "vc2"}}}
	for _, name := range cluster.PlacementNames() {
		c, p := mustNew(t, "", spec), rule(t, name)
		var reqs []cluster.Request
		for _, j := range []traces.Job{{VC: "vc0", GPUs: 7, GPUMilli: 1000},
			{VC: "vc1", GPUs: 1, GPUMilli: 300, CPUMilli: 700}, {VC: "vc2", CPUMilli: 4000},
			{VC: "vc2", GPUs: 18, GPUMilli: 1000}, {VC: "vc1", GPUs: 2, GPUMilli: 400, GPUTypes: []string{"b"}}} {
			if r, ok := c.Request(&j); ok {
				reqs = append(reqs, r)
			}
		}
		if len(reqs) != 5 {
			t.Fatal("not all of them fit")
		}
		var gpus []cluster.GPU
		if n := testing.AllocsPerRun(200, func() {
			for i := range reqs {
				var ok bool
				if gpus, ok = p.Place(c, &reqs[i], gpus); !ok {
					t.Fatalf("%s refuses %+v on an idle cluster", name, reqs[i])
				}
				if err := c.Allocate(&reqs[i], gpus); err != nil {
					t.Fatal(err)
				}
				c.Release(&reqs[i], gpus)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per run", name, n)
		}
	}
}
