package cluster

import "time"

// wires are the links of nodes and racks, each distinct kind stored once.
type wires struct {
	node  []int32 // index into kinds, by node
	rack  []int32 // index into up, by rack
	kinds []wire
	up    []Link
}

type wire struct{ link, nic Link }

func (c *Cluster) addWires(r RackSpec) {
	nic, sum := Link{}, 0.0
	for _, n := range r.Nodes {
		w := wire{stated(n.Link, "pcie"), stated(n.NIC, "ethernet")}
		c.wires.kinds = append(c.wires.kinds, w)
		sum += float64(n.Count.N()) * w.nic.Gbps
		nic.Latency = max(nic.Latency, w.nic.Latency)
	}
	up := r.Uplink
	if up.Gbps == 0 {
		up.Gbps = sum
	}
	if up.Latency == 0 {
		up.Latency = nic.Latency
		if k, ok := usual[up.Class]; ok {
			up.Latency = k.Latency
		}
	}
	c.wires.up = append(c.wires.up, up)
}

// usual holds the values of a link class that a Spec leaves out: NVLink as between two Tesla V100 (6 links of 25 GB/s
// each way), PCI Express 3.0 with 16 lanes (15.75 GB/s each way), InfiniBand EDR, 10-Gbit Ethernet. The latencies are
// those of the tiers in Dally's simulator (500 ns within a machine with NVLink, 5 µs in a rack with a fast network, 50
// µs across a slow one), and 1 µs for PCI Express.
var usual = map[string]Link{
	"nvlink":     {Class: "nvlink", Gbps: 1200, Latency: 500 * time.Nanosecond},
	"pcie":       {Class: "pcie", Gbps: 126, Latency: time.Microsecond},
	"infiniband": {Class: "infiniband", Gbps: 100, Latency: 5 * time.Microsecond},
	"ethernet":   {Class: "ethernet", Gbps: 10, Latency: 50 * time.Microsecond},
}

// stated fills in what l does not state: the usual values of its class, or of class other if its own is unknown.
func stated(l Link, other string) Link {
	k, ok := usual[l.Class]
	if !ok {
		k = usual[other]
	}
	if l.Class == "" {
		l.Class = k.Class
	}
	if l.Gbps == 0 {
		l.Gbps = k.Gbps
	}
	if l.Latency == 0 {
		l.Latency = k.Latency
	}
	return l
}

// Link returns the link between the GPUs of node. What its Spec leaves out has the usual value of its class: nvlink
// 1200 Gbit/s each way and 500 ns, pcie 126 and 1 µs, infiniband 100 and 5 µs, ethernet 10 and 50 µs. A link without a
// class, or with another one, counts as pcie.
func (c *Cluster) Link(node int) Link { return c.wires.kinds[c.wires.node[node]].link }

// NIC returns the link from node to its rack, with the same defaults as Link; without a class it is ethernet.
func (c *Cluster) NIC(node int) Link { return c.wires.kinds[c.wires.node[node]].nic }

// Uplink returns the link from rack to the site. Without a bandwidth it has the sum of its nodes' NICs; without a
// latency it has that of its class, or else that of the slowest NIC.
func (c *Cluster) Uplink(rack int) Link { return c.wires.up[c.wires.rack[rack]] }
