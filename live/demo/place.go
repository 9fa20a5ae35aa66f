package demo

import (
	"cmp"
	"slices"
	"strings"
)

// place is what a job gets of a node.
type place struct {
	on   *node
	gpus int
}

// place returns where a job would run, of nodes with so many free GPUs; nil if it does not fit. A job that one node
// could hold gets one, of those with room the one that it fills most; a larger one gets whole nodes, and one with the
// rest. On nodes that were chosen for it, a job may be split in any way.
func (m *machine) place(j *job, idle []int) []place {
	largest := 0
	room := make([]place, 0, len(m.nodes))
	for i, n := range m.nodes {
		if !fits(j, n) || len(j.Nodes) > 0 && !slices.Contains(j.Nodes, n.Name) {
			continue
		}
		largest = max(largest, n.GPUs)
		if idle[i] > 0 {
			room = append(room, place{n, idle[i]})
		}
	}
	switch {
	case len(j.Nodes) > 0:
		return anyhow(room, j.GPUs)
	case j.GPUs <= largest:
		return tightest(room, j.GPUs)
	}
	return whole(room, j.GPUs)
}

// fits reports whether a node has the type of GPUs that a job asks for.
func fits(j *job, n *node) bool {
	return len(j.GPUTypes) == 0 ||
		slices.ContainsFunc(j.GPUTypes, func(t string) bool { return strings.EqualFold(t, n.GPUType) })
}

// tightest returns the node with the least room that suffices.
func tightest(room []place, gpus int) []place {
	best := -1
	for i := range room {
		if room[i].gpus >= gpus && (best < 0 || room[i].gpus < room[best].gpus) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return []place{{room[best].on, gpus}}
}

// whole returns idle nodes, the largest first, and for the rest the node with the least room that suffices.
func whole(room []place, gpus int) (list []place) {
	slices.SortStableFunc(room, func(a, b place) int { return cmp.Compare(b.gpus, a.gpus) })
	for i, r := range room {
		if r.gpus < r.on.GPUs {
			continue
		}
		if last := tightest(room, gpus); last != nil {
			return append(list, last...)
		}
		list = append(list, r)
		gpus -= r.gpus
		room[i].gpus = 0
	}
	if last := tightest(room, gpus); gpus > 0 && last != nil {
		return append(list, last...)
	}
	if gpus == 0 {
		return list
	}
	return nil
}

// anyhow returns nodes with most room first.
func anyhow(room []place, gpus int) (list []place) {
	if one := tightest(room, gpus); one != nil {
		return one
	}
	slices.SortStableFunc(room, func(a, b place) int { return cmp.Compare(b.gpus, a.gpus) })
	for _, r := range room {
		k := min(r.gpus, gpus)
		list = append(list, place{r.on, k})
		if gpus -= k; gpus == 0 {
			return list
		}
	}
	return nil
}

func take(idle []int, places []place) {
	for _, p := range places {
		idle[p.on.number] -= p.gpus
	}
}
