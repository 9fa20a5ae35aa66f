package traces

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestOrderByHand(t *testing.T) {
	g := &Graph{Tasks: make([]Task, 5),
		Edges: []Edge{{Parent: 3, Child: 0}, {Parent: 0, Child: 1}, {Parent: 3, Child: 1}, {Parent: 2, Child: 4}}}
	if got, ok := g.Order([]int32{9}); !ok || !slices.Equal(got, []int32{9, 2, 4, 3, 0, 1}) {
		t.Errorf("%v, %v", got, ok)
	}
	g.Edges = append(g.Edges, Edge{Parent: 1, Child: 0}) // 0 and 1 form a cycle
	if got, ok := g.Order(nil); ok || !slices.Equal(got, []int32{2, 4, 3}) {
		t.Errorf("%v, %v", got, ok)
	}
	if got, ok := (&Graph{}).Order(nil); !ok || got != nil {
		t.Errorf("%v, %v", got, ok)
	}
}

func TestOrderKeepsEveryEdge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		names := rapid.Permutation(seq(n)).Draw(t, "names")
		g := &Graph{Tasks: make([]Task, n)}
		for range rapid.IntRange(0, 30).Draw(t, "edges") {
			a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
			if a != b { // from smaller to larger, so there is no cycle
				g.Edges = append(g.Edges, Edge{Parent: names[min(a, b)], Child: names[max(a, b)]})
			}
		}
		order, ok := g.Order(nil)
		if !ok || len(order) != n {
			t.Fatalf("%v, %v", order, ok)
		}
		for _, e := range g.Edges {
			if slices.Index(order, e.Parent) >= slices.Index(order, e.Child) {
				t.Fatalf("%v breaks %v", order, e)
			}
		}
		if len(g.Edges) > 0 {
			e := g.Edges[0]
			g.Edges = append(g.Edges, Edge{Parent: e.Child, Child: e.Parent})
			if _, ok := g.Order(nil); ok {
				t.Fatal("a cycle is not seen")
			}
		}
	})
}

func seq(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}
