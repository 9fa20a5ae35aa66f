package cluster_test

import (
	"testing"
	"time"

	"clustergym/simulator/cluster"
)

func TestLinksAreAsStatedElseAsUsual(t *testing.T) {
	c := mustNew(t, "", cluster.Spec{Racks: []cluster.RackSpec{
		{Count: 2, Uplink: cluster.Link{Class: "ethernet", Gbps: 40}, Nodes: []cluster.NodeSpec{
			{Count: 2, GPUs: 1, Link: cluster.Link{Class: "nvlink"}, NIC: cluster.Link{Class: "infiniband", Gbps: 200}},
			{GPUs: 1, Link: cluster.Link{Gbps: 64, Latency: 2 * time.Microsecond}}}},
		{Nodes: []cluster.NodeSpec{{Count: 3, GPUs: 1, NIC: cluster.Link{Class: "carrier pigeon", Latency: time.Hour}},
			{GPUs: 1, NIC: cluster.Link{Class: "infiniband"}}}},
	}})
	link := func(class string, gbps float64, latency time.Duration) cluster.Link {
		return cluster.Link{Class: class, Gbps: gbps, Latency: latency}
	}
	us := time.Microsecond
	for _, x := range []struct {
		what      string
		got, want cluster.Link
	}{
		{"link 0", c.Link(0), link("nvlink", 1200, 500*time.Nanosecond)},
		{"NIC 1", c.NIC(1), link("infiniband", 200, 5*us)},
		{"link 2", c.Link(2), link("pcie", 64, 2*us)},
		{"NIC 2", c.NIC(2), link("ethernet", 10, 50*us)},
		{"link 4, in the second of the equal racks", c.Link(4), link("nvlink", 1200, 500*time.Nanosecond)},
		{"NIC 5", c.NIC(5), link("ethernet", 10, 50*us)},
		{"link 6", c.Link(6), link("pcie", 126, us)},
		{"NIC 8", c.NIC(8), link("carrier pigeon", 10, time.Hour)},
		{"NIC 9", c.NIC(9), link("infiniband", 100, 5*us)},
		{"uplink 0", c.Uplink(0), link("ethernet", 40, 50*us)},
		{"uplink 1", c.Uplink(1), link("ethernet", 40, 50*us)},
		// 3 × 10 + 100 Gbit/s, and the latency of the slowest NIC.
		{"uplink 2", c.Uplink(2), link("", 130, time.Hour)},
	} {
		if x.got != x.want {
			t.Errorf("%s is %+v, want %+v", x.what, x.got, x.want)
		}
	}
	if from, to := c.RackNodes(1); from != 3 || to != 6 {
		t.Errorf("rack 1 has nodes %d to %d", from, to)
	}
}
