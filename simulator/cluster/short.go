package cluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
)

var (
	shortForm = regexp.MustCompile(`^(?:(pool|swf)[:-](\d+)|(?:(dally)[:-])?(\d+)x(\d+))$`)
	typedForm = regexp.MustCompile(`^` + typedNodes + `(?:\+` + typedNodes + `)*$`)
)

// typedNodes is one part of a form for nodes of several kinds, as 4x8:a100.
const typedNodes = `\d+x\d+(?::[A-Za-z0-9][A-Za-z0-9._-]*)?`

// Parse reads a short form: "pool:256" (a counter), "swf-256" (the same, by its customary name), "6x8" (six nodes of
// eight GPUs in one rack), "6x8:a100" (the same of GPUs of a type), "4x8:a100+2x4:v100" (nodes of two kinds in one rack)
// or "dally:4x2" (see dally). ok is false if s has none of these forms.
func Parse(s string) (spec Spec, ok bool, err error) {
	if typedForm.MatchString(s) && strings.ContainsAny(s, ":+") {
		return parseTyped(s)
	}
	m := shortForm.FindStringSubmatch(s)
	if m == nil {
		return Spec{}, false, nil
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

// num returns the number that the digits t write; out of range gives the largest int, which Validate refuses.
func num(t string) int {
	n, _ := strconv.Atoi(t)
	return n
}

// parseTyped reads nodes of several kinds.
func parseTyped(s string) (spec Spec, ok bool, err error) {
	spec = Spec{Name: s, Racks: []RackSpec{{Count: 1}}}
	for part := range strings.SplitSeq(s, "+") {
		size, kind, _ := strings.Cut(part, ":")
		nodes, gpus, _ := strings.Cut(size, "x")
		n := NodeSpec{Count: Count(num(nodes)), GPUs: num(gpus), GPUType: kind}
		if n.Count == 0 || n.GPUs == 0 {
			return Spec{}, true, fault.New("cluster", s, "numbers above 0, as in 4x8:a100+2x4:v100")
		}
		spec.Racks[0].Nodes = append(spec.Racks[0].Nodes, n)
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
