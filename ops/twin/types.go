package twin

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
)

// typed returns c with GPUs that jobs of this cluster can use: nodes that are added without a type get the one that the
// waiting jobs ask for, or that of the whole cluster if they ask for none. Types that waiting jobs do not agree on are
// a mistake that lists them. A type that differs from the cluster's in upper and lower case alone is the cluster's.
func (c Change) typed(st *State) (Change, error) {
	if c.add == nil || st.Spec.Pool > 0 {
		return c, nil
	}
	have := typesOf(&st.Spec)
	var asked [][]string // by waiting jobs that ask for types
	anyType := 0         // waiting jobs that take every type
	all := maps.Clone(have)
	for i := range st.Jobs {
		switch j := &st.Jobs[i]; {
		case j.Runs:
		case len(j.GPUTypes) == 0:
			anyType++
		default:
			asked = append(asked, j.GPUTypes)
			for _, t := range j.GPUTypes {
				all[t] += 0
			}
		}
	}
	add := *c.add
	kind := add.GPUType
	switch {
	case kind != "":
		if _, known := all[kind]; !known {
			for _, t := range slices.Sorted(maps.Keys(all)) {
				if strings.EqualFold(t, kind) {
					kind = t
					break
				}
			}
		}
		if anyType == 0 && len(asked) > 0 &&
			!slices.ContainsFunc(asked, func(list []string) bool { return slices.Contains(list, kind) }) {
			c.note = "No waiting job can use GPUs of type " + kind + ": they ask for " + few(union(asked)) + "."
		}
	case len(asked) > 0:
		common := slices.Clone(asked[0])
		for _, list := range asked[1:] {
			common = slices.DeleteFunc(common, func(t string) bool { return !slices.Contains(list, t) })
		}
		if len(common) == 0 {
			list := union(asked)
			return c, fault.Mistakef("--%s: waiting jobs ask for GPUs of the types %s; say which ones are added, as %s:%s",
				c.Name, few(list), strings.TrimPrefix(c.Name, "add "), list[0])
		}
		kind = slices.MinFunc(common, func(a, b string) int { return cmp.Or(have[b]-have[a], cmp.Compare(a, b)) })
		c.note = "The new GPUs are of type " + kind + ", which the queue asks for."
	case len(have) == 1 && len(untyped(&st.Spec)) == 0:
		for t := range have {
			kind = t
		}
	}
	if kind != add.GPUType {
		size, _, _ := strings.Cut(c.Name, ":")
		c.Name = size + ":" + kind
		add.GPUType = kind
		c.add = &add
	}
	return c, nil
}

// union returns the types of all lists, in order.
func union(lists [][]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// typesOf returns how many GPUs of each type there are.
func typesOf(s *cluster.Spec) map[string]int {
	n := map[string]int{}
	for i := range s.Racks {
		for _, x := range s.Racks[i].Nodes {
			if x.GPUType != "" && x.GPUs > 0 {
				n[x.GPUType] += s.Racks[i].Count.N() * x.Count.N() * x.GPUs
			}
		}
	}
	return n
}

// untyped returns the kinds of nodes whose GPUs have no type.
func untyped(s *cluster.Spec) (list []cluster.NodeSpec) {
	for i := range s.Racks {
		for _, x := range s.Racks[i].Nodes {
			if x.GPUType == "" && x.GPUs > 0 {
				list = append(list, x)
			}
		}
	}
	return list
}
