package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"clustergym/internal/fault"
)

var shortForm = regexp.MustCompile(`^(?:(pool|swf)[:-](\d+)|(?:(dally)[:-])?(\d+)x(\d+))$`)

// Parse reads a short form: "pool:256" (a counter), "swf-256" (the same, by its customary name), "6x8" (six nodes of
// eight GPUs in one rack) or "dally:4x2" (see dally). ok is false if s has none of these forms.
func Parse(s string) (spec Spec, ok bool, err error) {
	m := shortForm.FindStringSubmatch(s)
	if m == nil {
		return Spec{}, false, nil
	}
	num := func(t string) int {
		n, _ := strconv.Atoi(t) // digits only; out of range gives the largest int, which Validate refuses
		return n
	}
	spec.Name = s
	switch {
	case m[1] != "":
		spec.Pool = num(m[2])
	case m[3] != "":
		spec.Racks = dally(num(m[4]), num(m[5]))
	default:
		spec.Racks = []RackSpec{{Count: 1, Nodes: []NodeSpec{{Count: Count(num(m[4])), GPUs: num(m[5])}}}}
	}
	// In a Spec 0 means "left out".
	if spec.Pool == 0 && (len(spec.Racks) == 0 || spec.Racks[0].Count == 0 || spec.Racks[0].Nodes[0].Count == 0) {
		return Spec{}, true, fault.New("cluster", s, "numbers above 0, as in pool:256, 6x8 or dally:4x2")
	}
	if err := spec.Validate(); err != nil {
		return Spec{}, true, fmt.Errorf("cluster %q: %w", s, err)
	}
	return spec, true, nil
}

// dally returns the cluster of Dally's simulator (Sharma et al., arXiv 2401.16492;
// github.com/aakash-sharma/cluster-sim): machines of 8 GPUs, with the links that it passes to ASTRA-sim: 600 GB/s and
// 500 ns between the GPUs of a machine, 200 GB/s and 5 µs within a rack, 400 GB/s and 50 µs between racks.
func dally(racks, machines int) []RackSpec {
	return []RackSpec{{
		Count:  Count(racks),
		Uplink: Link{Class: "switch", Gbps: 3200, Latency: 50 * time.Microsecond},
		Nodes: []NodeSpec{{
			Count: Count(machines), GPUs: 8,
			Link: Link{Class: "nvlink", Gbps: 4800, Latency: 500 * time.Nanosecond},
			NIC:  Link{Class: "ring", Gbps: 1600, Latency: 5 * time.Microsecond},
		}},
	}}
}
