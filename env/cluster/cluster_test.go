package cluster_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"clustergym/env/cluster"
	"clustergym/traces"
)

// mustNew builds the cluster of a short form, or of spec where short is "".
func mustNew(t testing.TB, short string, spec cluster.Spec) *cluster.Cluster {
	t.Helper()
	if short != "" {
		s, ok, err := cluster.Parse(short)
		if !ok || err != nil {
			t.Fatal(short, ok, err)
		}
		spec = s
	}
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func topdrl(t testing.TB) *cluster.Cluster {
	return mustNew(t, "", cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 4}}}}})
}

// drawSpec draws a small cluster of mixed nodes: sizes, types, with and without limits of cores and memory.
func drawSpec(t *rapid.T) cluster.Spec {
	types := []string{"", "p100", "v100"}
	s := cluster.Spec{Name: "drawn", Speeds: map[string]float64{"p100": 0.5, "v100": 2}}
	for range rapid.IntRange(1, 3).Draw(t, "racks") {
		r := cluster.RackSpec{Count: cluster.Count(rapid.IntRange(0, 2).Draw(t, "rackCount"))}
		for range rapid.IntRange(1, 2).Draw(t, "nodes") {
			r.Nodes = append(r.Nodes, cluster.NodeSpec{
				Count:   cluster.Count(rapid.IntRange(0, 3).Draw(t, "nodeCount")),
				GPUs:    rapid.IntRange(0, 4).Draw(t, "gpus"),
				GPUType: rapid.SampledFrom(types).Draw(t, "type"),
				CPUs:    rapid.SampledFrom([]float64{0, 0, 1.5, 8}).Draw(t, "cpus"),
				MemGB:   rapid.SampledFrom([]float64{0, 0, 0.5, 16}).Draw(t, "mem"),
			})
		}
		s.Racks = append(s.Racks, r)
	}
	s.Racks[0].Nodes[0].GPUs++ // a GPU at least
	return s
}

func drawJob(t *rapid.T) traces.Job {
	j := traces.Job{ID: "drawn", GPUs: rapid.IntRange(1, 9).Draw(t, "gang"), GPUMilli: 1000}
	if rapid.Bool().Draw(t, "share") {
		j.GPUMilli = rapid.SampledFrom([]int{1, 100, 250, 333, 500, 501, 999}).Draw(t, "milli")
	}
	switch rapid.IntRange(0, 5).Draw(t, "wants") {
	case 0:
		j.GPUTypes = []string{"v100"}
	case 1:
		j.GPUTypes = []string{"", "p100", "no such type"}
	case 2:
		j.CPUMilli = rapid.Int64Range(0, 9000).Draw(t, "cpu")
	case 3:
		j.MemBytes = rapid.Int64Range(0, 4<<30).Draw(t, "bytes")
	}
	return j
}

// books is a second set of books, kept from the specification and the calls alone.
type books struct {
	gpus []book
	cpu  []int64 // by node, -1 = not limited
	mem  []int64
}

type book struct {
	node, rack int
	kind       string
	free       int
}

func newBooks(s cluster.Spec) *books {
	b := &books{}
	for i, r := range s.Racks {
		for c := range r.Count.N() {
			for _, n := range r.Nodes {
				for range n.Count.N() {
					for range n.GPUs {
						b.gpus = append(b.gpus, book{node: len(b.cpu), rack: i*100 + c, kind: n.GPUType, free: 1000})
					}
					cpu, mem := int64(-1), int64(-1)
					if n.CPUs > 0 {
						cpu = int64(n.CPUs * 1000)
					}
					if n.MemGB > 0 {
						mem = int64(n.MemGB * (1 << 30))
					}
					b.cpu, b.mem = append(b.cpu, cpu), append(b.mem, mem)
				}
			}
		}
	}
	return b
}

// use books n of the gang's members on g, -1 to give back.
func (b *books) use(j *traces.Job, g cluster.GPU, sign int) {
	b.gpus[g].free -= sign * j.GPUMilli
	n := b.gpus[g].node
	if b.cpu[n] >= 0 {
		b.cpu[n] -= int64(sign) * ceil(j.CPUMilli, j.GPUs)
	}
	if b.mem[n] >= 0 {
		b.mem[n] -= int64(sign) * ceil(j.MemBytes, j.GPUs)
	}
}

func ceil(a int64, b int) int64 { return (a + int64(b) - 1) / int64(b) }

// room counts greedily, one member after the other.
func (b *books) room(j *traces.Job, node int) int {
	cpu, mem, n := b.cpu[node], b.mem[node], 0
	for _, g := range b.gpus {
		if g.node != node || g.free < j.GPUMilli || !typeOK(j, g.kind) {
			continue
		}
		if b.cpu[node] >= 0 {
			if cpu -= ceil(j.CPUMilli, j.GPUs); cpu < 0 {
				break
			}
		}
		if b.mem[node] >= 0 {
			if mem -= ceil(j.MemBytes, j.GPUs); mem < 0 {
				break
			}
		}
		n++
	}
	return n
}

func typeOK(j *traces.Job, kind string) bool {
	for _, t := range j.GPUTypes {
		if t == kind {
			return true
		}
	}
	return len(j.GPUTypes) == 0
}

func (b *books) fits(j *traces.Job) bool {
	n := 0
	for node := range b.cpu {
		n += b.room(j, node)
	}
	return n >= j.GPUs
}

// The books balance after every call, whatever is asked; what is placed are distinct GPUs that are free exactly
// when a second set of books says that the gang fits; an error changes nothing.
func TestBooksUnderRandomUse(t *testing.T) {
	var rules []cluster.Placement
	for _, n := range cluster.PlacementNames() {
		r, err := cluster.NewPlacement(n)
		if err != nil || r.Name() != n {
			t.Fatal(n, err)
		}
		rules = append(rules, r)
	}
	rapid.Check(t, func(t *rapid.T) {
		spec := drawSpec(t)
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		b := newBooks(spec)
		if len(b.gpus) != c.GPUs() || len(b.cpu) != c.Nodes() {
			t.Fatalf("%d GPUs on %d nodes, want %d on %d", c.GPUs(), c.Nodes(), len(b.gpus), len(b.cpu))
		}
		type held struct {
			job  traces.Job
			req  cluster.Request
			gpus []cluster.GPU
		}
		var holds []held
		for range rapid.IntRange(1, 25).Draw(t, "calls") {
			if len(holds) > 0 && rapid.IntRange(0, 2).Draw(t, "release") == 0 {
				i := rapid.IntRange(0, len(holds)-1).Draw(t, "which")
				h := holds[i]
				c.Release(&h.req, h.gpus)
				for _, g := range h.gpus {
					b.use(&h.job, g, -1)
				}
				holds = append(holds[:i], holds[i+1:]...)
			} else {
				j := drawJob(t)
				fits := b.fits(&j)
				empty := newBooks(spec)
				r, ok := c.Request(&j)
				if ok != empty.fits(&j) {
					t.Fatalf("Request(%+v) says %v for an empty cluster", j, ok)
				}
				if !ok {
					continue
				}
				if c.Fits(&r) != fits {
					t.Fatalf("Fits(%+v) = %v, the books say %v", r, !fits, fits)
				}
				for node := range b.cpu {
					if got, want := c.Room(node, &r), b.room(&j, node); got != want {
						t.Fatalf("Room(%d, %+v) = %d, the books say %d", node, r, got, want)
					}
				}
				before := fmt.Sprintf("%+v", *c)
				var gpus []cluster.GPU
				for _, rule := range rules {
					gpus, ok = rule.Place(c, &r, gpus)
					if ok != fits && (ok || !cluster.Constrained(rule)) {
						t.Fatalf("%s places %+v: %v, the books say %v", rule.Name(), r, ok, fits)
					}
					if !ok {
						continue
					}
					seen := map[cluster.GPU]bool{}
					for _, g := range gpus {
						seen[g] = true
					}
					if len(seen) != j.GPUs || len(gpus) != j.GPUs {
						t.Fatalf("%s places a gang of %d on %v", rule.Name(), j.GPUs, gpus)
					}
					if err := c.Allocate(&r, gpus); err != nil {
						t.Fatalf("%s places %+v on %v: %v", rule.Name(), r, gpus, err)
					}
					if err := c.CheckInvariants(); err != nil {
						t.Fatal(err)
					}
					c.Release(&r, gpus)
				}
				if fits {
					refused(t, c, &r, gpus)
				} else if err := c.Allocate(&r, make([]cluster.GPU, r.GPUs)); err == nil {
					t.Fatal("what does not fit was allocated")
				}
				if after := fmt.Sprintf("%+v", *c); withoutVersion(before) != withoutVersion(after) {
					t.Fatalf("placing, releasing and refused calls changed the books:\n%s\n%s", before, after)
				}
				if fits {
					if err := c.Allocate(&r, gpus); err != nil {
						t.Fatal(err)
					}
					for _, g := range gpus {
						b.use(&j, g, 1)
					}
					holds = append(holds, held{j, r, gpus})
				}
			}
			if err := c.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
			agree(t, c, b)
		}
		for _, h := range holds {
			c.Release(&h.req, h.gpus)
		}
		if c.Free() != c.GPUs() || c.FreeMilli() != 1000*c.GPUs() {
			t.Fatalf("%d of %d GPUs are free after all was given back", c.Free(), c.GPUs())
		}
	})
}

// withoutVersion drops the counters that may change: version and the marks of Cost.
func withoutVersion(s string) string {
	for i := range s {
		if len(s)-i > 8 && s[i:i+8] == "version:" {
			return s[:i]
		}
	}
	return s
}

// refused tries placements that are almost right.
func refused(t *rapid.T, c *cluster.Cluster, r *cluster.Request, gpus []cluster.GPU) {
	last := len(gpus) - 1
	for _, bad := range [][]cluster.GPU{gpus[:last], append(gpus[:last:last], -1), append(gpus[:last:last], cluster.GPU(c.GPUs()))} {
		if err := c.Allocate(r, bad); err == nil {
			t.Fatalf("%v was allocated for a gang of %d", bad, r.GPUs)
		}
	}
	if last > 0 {
		if err := c.Allocate(r, append(gpus[:last:last], gpus[0])); err == nil {
			t.Fatalf("GPU %d was allocated twice to one gang", gpus[0])
		}
	}
}

// agree compares every level of the cluster with the books.
func agree(t *rapid.T, c *cluster.Cluster, b *books) {
	free, milli := 0, 0
	nodes := make([]int, c.Nodes())
	for g, k := range b.gpus {
		if c.GPUFree(cluster.GPU(g)) != k.free || c.NodeOf(cluster.GPU(g)) != k.node {
			t.Fatalf("GPU %d on node %d has %d free, want node %d and %d", g, c.NodeOf(cluster.GPU(g)), c.GPUFree(cluster.GPU(g)), k.node, k.free)
		}
		milli += k.free
		if k.free == 1000 {
			free++
			nodes[k.node]++
		}
	}
	for n, want := range nodes {
		if c.NodeFree(n) != want {
			t.Fatalf("node %d has %d free, want %d", n, c.NodeFree(n), want)
		}
	}
	if c.Free() != free || c.FreeMilli() != milli {
		t.Fatalf("%d GPUs and %d thousandths free, want %d and %d", c.Free(), c.FreeMilli(), free, milli)
	}
}

func TestRequestOfCoresIsPerGPURoundedUp(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, CPUs: 10, MemGB: 1}}}}})
	for _, x := range []struct {
		cpu, mem       int64
		gpus           int
		wantCPU, wantM int64
		ok             bool
	}{
		{7000, 0, 2, 3500, 0, true},
		{10001, 3, 2, 5001, 2, true}, // one on each node
		{20002, 0, 2, 10001, 0, false},
		{math.MaxInt64, 0, 2, math.MaxInt64/2 + 1, 0, false},
		{-5, -5, 1, 0, 0, true},
		{0, 1 << 31, 2, 0, 1 << 30, true},
	} {
		r, ok := c.Request(&traces.Job{GPUs: x.gpus, GPUMilli: 1000, CPUMilli: x.cpu, MemBytes: x.mem})
		if ok != x.ok || r.CPUMilli != x.wantCPU || r.MemBytes != x.wantM {
			t.Errorf("%+v: got %+v, %v", x, r, ok)
		}
	}
	// Where nodes state no limits, cores and memory do not matter.
	r, ok := mustNew(t, "1x4", cluster.Spec{}).Request(&traces.Job{GPUs: 1, GPUMilli: 1000, CPUMilli: 1 << 40})
	if !ok || r != (cluster.Request{GPUs: 1, Milli: 1000}) {
		t.Errorf("got %+v, %v", r, ok)
	}
}

func TestRequestRefusesWhatNeverFits(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "a"}, {GPUs: 1, GPUType: "b"}}}}})
	for _, j := range []traces.Job{
		{GPUs: -1, GPUMilli: 1000}, {GPUs: 1, GPUMilli: 0}, {GPUs: 1, GPUMilli: 1001}, {GPUs: 4, GPUMilli: 1},
		{GPUs: 1, GPUMilli: 1000, GPUTypes: []string{"c"}}, {GPUs: 2, GPUMilli: 10, GPUTypes: []string{"b"}},
	} {
		if _, ok := c.Request(&j); ok {
			t.Errorf("%+v is said to fit", j)
		}
	}
}

func TestCounterCountsThousandths(t *testing.T) {
	c := mustNew(t, "pool:2", cluster.Spec{})
	half := cluster.Request{GPUs: 3, Milli: 500}
	if err := c.Allocate(&half, []cluster.GPU{0, 1, 2}); err == nil {
		t.Error("a counter's processors have no names")
	}
	if err := c.Allocate(&half, nil); err != nil {
		t.Fatal(err)
	}
	if c.FreeMilli() != 500 || c.Free() != 0 || c.Fits(&half) {
		t.Errorf("%d thousandths, %d whole, fits %v", c.FreeMilli(), c.Free(), c.Fits(&half))
	}
	if err := c.Allocate(&half, nil); !errors.Is(err, cluster.ErrNoCapacity) {
		t.Errorf("got %v, want ErrNoCapacity", err)
	}
	c.Release(&half, nil)
	defer func() {
		if recover() == nil {
			t.Error("releasing more than there is must panic")
		}
	}()
	c.Release(&half, nil)
}

func TestReleaseTwicePanics(t *testing.T) {
	c := mustNew(t, "1x2", cluster.Spec{})
	defer func() {
		if recover() == nil {
			t.Error("releasing a free GPU must panic")
		}
	}()
	c.Release(&cluster.Request{GPUs: 1, Milli: 1}, []cluster.GPU{1})
}

func TestAllocateSaysWhy(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 2, GPUType: "a", CPUs: 1}, {GPUs: 2, GPUType: "b"}}}}}
	c := mustNew(t, "", spec)
	for _, r := range []cluster.Request{
		{GPUs: 1, Milli: 1000, Types: 2},       // GPU 0 is of type a
		{GPUs: 1, Milli: 1000, CPUMilli: 1001}, // of one core
	} {
		if err := c.Allocate(&r, []cluster.GPU{0}); !errors.Is(err, cluster.ErrNoCapacity) {
			t.Errorf("%+v: got %v, want ErrNoCapacity", r, err)
		}
	}
	if !reflect.DeepEqual(c.Types(), []string{"a", "b"}) {
		t.Errorf("types %v", c.Types())
	}
}

func TestSpeedIsThatOfTheSlowestGPU(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Speeds: map[string]float64{"slow": 0.25, "fast": 3},
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "slow"}, {GPUs: 1, GPUType: "fast"}, {GPUs: 1}}}}})
	for _, x := range []struct {
		gpus []cluster.GPU
		want float64
	}{{nil, 1}, {[]cluster.GPU{0}, 0.25}, {[]cluster.GPU{1}, 3}, {[]cluster.GPU{2}, 1}, {[]cluster.GPU{1, 2}, 1}, {[]cluster.GPU{1, 2, 0}, 0.25}} {
		if got := c.Speed(x.gpus); got != x.want {
			t.Errorf("Speed(%v) = %v, want %v", x.gpus, got, x.want)
		}
	}
}

func TestResetFreesEverything(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{GPUs: 2, CPUs: 4, MemGB: 1}}}}})
	fresh := withoutVersion(fmt.Sprintf("%+v", *c))
	r, _ := c.Request(&traces.Job{GPUs: 3, GPUMilli: 300, CPUMilli: 3000, MemBytes: 3000})
	if err := c.Allocate(&r, []cluster.GPU{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	v := c.Version()
	c.Reset()
	if got := withoutVersion(fmt.Sprintf("%+v", *c)); got != fresh {
		t.Errorf("after Reset %s, want %s", got, fresh)
	}
	if c.Version() == v {
		t.Error("Reset does not change the version")
	}
}
