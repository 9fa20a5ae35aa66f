package cluster_test

import (
	"strings"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// A reserved partition beside an open one, by the names of nodes and by their numbers.
func TestPartitionsNameTheirNodes(t *testing.T) {
	racks := []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, Names: []string{"g1", "g2"}},
		{Count: 2, GPUs: 8}}}}
	for _, hosts := range [][2]string{{"g[1-2],2", "3"}, {"[0-2]", "[3-3]"}} {
		c := mustNew(t, "", cluster.Spec{Racks: racks, VCs: []cluster.VCSpec{{Name: "open", Hosts: []string{hosts[0]}},
			{Name: "reserved", Hosts: []string{hosts[1]}}, {Name: "all"}}})
		if c.VCFree(1) != 16 || c.VCFree(2) != 8 || c.VCFree(3) != 24 || !c.Serves(2, 1) || c.Serves(3, 1) || !c.Serves(3, 3) {
			t.Error(c.VCFree(1), c.VCFree(2), c.VCFree(3))
		}
		for _, x := range []struct {
			vc    string
			gpus  int
			apart bool
			fits  bool
		}{{"open", 16, true, true}, {"open", 17, true, false}, {"reserved", 8, true, true}, {"all", 24, false, true}} {
			r, ok := c.Request(&traces.Job{VC: x.vc, GPUs: x.gpus, GPUMilli: 1000})
			if r.Apart != x.apart || ok != x.fits {
				t.Errorf("%+v: %+v, %v", x, r, ok)
			}
		}
	}
}

func TestFaultsOfHosts(t *testing.T) {
	nodes := []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4, Names: []string{"a", "b"}}}}}
	for _, x := range []struct {
		spec cluster.Spec
		want string
	}{
		{cluster.Spec{Racks: nodes, VCs: []cluster.VCSpec{{Name: "v", Hosts: []string{"a,c"}}}},
			"vcs[0].hosts: got \"a,c\", want names of nodes: none is called c"},
		{cluster.Spec{Racks: nodes, VCs: []cluster.VCSpec{{Name: "v", Hosts: []string{"[0-2]"}}}}, "none is called 2"},
		{cluster.Spec{Racks: nodes, VCs: []cluster.VCSpec{{Name: "v", Hosts: []string{"a["}}}}, "want a list of nodes as g[01-03,07]"},
		{cluster.Spec{Racks: nodes, VCs: []cluster.VCSpec{{Name: "v", Hosts: []string{}}}}, "a list of nodes, or no such key"},
		{cluster.Spec{Racks: nodes, VCs: []cluster.VCSpec{{Name: "v", Hosts: []string{"a"}}, {Name: "w", Nodes: 1}}}, "vcs[1].nodes"},
		{cluster.Spec{Pool: 4, VCs: []cluster.VCSpec{{Name: "v", Hosts: []string{"a"}}}}, "a counter has no nodes"},
	} {
		if err := x.spec.Validate(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want %s", x.spec.VCs, err, x.want)
		}
	}
}
