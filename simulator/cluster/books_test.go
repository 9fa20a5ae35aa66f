package cluster_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// drawDivided draws a cluster that may be divided into virtual clusters: some own nodes, some have a quota, some have
// neither.
func drawDivided(t *rapid.T) cluster.Spec {
	s := drawSpec(t)
	nodes := 0
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			nodes += r.Count.N() * n.Count.N()
		}
	}
	if !rapid.Bool().Draw(t, "divided") {
		return s
	}
	hosts := rapid.Bool().Draw(t, "hosts")
	for i := range rapid.IntRange(1, 3).Draw(t, "vcs") {
		v := cluster.VCSpec{Name: string(rune('a' + i))}
		switch own := rapid.IntRange(0, 3).Draw(t, "own"); {
		case hosts && own > 0:
			from := rapid.IntRange(0, nodes-1).Draw(t, "first host")
			v.Hosts = []string{fmt.Sprintf("[%d-%d]", from, rapid.IntRange(from, nodes-1).Draw(t, "last host")),
				fmt.Sprint(rapid.IntRange(0, nodes-1).Draw(t, "another host"))}
			if rapid.Bool().Draw(t, "limited") {
				v.Quota = rapid.IntRange(1, 6).Draw(t, "quota")
			}
		case hosts:
		case own > 0 && own < nodes: // at least one node is left over
			v.Nodes = own
			nodes -= own
		case rapid.Bool().Draw(t, "limited"):
			v.Quota = rapid.IntRange(1, 6).Draw(t, "quota")
		}
		s.VCs = append(s.VCs, v)
	}
	return s
}

// drawWork draws a job, with or without GPUs, of a virtual cluster that may not exist.
func drawWork(t *rapid.T) traces.Job {
	j := drawJob(t)
	if rapid.IntRange(0, 4).Draw(t, "no GPUs") == 0 {
		j.GPUs, j.GPUMilli = 0, 0
		j.CPUMilli = rapid.Int64Range(0, 9000).Draw(t, "all cpu")
	}
	j.VC = rapid.SampledFrom([]string{"a", "a", "b", "c", ""}).Draw(t, "vc")
	if rapid.Bool().Draw(t, "says nodes") {
		j.Nodes = rapid.IntRange(1, 4).Draw(t, "nodes of the job")
	}
	if rapid.IntRange(0, 9).Draw(t, "elastic") == 0 {
		j.MinGPUs, j.MaxGPUs = 1, 9
	}
	return j
}

// books is a second set of books, kept only from the specification and the calls.
type books struct {
	gpus  []book
	cpu   []int64 // by node, -1 = not limited
	mem   []int64
	owner []string // by node, "" = none
	down  []bool
	jobs  []int          // by node, members of gangs and jobs without GPUs
	vcs   map[string]int // place in the specification, by name
	spec  cluster.Spec
	used  map[string]int // thousandths, by virtual cluster
}

type book struct {
	node, rack int
	kind       string
	free       int
}

func newBooks(s cluster.Spec) *books {
	b := &books{spec: s, vcs: map[string]int{}, used: map[string]int{}}
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
	b.owner, b.down, b.jobs = make([]string, len(b.cpu)), make([]bool, len(b.cpu)), make([]int, len(b.cpu))
	next := 0
	for i, v := range s.VCs {
		b.vcs[v.Name] = i
		for range v.Nodes {
			b.owner[next] = v.Name
			next++
		}
	}
	return b
}

// use books one of the gang's members on g; sign -1 returns it.
func (b *books) use(j *traces.Job, g cluster.GPU, sign int) {
	n := int(-1 - g)
	if g >= 0 {
		b.gpus[g].free -= sign * j.GPUMilli
		n = b.gpus[g].node
		b.used[j.VC] += sign * j.GPUMilli
	}
	b.jobs[n] += sign
	if b.cpu[n] >= 0 {
		b.cpu[n] -= int64(sign) * ceil(j.CPUMilli, max(1, j.GPUs))
	}
	if b.mem[n] >= 0 {
		b.mem[n] -= int64(sign) * ceil(j.MemBytes, max(1, j.GPUs))
	}
}

func ceil(a int64, b int) int64 { return (a + int64(b) - 1) / int64(b) }

// quota returns how many thousandths j's virtual cluster may still take.
func (b *books) quota(j *traces.Job) int {
	if i, ok := b.vcs[j.VC]; ok && b.spec.VCs[i].Quota > 0 {
		return b.spec.VCs[i].Quota*1000 - b.used[j.VC]
	}
	return math.MaxInt
}

// each returns how many GPUs j takes on each of its nodes, 0 = any number.
func (b *books) each(j *traces.Job) int {
	if b.spec.Literal || j.Nodes == 0 || j.GPUs%j.Nodes > 0 || j.GPUs < 2 || j.MaxGPUs > 0 {
		return 0
	}
	return j.GPUs / j.Nodes
}

// room returns how many members of j find room on node. If j takes equal parts on several nodes, no node shows more
// than one part, and a node without room for a part has none.
func (b *books) room(j *traces.Job, node int) int {
	n := b.members(j, node)
	if each := b.each(j); each > 0 && n < each {
		return 0
	} else if each > 0 && each < j.GPUs {
		return each
	}
	return n
}

// serves reports whether hosts, lists as drawDivided draws them, name node; nil stands for all nodes.
func serves(hosts []string, node int) bool {
	if hosts == nil {
		return true
	}
	var from, to, one int
	_, err := fmt.Sscanf(hosts[0]+" "+hosts[1], "[%d-%d] %d", &from, &to, &one)
	return err == nil && (from <= node && node <= to || node == one)
}

// members counts greedily, one member after another.
func (b *books) members(j *traces.Job, node int) int {
	if b.down[node] {
		return 0
	}
	if len(b.vcs) > 0 {
		i, ok := b.vcs[j.VC]
		if !ok {
			return 0
		}
		if !serves(b.spec.VCs[i].Hosts, node) {
			return 0
		}
		if own := b.spec.VCs[i].Nodes > 0; own && b.owner[node] != j.VC || !own && b.owner[node] != "" {
			return 0
		}
	}
	cpu, mem := b.cpu[node], b.mem[node]
	fits := func() bool {
		cpu -= ceil(j.CPUMilli, max(1, j.GPUs))
		mem -= ceil(j.MemBytes, max(1, j.GPUs))
		return (b.cpu[node] < 0 || cpu >= 0) && (b.mem[node] < 0 || mem >= 0)
	}
	n := 0
	if j.GPUs == 0 {
		if fits() {
			n = 1
		}
		return n
	}
	quota := b.quota(j)
	for _, g := range b.gpus {
		if g.node != node || g.free < j.GPUMilli || !b.typeOK(j, g.kind) {
			continue
		}
		if quota -= j.GPUMilli; quota < 0 || !fits() {
			break
		}
		n++
	}
	return n
}

func (b *books) typeOK(j *traces.Job, kind string) bool {
	if b.spec.Literal {
		return len(j.GPUTypes) == 0 || slices.Contains(j.GPUTypes, kind)
	}
	return len(j.GPUTypes) == 0 || kind == "" || slices.ContainsFunc(j.GPUTypes, func(t string) bool {
		return strings.ToLower(t) == strings.ToLower(kind) //nolint:staticcheck // as plain as can be
	})
}

func (b *books) fits(j *traces.Job) bool {
	if j.GPUs*j.GPUMilli > b.quota(j) {
		return false
	}
	n := 0
	for node := range b.cpu {
		n += b.room(j, node)
	}
	return n >= max(1, j.GPUs)
}

// somewhere places j on the first GPUs with room, starting at start; a job without GPUs gets the slot of a node with
// room.
func (b *books) somewhere(j *traces.Job, start int) (gpus []cluster.GPU) {
	for k := range b.cpu {
		node := (start + k) % len(b.cpu)
		room := b.room(j, node)
		if j.GPUs == 0 {
			if room > 0 {
				return []cluster.GPU{cluster.Slot(node)}
			}
			continue
		}
		for g, is := range b.gpus {
			if is.node == node && is.free >= j.GPUMilli && room > 0 && len(gpus) < j.GPUs {
				gpus = append(gpus, cluster.GPU(g))
				room--
			}
		}
	}
	return gpus
}

// The books balance after every call, whatever is requested. Placed GPUs are distinct and free, and a placement
// succeeds exactly when a second set of books says that the gang fits. An error changes nothing.
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
		spec := drawDivided(t)
		spec.Literal = rapid.IntRange(0, 3).Draw(t, "literal") == 0
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
			switch call := rapid.IntRange(0, 6).Draw(t, "call"); {
			case call < 2 && len(holds) > 0:
				i := rapid.IntRange(0, len(holds)-1).Draw(t, "which")
				h := holds[i]
				c.Release(&h.req, h.gpus)
				for _, g := range h.gpus {
					b.use(&h.job, g, -1)
				}
				holds = slices.Delete(holds, i, i+1)
			case call == 2:
				node, down := rapid.IntRange(0, c.Nodes()-1).Draw(t, "node"), rapid.Bool().Draw(t, "down")
				err := c.SetDown(node, down)
				if idle := b.jobs[node] == 0; (err != nil) != (down && !idle) {
					t.Fatalf("SetDown(%d, %v) of a node with %d jobs: %v", node, down, b.jobs[node], err)
				}
				if err == nil {
					b.down[node] = down
				}
			default:
				j := drawWork(t)
				r, ok := c.Request(&j)
				if want := newBooks(spec).fits(&j); ok != want {
					t.Fatalf("Request(%+v) says %v for an empty cluster", j, ok)
				}
				if !ok {
					continue
				}
				fits := agreeOn(t, c, b, &j, &r)
				before := fmt.Sprintf("%+v", *c)
				for _, rule := range rules {
					try(t, c, rule, &r, fits)
				}
				if !fits {
					if err := c.Allocate(&r, make([]cluster.GPU, r.GPUs)); err == nil {
						t.Fatal("what does not fit was allocated")
					}
					continue
				}
				gpus := b.somewhere(&j, rapid.IntRange(0, c.Nodes()-1).Draw(t, "start"))
				refused(t, c, &r, gpus)
				if after := fmt.Sprintf("%+v", *c); withoutVersion(before) != withoutVersion(after) {
					t.Fatalf("placing, releasing and refused calls changed the books:\n%s\n%s", before, after)
				}
				if err := c.Allocate(&r, gpus); err != nil {
					t.Fatal(err)
				}
				for _, g := range gpus {
					b.use(&j, g, 1)
				}
				holds = append(holds, held{j, r, gpus})
			}
			if err := c.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
			agree(t, c, b)
		}
		for _, h := range holds {
			c.Release(&h.req, h.gpus)
		}
		for n := range c.Nodes() {
			if err := c.SetDown(n, false); err != nil {
				t.Fatal(err)
			}
		}
		if c.Free() != c.GPUs() || c.FreeMilli() != 1000*c.GPUs() {
			t.Fatalf("%d of %d GPUs are free after all was given back", c.Free(), c.GPUs())
		}
	})
}

// agreeOn compares the answers of cluster and books for one request, and returns whether it fits.
func agreeOn(t *rapid.T, c *cluster.Cluster, b *books, j *traces.Job, r *cluster.Request) bool {
	fits := b.fits(j)
	if c.Fits(r) != fits {
		t.Fatalf("Fits(%+v) = %v, the books say %v", *r, !fits, fits)
	}
	for node := range b.cpu {
		if got, want := c.Room(node, r), b.room(j, node); got != want {
			t.Fatalf("Room(%d, %+v) = %d, the books say %d", node, *r, got, want)
		}
	}
	if r.VC != 0 {
		if got := c.VCRoom(r.VC); got != b.quota(j) {
			t.Fatalf("VCRoom(%d) = %d, the books say %d", r.VC, got, b.quota(j))
		}
		free := 0
		from, to := c.VCNodes(r.VC)
		for n := range c.Nodes() {
			switch {
			case !c.Serves(n, r.VC):
			case n < from || n >= to:
				t.Fatalf("node %d is not among [%d, %d)", n, from, to)
			default:
				free += c.NodeFree(n)
			}
		}
		if got := c.VCFree(r.VC); got != free {
			t.Fatalf("VCFree(%d) = %d, its nodes have %d", r.VC, got, free)
		}
	}
	return fits
}

// try places a request by one rule, allocates and releases it.
func try(t *rapid.T, c *cluster.Cluster, rule cluster.Placement, r *cluster.Request, fits bool) {
	gpus, ok := rule.Place(c, r, nil)
	if ok != fits && (ok || !cluster.Constrained(rule)) {
		t.Fatalf("%s places %+v: %v, the books say %v", rule.Name(), *r, ok, fits)
	}
	if !ok {
		return
	}
	seen := map[cluster.GPU]bool{}
	for _, g := range gpus {
		seen[g] = true
	}
	if want := max(1, r.GPUs); len(seen) != want || len(gpus) != want {
		t.Fatalf("%s places a gang of %d on %v", rule.Name(), r.GPUs, gpus)
	}
	shaped(t, c, rule.Name(), r, gpus)
	if err := c.Allocate(r, gpus); err != nil {
		t.Fatalf("%s places %+v on %v: %v", rule.Name(), *r, gpus, err)
	}
	if err := c.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	c.Release(r, gpus)
}

// shaped fails if a gang that takes the same number of GPUs on each of its nodes has not got it.
func shaped(t *rapid.T, c *cluster.Cluster, name string, r *cluster.Request, gpus []cluster.GPU) {
	on := map[int]int{}
	for _, g := range gpus {
		on[c.NodeOf(g)]++
	}
	for n, k := range on {
		if r.Each > 0 && k != r.Each {
			t.Fatalf("%s places %+v on %v: %d on node %d", name, *r, gpus, k, n)
		}
	}
}

// withoutVersion drops what may change while the books stay the same: version, blocks and the marks of Cost.
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
	for _, bad := range [][]cluster.GPU{gpus[:last], append(gpus[:last:last], cluster.Slot(c.Nodes())),
		append(gpus[:last:last], cluster.GPU(c.GPUs()))} {
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
	free, milli, down := 0, 0, 0
	nodes := make([]int, c.Nodes())
	for g, k := range b.gpus {
		if c.NodeOf(cluster.GPU(g)) != k.node {
			t.Fatalf("GPU %d is on node %d, want %d", g, c.NodeOf(cluster.GPU(g)), k.node)
		}
		if b.down[k.node] {
			k.free = 0
			down++
		}
		if c.GPUFree(cluster.GPU(g)) != k.free {
			t.Fatalf("GPU %d has %d free, want %d", g, c.GPUFree(cluster.GPU(g)), k.free)
		}
		milli += k.free
		if k.free == 1000 {
			free++
			nodes[k.node]++
		}
	}
	for n, want := range nodes {
		if c.NodeFree(n) != want || c.Down(n) != b.down[n] || c.NodeOf(cluster.Slot(n)) != n {
			t.Fatalf("node %d has %d free (down: %v), want %d (%v)", n, c.NodeFree(n), c.Down(n), want, b.down[n])
		}
		if vc := c.VCOf(n); vc > 0 && c.VCs()[vc-1] != b.owner[n] || vc == 0 && b.owner[n] != "" {
			t.Fatalf("node %d belongs to virtual cluster %d, want %q", n, vc, b.owner[n])
		}
	}
	if c.Free() != free || c.FreeMilli() != milli || c.DownGPUs() != down {
		t.Fatalf("%d GPUs and %d thousandths free, %d down, want %d, %d and %d", c.Free(), c.FreeMilli(), c.DownGPUs(), free,
			milli, down)
	}
}
