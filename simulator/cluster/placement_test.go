package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

func rule(t testing.TB, name string) cluster.Placement {
	t.Helper()
	r, err := cluster.NewPlacement(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// occupy leaves free[n] wholly free GPUs on node n, those with the highest numbers.
func occupy(t testing.TB, c *cluster.Cluster, free ...int) {
	t.Helper()
	one := cluster.Request{GPUs: 1, Milli: 1000}
	for n, k := range free {
		from, to := c.NodeGPUs(n)
		for g := from; g < to-cluster.GPU(k); g++ {
			if err := c.Allocate(&one, []cluster.GPU{g}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// taken returns how many GPUs are placed on each node, in the order of the list.
func taken(c *cluster.Cluster, gpus []cluster.GPU) string {
	var s []string
	for i := 0; i < len(gpus); {
		n, k := c.NodeOf(gpus[i]), 0
		for ; i < len(gpus) && c.NodeOf(gpus[i]) == n; i++ {
			k++
		}
		s = append(s, fmt.Sprintf("%d on %d", k, n))
	}
	return fmt.Sprint(s)
}

func TestPlacementsByHand(t *testing.T) {
	for _, x := range []struct {
		rule string
		free []int // by node of 4 GPUs
		gang int
		want string
	}{
		{"first-fit", []int{1, 3, 4, 2}, 2, "[2 on 1]"},
		{"first-fit", []int{1, 3, 4, 2}, 1, "[1 on 0]"},
		{"first-fit", []int{1, 3, 3, 2}, 4, "[1 on 0 3 on 1]"}, // no node holds it: all that each has, in order
		{"best-fit", []int{1, 3, 4, 2}, 2, "[2 on 3]"},
		{"best-fit", []int{2, 3, 4, 2}, 2, "[2 on 0]"}, // a tie goes to the lowest number
		{"best-fit", []int{1, 3, 4, 0}, 2, "[2 on 1]"},
		{"best-fit", []int{1, 3, 3, 2}, 4, "[3 on 1 1 on 0]"}, // most room, then the tightest for the rest
		{"best-fit", []int{2, 3, 3, 2}, 8, "[3 on 1 3 on 2 2 on 0]"},
		{"worst-fit", []int{1, 3, 4, 2}, 2, "[2 on 2]"},
		{"worst-fit", []int{1, 3, 3, 2}, 4, "[3 on 1 1 on 2]"},
		{"worst-fit", []int{4, 4, 4, 4}, 1, "[1 on 0]"},
		{"pack", []int{4, 3, 4, 2}, 2, "[2 on 3]"},        // in use and fullest
		{"pack", []int{4, 1, 4, 1}, 2, "[2 on 0]"},        // no node in use holds it: an idle one
		{"pack", []int{4, 3, 4, 2}, 5, "[2 on 3 3 on 1]"}, // nodes in use, fullest first
		{"pack", []int{4, 1, 4, 0}, 8, "[1 on 1 4 on 0 3 on 2]"},
		{"pack", []int{4, 4, 0, 0}, 4, "[4 on 0]"},
	} {
		t.Run(fmt.Sprint(x.rule, x.free, x.gang), func(t *testing.T) {
			c := mustNew(t, "4x4", cluster.Spec{})
			occupy(t, c, x.free...)
			gpus, ok := rule(t, x.rule).Place(c, &cluster.Request{GPUs: x.gang, Milli: 1000}, nil)
			if got := taken(c, gpus); !ok || got != x.want {
				t.Errorf("got %s, %v; want %s", got, ok, x.want)
			}
		})
	}
}

// Mixed nodes: pack opens the smallest idle node that holds the gang, and for a larger gang the largest.
func TestPackPrefersSmallIdleNodes(t *testing.T) {
	c := mustNew(t, "",
		cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 8}, {GPUs: 2}, {GPUs: 4}}}}})
	for gang, want := range map[int]string{1: "[1 on 1]", 3: "[3 on 2]", 5: "[5 on 0]", 9: "[8 on 0 1 on 2]"} {
		gpus, _ := rule(t, "pack").Place(c, &cluster.Request{GPUs: gang, Milli: 1000}, nil)
		if got := taken(c, gpus); got != want {
			t.Errorf("gang of %d: got %s, want %s", gang, got, want)
		}
	}
}

func TestSharesGoToTheFullestGPUThatSuffices(t *testing.T) {
	c := mustNew(t, "2x2", cluster.Spec{})
	share := func(g cluster.GPU, milli int) {
		if err := c.Allocate(&cluster.Request{GPUs: 1, Milli: milli}, []cluster.GPU{g}); err != nil {
			t.Fatal(err)
		}
	}
	share(0, 100) // 900 left
	share(1, 700) // 300
	share(3, 600) // 400
	for _, name := range []string{"best-fit", "pack"} {
		for milli, want := range map[int]cluster.GPU{300: 1, 301: 3, 500: 0, 950: 2} {
			gpus, ok := rule(t, name).Place(c, &cluster.Request{GPUs: 1, Milli: milli}, nil)
			if !ok || len(gpus) != 1 || gpus[0] != want {
				t.Errorf("%s puts %d thousandths on %v, want %d", name, milli, gpus, want)
			}
		}
	}
	gpus, _ := rule(t, "first-fit").Place(c, &cluster.Request{GPUs: 1, Milli: 350}, nil)
	if gpus[0] != 0 {
		t.Errorf("first-fit takes %v, want the first with room", gpus)
	}
}

func TestUnknownPlacementNamesTheKnown(t *testing.T) {
	if _, err := cluster.NewPlacement("closest-d"); err == nil {
		t.Error("closest-d exists")
	}
}

// drawUse fills c at random and returns a request that may or may not fit.
func drawUse(t *rapid.T, c *cluster.Cluster) cluster.Request {
	for range rapid.IntRange(0, 12).Draw(t, "jobs") {
		j := drawJob(t)
		j.GPUs = min(j.GPUs, 3)
		r, ok := c.Request(&j)
		if !ok {
			continue
		}
		start := rapid.IntRange(0, c.GPUs()-1).Draw(t, "start")
		var gpus []cluster.GPU
		for k := range c.GPUs() {
			g := cluster.GPU((start + k) % c.GPUs())
			if len(gpus) < r.GPUs && c.GPUFree(g) >= r.Milli {
				gpus = append(gpus, g)
			}
		}
		_ = c.Allocate(&r, gpus) // an error is fine: the state is random either way
	}
	j := drawJob(t)
	r, ok := c.Request(&j)
	if !ok {
		return cluster.Request{GPUs: 1, Milli: 1000}
	}
	return r
}

// Best-fit leaves the fewest usable GPUs on the node it takes, worst-fit the most, of all nodes that hold the gang.
func TestBestAndWorstFitAgainstAllNodes(t *testing.T) {
	best, worst := rule(t, "best-fit"), rule(t, "worst-fit")
	rapid.Check(t, func(t *rapid.T) {
		c, err := cluster.New(drawSpec(t))
		if err != nil {
			t.Fatal(err)
		}
		r := drawUse(t, c)
		least, most := 1<<30, -1
		for n := range c.Nodes() {
			if room := c.Room(n, &r); room >= r.GPUs {
				least, most = min(least, room), max(most, room)
			}
		}
		if most < 0 {
			return // must be spread, which the property of the books covers
		}
		if gpus, ok := best.Place(c, &r, nil); !ok {
			t.Fatal("best-fit does not place")
		} else if r.GPUs > 1 || r.Milli == 1000 { // single shares depend on what each GPU has left
			for _, g := range gpus {
				if room := c.Room(c.NodeOf(g), &r); room != least {
					t.Fatalf("best-fit takes node %d with room %d, there is one with %d", c.NodeOf(g), room, least)
				}
			}
		} else {
			for g := range cluster.GPU(c.GPUs()) {
				if f := c.GPUFree(g); f >= r.Milli && f < c.GPUFree(gpus[0]) && c.Room(c.NodeOf(g), &r) > 0 {
					t.Fatalf("best-fit shares GPU %d with %d left, GPU %d has %d", gpus[0], c.GPUFree(gpus[0]), g, f)
				}
			}
		}
		gpus, ok := worst.Place(c, &r, nil)
		for _, g := range gpus {
			if room := c.Room(c.NodeOf(g), &r); !ok || room != most {
				t.Fatalf("worst-fit takes node %d with room %d, there is one with %d", c.NodeOf(g), room, most)
			}
		}
	})
}

// Equal nodes differ only in names: swapping what two of them hold swaps what a rule that looks for room does there,
// and changes nothing else.
func TestEqualNodesDifferOnlyInNames(t *testing.T) {
	type node struct{ rack, room, took int }
	rapid.Check(t, func(t *rapid.T) {
		const racks, per, size = 2, 3, 4
		spec := cluster.Spec{Racks: []cluster.RackSpec{{Count: racks, Nodes: []cluster.NodeSpec{{Count: per, GPUs: size}}}}}
		free := rapid.SliceOfN(rapid.IntRange(0, size), racks*per, racks*per).Draw(t, "free")
		all := rapid.Permutation([]int{0, 1, 2, 3, 4, 5}).Draw(t, "any nodes")
		within := make([]int, 0, racks*per)
		for r := range racks {
			for _, n := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "nodes of a rack") {
				within = append(within, r*per+n)
			}
		}
		gang := rapid.IntRange(1, racks*per*size).Draw(t, "gang")
		for _, name := range []string{"best-fit", "worst-fit", "pack", "closest-b", "closest-c"} {
			perm := all
			if name[0] == 'c' {
				perm = within // racks that hold different jobs are not equal, even with the same number of free GPUs
			}
			var seen [2]string
			for k := range seen {
				c, err := cluster.New(spec)
				if err != nil {
					t.Fatal(err)
				}
				f := free
				if k == 1 {
					f = make([]int, len(free))
					for i, n := range perm {
						f[i] = free[n]
					}
				}
				one := cluster.Request{GPUs: 1, Milli: 1000}
				rackRoom := [racks]int{}
				for n, k := range f {
					from, to := c.NodeGPUs(n)
					rackRoom[c.RackOf(n)] += k
					for g := from; g < to-cluster.GPU(k); g++ {
						if err := c.Allocate(&one, []cluster.GPU{g}); err != nil {
							t.Fatal(err)
						}
					}
				}
				p, err := cluster.NewPlacement(name)
				if err != nil {
					t.Fatal(err)
				}
				gpus, ok := p.Place(c, &cluster.Request{GPUs: gang, Milli: 1000}, nil)
				if !ok {
					seen[k] = "does not fit"
					continue
				}
				if name[0] == 'c' {
					// Beyond the anchor the closest rules take the lowest numbers.
					a := c.NodeOf(gpus[0])
					seen[k] = fmt.Sprint(rackRoom[c.RackOf(a)], f[a])
					continue
				}
				var nodes []node
				for n := range f {
					took := 0
					for _, g := range gpus {
						if c.NodeOf(g) == n {
							took++
						}
					}
					nodes = append(nodes, node{0, f[n], took})
				}
				slices.SortFunc(nodes, func(a, b node) int { return (a.room-b.room)*100 + a.took - b.took })
				seen[k] = fmt.Sprint(nodes)
			}
			if seen[0] != seen[1] {
				t.Fatalf("%s, gang of %d, free %v: %s; permuted by %v: %s", name, gang, free, seen[0], perm, seen[1])
			}
		}
	})
}

func TestPlacementsOnACounterNameNoGPUs(t *testing.T) {
	c := mustNew(t, "pool:8", cluster.Spec{})
	for _, name := range cluster.PlacementNames() {
		gpus, ok := rule(t, name).Place(c, &cluster.Request{GPUs: 8, Milli: 1000}, []cluster.GPU{1, 2})
		if !ok || len(gpus) != 0 {
			t.Errorf("%s: %v, %v", name, gpus, ok)
		}
		if _, ok := rule(t, name).Place(c, &cluster.Request{GPUs: 9, Milli: 1000}, nil); ok {
			t.Errorf("%s places 9 of 8", name)
		}
	}
}

// Placing, allocating, releasing and computing costs happen at every decision, so they must not allocate.
func TestHotCallsDoNotAllocate(t *testing.T) {
	specs := map[string]cluster.Spec{
		"plain": {Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}},
		"limits": {Racks: []cluster.RackSpec{
			{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4, CPUs: 32, MemGB: 64, GPUType: "a"}}}}},
	}
	jobs := []traces.Job{{GPUs: 6, GPUMilli: 1000, GPUTypes: nil, CPUMilli: 2000}, {GPUs: 1, GPUMilli: 300},
		{GPUs: 3, GPUMilli: 200, MemBytes: 1 << 20}}
	for name, spec := range specs {
		for _, p := range cluster.PlacementNames() {
			t.Run(name+"/"+p, func(t *testing.T) {
				c, place := mustNew(t, "", spec), rule(t, p)
				var reqs []cluster.Request
				for i := range jobs {
					r, ok := c.Request(&jobs[i])
					if !ok {
						t.Fatal("does not fit")
					}
					reqs = append(reqs, r)
				}
				var gpus []cluster.GPU
				sum := 0.0
				if n := testing.AllocsPerRun(100, func() {
					for i := range reqs {
						r := &reqs[i]
						if !c.Fits(r) {
							t.Fatal("does not fit")
						}
						gpus, _ = place.Place(c, r, gpus)
						if err := c.Allocate(r, gpus); err != nil {
							t.Fatal(err)
						}
						sum += c.Cost(gpus) + c.BestCost(r.GPUs) + c.WorstCost(r.GPUs) + c.Speed(gpus)
						c.Release(r, gpus)
					}
				}); n != 0 {
					t.Errorf("%v allocations per run", n)
				}
			})
		}
	}
}
