package cluster_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// divided returns 6 nodes of 2 GPUs: "a" owns nodes 0 and 1, "b" owns node 2; "c", which may hold 3 GPUs, and "d",
// which may hold all, share nodes 3 to 5.
func divided() cluster.Spec {
	return cluster.Spec{
		Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 2}}}},
		VCs:   []cluster.VCSpec{{Name: "a", Nodes: 2}, {Name: "b", Nodes: 1}, {Name: "c", Quota: 3}, {Name: "d"}},
	}
}

func TestVirtualClustersByHand(t *testing.T) {
	c := mustNew(t, "", divided())
	if !slices.Equal(c.VCs(), []string{"a", "b", "c", "d"}) {
		t.Errorf("virtual clusters %v", c.VCs())
	}
	for node, want := range []int32{1, 1, 2, 0, 0, 0} {
		if got := c.VCOf(node); got != want {
			t.Errorf("node %d belongs to %d, want %d", node, got, want)
		}
	}
	for _, x := range []struct {
		vc         string
		gpus       int
		ok         bool
		num        int32
		from, to   int
		free, room int
	}{
		{"a", 4, true, 1, 0, 2, 4, math.MaxInt},
		{"a", 5, false, 1, 0, 2, 4, math.MaxInt},
		{"b", 2, true, 2, 2, 3, 2, math.MaxInt},
		{"c", 3, true, 3, 3, 6, 6, 3000},
		{"c", 4, false, 3, 3, 6, 6, 3000},
		{"d", 6, true, 4, 3, 6, 6, math.MaxInt},
		{"d", 7, false, 4, 3, 6, 6, math.MaxInt},
	} {
		r, ok := c.Request(&traces.Job{GPUs: x.gpus, GPUMilli: 1000, VC: x.vc})
		if ok != x.ok || r.VC != x.num {
			t.Errorf("%d GPUs for %s: %+v, %v", x.gpus, x.vc, r, ok)
		}
		if ok && !c.Fits(&r) {
			t.Errorf("%d GPUs for %s do not fit", x.gpus, x.vc)
		}
		from, to := c.VCNodes(x.num)
		if from != x.from || to != x.to || c.VCFree(x.num) != x.free || c.VCRoom(x.num) != x.room {
			t.Errorf("%s: nodes %d to %d, %d free, quota %d", x.vc, from, to, c.VCFree(x.num), c.VCRoom(x.num))
		}
	}
	for _, vc := range []string{"", "e"} {
		if r, ok := c.Request(&traces.Job{GPUs: 1, GPUMilli: 1000, VC: vc}); ok {
			t.Errorf("a job of %q is said to fit: %+v", vc, r)
		}
	}
}

func TestQuotaBoundsWhatIsHeldTogether(t *testing.T) {
	c := mustNew(t, "", divided())
	two, _ := c.Request(&traces.Job{GPUs: 2, GPUMilli: 1000, VC: "c"})
	half, _ := c.Request(&traces.Job{GPUs: 1, GPUMilli: 500, VC: "c"})
	if err := c.Allocate(&two, []cluster.GPU{6, 7}); err != nil {
		t.Fatal(err)
	}
	// 3 − 2 GPUs are left: another gang of two exceeds the quota, though four GPUs are free.
	if c.VCRoom(3) != 1000 || c.Fits(&two) || c.Room(4, &two) != 1 || c.VCFree(3) != 4 {
		t.Errorf("quota left %d, fits %v, room %d, free %d", c.VCRoom(3), c.Fits(&two), c.Room(4, &two), c.VCFree(3))
	}
	if err := c.Allocate(&two, []cluster.GPU{8, 9}); !errors.Is(err, cluster.ErrNoCapacity) ||
		!strings.Contains(err.Error(), `quota of virtual cluster "c" has 1000 left`) {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if !c.Fits(&half) {
			t.Fatal("half a GPU does not fit the rest of the quota")
		}
		if err := c.Allocate(&half, []cluster.GPU{8}); err != nil {
			t.Fatal(err)
		}
	}
	if c.VCRoom(3) != 0 || c.Fits(&half) {
		t.Errorf("quota left %d", c.VCRoom(3))
	}
	c.Release(&two, []cluster.GPU{6, 7})
	if c.VCRoom(3) != 2000 || !c.Fits(&two) {
		t.Errorf("quota left %d after a release", c.VCRoom(3))
	}
	if err := c.Allocate(&two, []cluster.GPU{4, 5}); !errors.Is(err, cluster.ErrNoCapacity) ||
		!strings.Contains(err.Error(), `node 2 is not for jobs of virtual cluster "c"`) {
		t.Errorf("got %v", err)
	}
	c.Reset()
	if c.VCRoom(3) != 3000 {
		t.Errorf("quota left %d after Reset", c.VCRoom(3))
	}
}

func TestQuotasOnACounter(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Pool: 8, VCs: []cluster.VCSpec{{Name: "x", Quota: 3}, {Name: "y"}}})
	if _, ok := c.Request(&traces.Job{GPUs: 4, GPUMilli: 1000, VC: "x"}); ok {
		t.Error("a gang above the quota is said to fit")
	}
	x, _ := c.Request(&traces.Job{GPUs: 2, GPUMilli: 1000, VC: "x"})
	y, ok := c.Request(&traces.Job{GPUs: 8, GPUMilli: 1000, VC: "y"})
	if !ok || c.Allocate(&x, nil) != nil {
		t.Fatal("refused")
	}
	if c.Fits(&x) || c.Allocate(&x, nil) == nil || c.VCRoom(1) != 1000 || c.VCFree(1) != 6 || c.Fits(&y) {
		t.Errorf("quota left %d of %d free", c.VCRoom(1), c.VCFree(1))
	}
	c.Release(&x, nil)
	if !c.Fits(&y) {
		t.Error("an idle counter has no room")
	}
}

func TestFaultsOfVirtualClusters(t *testing.T) {
	racks := []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 4, GPUs: 2}}}}
	for name, x := range map[string]struct {
		spec cluster.Spec
		want []string
	}{
		"names": {cluster.Spec{Racks: racks, VCs: []cluster.VCSpec{{Name: "a"}, {}, {Name: "a"}}},
			[]string{"vcs[1].name", "vcs[2].name"}},
		"more nodes than there are": {cluster.Spec{Racks: racks,
			VCs: []cluster.VCSpec{{Name: "a", Nodes: 3}, {Name: "b", Nodes: 2}}},
			[]string{"vcs[1].nodes"}},
		"none left": {cluster.Spec{Racks: racks, VCs: []cluster.VCSpec{{Name: "a", Nodes: 4}, {Name: "b", Quota: 2}}},
			[]string{"vcs[1].nodes"}},
		"nodes and quota": {cluster.Spec{Racks: racks, VCs: []cluster.VCSpec{{Name: "a", Nodes: 1, Quota: 1}}},
			[]string{"vcs[0].quota"}},
		"negative": {cluster.Spec{Racks: racks, VCs: []cluster.VCSpec{{Name: "a", Nodes: -1}, {Name: "b", Quota: -1}}},
			[]string{"vcs[0].nodes", "vcs[1].quota"}},
		"huge": {cluster.Spec{Racks: racks,
			VCs: []cluster.VCSpec{{Name: "a", Nodes: math.MaxInt}, {Name: "b", Nodes: math.MaxInt},
				{Name: "c", Quota: math.MaxInt}}},
			[]string{"vcs[0].nodes", "vcs[1].nodes", "vcs[2].quota"}},
		"nodes of a counter": {cluster.Spec{Pool: 4, VCs: []cluster.VCSpec{{Name: "a", Nodes: 1}}},
			[]string{"vcs[0].nodes"}},
	} {
		var got []string
		for _, f := range fault.All(x.spec.Validate()) {
			got = append(got, f.Key)
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: faults of %v, want %v", name, got, x.want)
		}
	}
	s := cluster.Spec{Racks: racks, VCs: []cluster.VCSpec{{Name: "a", Nodes: 3}, {Name: "b", Nodes: 2}}}
	if err := s.Validate(); err == nil || err.Error() !=
		"vcs[1].nodes: got 2, want 0 to 1: of 4 nodes, the virtual clusters before it own 3" {
		t.Errorf("got %v", err)
	}
}

func TestWithoutVirtualClustersTheNameInAJobDoesNotMatter(t *testing.T) {
	c := mustNew(t, "2x2", cluster.Spec{})
	r, ok := c.Request(&traces.Job{GPUs: 4, GPUMilli: 1000, VC: "anybody"})
	if !ok || r != (cluster.Request{GPUs: 4, Milli: 1000}) || len(c.VCs()) != 0 || c.VCOf(1) != 0 {
		t.Errorf("got %+v, %v", r, ok)
	}
	if from, to := c.VCNodes(0); from != 0 || to != 2 || c.VCFree(0) != 4 || c.VCRoom(0) != math.MaxInt {
		t.Errorf("nodes %d to %d, %d free, quota %d", from, to, c.VCFree(0), c.VCRoom(0))
	}
}
