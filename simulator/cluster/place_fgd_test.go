package cluster_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// paper implements fragmentation gradient descent directly from the paper's definitions, with fractions and without
// caching. It keeps its own account of cores.
type paper struct {
	c       *cluster.Cluster
	cpu     []int64 // free cores by node, -1 = unlimited
	classes []cluster.Class
}

// fragments is F_n(M) of node with left free of its GPUs and cpu free cores.
func (p *paper) fragments(node int, left []int, cpu int64) *big.Rat {
	all := int64(0)
	for _, m := range p.classes {
		all += m.Count
	}
	sum := new(big.Rat)
	for _, m := range p.classes {
		r := m.Request
		total, small, can := 0, 0, 0
		for _, f := range left {
			total += f
			if f < r.Milli {
				small += f
			} else {
				can++
			}
		}
		runs := r.GPUs > 0 && can >= r.GPUs && (cpu < 0 || cpu >= r.CPUMilli*int64(r.GPUs)) &&
			(r.Types == 0 || r.Types>>p.c.TypeOf(node)&1 == 1)
		f := total
		if runs {
			f = small
		}
		sum.Add(sum, new(big.Rat).Mul(big.NewRat(m.Count, all), big.NewRat(int64(f), 1000)))
	}
	return sum
}

// place tries every node and every GPU.
func (p *paper) place(r *cluster.Request) (gpus []cluster.GPU) {
	var least *big.Rat
	try := func(node int, left []int, take []cluster.GPU) {
		cpu := p.cpu[node]
		before := p.fragments(node, left, cpu)
		if cpu >= 0 {
			cpu -= r.CPUMilli * int64(max(1, r.GPUs))
		}
		from, _ := p.c.NodeGPUs(node)
		after := append([]int(nil), left...)
		for _, g := range take {
			if g >= 0 {
				after[g-from] -= r.Milli
			}
		}
		d := p.fragments(node, after, cpu)
		if d.Sub(d, before); least == nil || d.Cmp(least) < 0 {
			least, gpus = d, append(gpus[:0], take...)
		}
	}
	for node := range p.c.Nodes() {
		if p.c.Room(node, r) < max(1, r.GPUs) {
			continue
		}
		var left []int
		var can []cluster.GPU
		from, to := p.c.NodeGPUs(node)
		for g := from; g < to; g++ {
			left = append(left, p.c.GPUFree(g))
			if p.c.GPUFree(g) >= r.Milli {
				can = append(can, g)
			}
		}
		switch {
		case r.GPUs == 0:
			try(node, left, []cluster.GPU{cluster.Slot(node)})
		case r.GPUs == 1 && r.Milli < 1000:
			for _, g := range can {
				try(node, left, []cluster.GPU{g})
			}
		default:
			try(node, left, can[:r.GPUs])
		}
	}
	return gpus
}

func (p *paper) use(r *cluster.Request, gpus []cluster.GPU, sign int64) {
	for _, g := range gpus {
		if n := p.c.NodeOf(g); p.cpu[n] >= 0 {
			p.cpu[n] -= sign * r.CPUMilli
		}
	}
}

func cores(spec cluster.Spec) (cpu []int64) {
	for _, r := range spec.Racks {
		for range r.Count.N() {
			for _, n := range r.Nodes {
				for range n.Count.N() {
					k := int64(n.CPUs * 1000)
					if k == 0 {
						k = -1
					}
					cpu = append(cpu, k)
				}
			}
		}
	}
	return cpu
}

// FGD with its cached gradients chooses as the paper's definitions do, whatever is allocated and released in between
// and on whichever of two equal clusters.
func TestFGDIsThatOfThePaper(t *testing.T) {
	chosen := 0
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		spec.VCs = nil
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := cluster.New(spec)
		var reqs []cluster.Request
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 12 {
			j := traces.Job{GPUs: r.IntN(5), GPUMilli: 1000, CPUMilli: int64(r.IntN(4)) * 500}
			if j.GPUs == 1 && r.IntN(3) > 0 {
				j.GPUMilli = []int{100, 250, 333, 500, 900}[r.IntN(5)]
			}
			if r.IntN(4) == 0 {
				j.GPUTypes = []string{"v100"}
			}
			if r.IntN(4) == 0 {
				j.MemBytes = 400 << 20
			}
			if q, ok := c.Request(&j); ok {
				reqs = append(reqs, q)
			}
		}
		if len(reqs) == 0 {
			return
		}
		var asked []cluster.Request
		for range 40 {
			asked = append(asked, reqs[r.IntN(len(reqs))])
		}
		classes := cluster.Classes(asked)
		p := &paper{c: c, cpu: cores(spec), classes: classes}
		fgd := cluster.NewFGD(classes)
		type run struct {
			r    cluster.Request
			gpus []cluster.GPU
		}
		var running []run
		for range 60 {
			if len(running) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(running))
				c.Release(&running[i].r, running[i].gpus)
				p.use(&running[i].r, running[i].gpus, -1)
				running = append(running[:i], running[i+1:]...)
				continue
			}
			q := asked[r.IntN(len(asked))]
			on := c
			if r.IntN(2) == 0 {
				plan.CopyFrom(c)
				on = plan
			}
			got, ok := fgd.Place(on, &q, nil)
			if ok != c.Fits(&q) {
				t.Fatalf("%+v: placed %v, fits %v", q, ok, c.Fits(&q))
			}
			if !ok {
				continue
			}
			if want := p.place(&q); want != nil {
				chosen++
				if !equal(got, want) {
					t.Fatalf("%+v goes to %v, by the paper to %v; classes %+v", q, got, want, classes)
				}
			}
			if err := c.Allocate(&q, got); err != nil {
				t.Fatal(err)
			}
			p.use(&q, got, 1)
			running = append(running, run{q, got})
		}
	})
	if chosen < 100 {
		t.Errorf("only %d choices were compared", chosen)
	}
}

func equal(a, b []cluster.GPU) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Two nodes of two GPUs: node 0 has 600 and 1000 left, node 1 has 300 and 1000. Half of the requests are for 300
// thousandths, half for a whole GPU. By node, F before is (0 + 600)/2 = 300 and (0 + 300)/2 = 150. A share of 300:
//
//	GPU 0 leaves 300, 1000: (0 + 300)/2 = 150, so −150
//	GPU 1 leaves 600, 700:  (0 + 1300)/2 = 650, so +350
//	GPU 2 leaves 0, 1000:   0, so −150
//	GPU 3 leaves 300, 700:  500, so +350
//
// GPU 0 and GPU 2 are equal; if 400 thousandths are requested too, GPU 2 is better, since such requests cannot use
// what is left of GPU 0.
func TestFGDByHand(t *testing.T) {
	c := mustNew(t, "2x2", cluster.Spec{})
	for g, milli := range map[cluster.GPU]int{0: 400, 2: 700} {
		if err := c.Allocate(&cluster.Request{GPUs: 1, Milli: milli}, []cluster.GPU{g}); err != nil {
			t.Fatal(err)
		}
	}
	share := cluster.Request{GPUs: 1, Milli: 300}
	classes := []cluster.Class{{Request: share, Count: 5}, {Request: cluster.Request{GPUs: 1, Milli: 1000}, Count: 5}}
	gpus, ok := cluster.NewFGD(classes).Place(c, &share, nil)
	if !ok || len(gpus) != 1 || gpus[0] != 0 {
		t.Errorf("got %v, %v; want GPU 0: equal, and the lowest", gpus, ok)
	}
	classes = append(classes, cluster.Class{Request: cluster.Request{GPUs: 1, Milli: 400}, Count: 1})
	gpus, ok = cluster.NewFGD(classes).Place(c, &share, nil)
	if !ok || len(gpus) != 1 || gpus[0] != 2 {
		t.Errorf("got %v, %v; want GPU 2", gpus, ok)
	}
}

func TestClassesCountRequests(t *testing.T) {
	one, half := cluster.Request{GPUs: 1, Milli: 1000}, cluster.Request{GPUs: 1, Milli: 500, CPUMilli: 100}
	big := half
	big.MemBytes = 1 << 30
	got := cluster.Classes([]cluster.Request{one, half, big, half})
	if len(got) != 2 || got[0].Request != half || got[0].Count != 3 || got[1].Request != one || got[1].Count != 1 {
		t.Errorf("got %+v", got)
	}
}

// Without given classes it learns from earlier requests: after many whole GPUs, shares no longer open a new one.
func TestFGDLearns(t *testing.T) {
	fgd := cluster.NewFGD(nil)
	place := func(milli int) cluster.GPU {
		c := mustNew(t, "2x1", cluster.Spec{})
		if err := c.Allocate(&cluster.Request{GPUs: 1, Milli: 500}, []cluster.GPU{1}); err != nil {
			t.Fatal(err)
		}
		gpus, ok := fgd.Place(c, &cluster.Request{GPUs: 1, Milli: milli}, nil)
		if !ok {
			t.Fatal("does not fit")
		}
		return gpus[0]
	}
	if g := place(500); g != 0 {
		t.Errorf("knowing nothing it takes %d, want the lowest", g)
	}
	for range 8 {
		place(1000)
	}
	if g := place(500); g != 1 {
		t.Errorf("it takes %d, want 1, which nobody else could use whole", g)
	}
	fgd.Reset()
	if g := place(500); g != 0 {
		t.Errorf("after Reset it takes %d, want the lowest", g)
	}
}

// There are more kinds of requests than cached gradients: those of evicted kinds are computed again.
func TestFGDForgetsKindsOfLongAgo(t *testing.T) {
	if testing.Short() {
		t.Skip("weighs a hundred thousand nodes again and again")
	}
	c := mustNew(t, "131072x1", cluster.Spec{})
	var classes []cluster.Class
	for i := range 36 {
		classes = append(classes, cluster.Class{Request: cluster.Request{GPUs: 1, Milli: 100 + 20*i}, Count: int64(1 + i%7)})
	}
	fgd := cluster.NewFGD(classes)
	place := func(i int, check bool) {
		r := &classes[i].Request
		got, _ := fgd.Place(c, r, nil)
		if check {
			if want, _ := cluster.NewFGD(classes).Place(c, r, nil); !equal(got, want) {
				t.Fatalf("kind %d goes to %v, worked out anew to %v", i, got, want)
			}
		}
		if err := c.Allocate(r, got); err != nil {
			t.Fatal(err)
		}
	}
	for i := range classes {
		place(i, i > 30)
	}
	for i := range 6 {
		place(i, true)
	}
}
