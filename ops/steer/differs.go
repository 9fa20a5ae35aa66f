package steer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clustergym/env"
	"clustergym/simulator/cluster"
)

// shapes counts the nodes of a cluster by GPUs and type.
func shapes(s *cluster.Spec) map[string]int {
	count := map[string]int{}
	for i := range s.Racks {
		for k := range s.Racks[i].Nodes {
			n := &s.Racks[i].Nodes[k]
			count[fmt.Sprintf("nodes of %d GPUs%s", n.GPUs, typed(n.GPUType))] += n.Count.N() * s.Racks[i].Count.N()
		}
	}
	return count
}

func typed(t string) string {
	if t == "" {
		return ""
	}
	return " of type " + t
}

// differs says in what a cluster differs from the one of a training; "" if in nothing that a policy sees. A training
// without types takes any.
func differs(trained, here *cluster.Spec) string {
	a, b := shapes(trained), shapes(here)
	untyped := true
	for k := range a {
		untyped = untyped && !strings.Contains(k, " of type ")
	}
	if untyped {
		bare := map[string]int{}
		for k, n := range b {
			k, _, _ = strings.Cut(k, " of type ")
			bare[k] += n
		}
		b = bare
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, k := range slices.Sorted(maps.Keys(both)) {
		if a[k] != b[k] {
			return fmt.Sprintf("%d %s there, %d here", a[k], k, b[k])
		}
	}
	return ""
}

// otherShape says in what observations or actions differ.
func otherShape(want, got env.Spec) string {
	if len(want.Obs) != len(got.Obs) || !slices.Equal(want.Action.Sizes, got.Action.Sizes) {
		return fmt.Sprintf("it was trained with observations of %s and actions of %v, and here are %s and %v", fields(want),
			want.Action.Sizes, fields(got), got.Action.Sizes)
	}
	for i := range want.Obs {
		if want.Obs[i].Name != got.Obs[i].Name || !slices.Equal(want.Obs[i].Shape, got.Obs[i].Shape) {
			return fmt.Sprintf("it was trained with observations %s of %v, and here are %s of %v", want.Obs[i].Name,
				want.Obs[i].Shape, got.Obs[i].Name, got.Obs[i].Shape)
		}
	}
	return ""
}

// fields names the parts of observations.
func fields(s env.Spec) string {
	var list []string
	for i := range s.Obs {
		list = append(list, s.Obs[i].Name)
	}
	return strings.Join(list, ", ")
}
