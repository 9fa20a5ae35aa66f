package encode

import (
	"testing"

	"clustergym/simulator/cluster"
)

// A slot's columns belong together, and a machine's: the largest number that divides all machines where they differ.
func TestColumnsFormGroups(t *testing.T) {
	machines := func(nodes ...cluster.NodeSpec) cluster.Spec {
		return cluster.Spec{Name: "test", Racks: []cluster.RackSpec{{Nodes: nodes}}}
	}
	for name, c := range map[string]struct {
		spec cluster.Spec
		want int
	}{
		"equal machines": {machines(cluster.NodeSpec{Count: 8, GPUs: 4}), 4},
		"2 of 8 GPUs and 3 of 4": {machines(cluster.NodeSpec{Count: 2, GPUs: 8, GPUType: "A100"},
			cluster.NodeSpec{Count: 3, GPUs: 4, GPUType: "V100"}), 4},
		"8 and 6":              {machines(cluster.NodeSpec{GPUs: 8}, cluster.NodeSpec{GPUs: 6}), 2},
		"8 and 3":              {machines(cluster.NodeSpec{GPUs: 8}, cluster.NodeSpec{GPUs: 3}), 1},
		"a counter":            {cluster.Spec{Name: "pool", Pool: 32}, 1},
		"a column per machine": {machines(cluster.NodeSpec{Count: 100, GPUs: 8}), 1},
	} {
		c2, err := cluster.New(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		im, err := NewImage(LogAxis(), c2, 10, 7, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range im.Fields() {
			want := map[string]int{"cluster": c.want, "queue": 7}[f.Name]
			if f.Group != want || want > 0 && f.Shape[1]%want != 0 {
				t.Errorf("%s: %s of shape %v has groups of %d, want %d", name, f.Name, f.Shape, f.Group, want)
			}
		}
	}
}

// Whether a slot holds a job is told by the first column of jobs.
func TestSlotsTellWhetherTheyAreFilled(t *testing.T) {
	c, err := cluster.New(cluster.Spec{Name: "pool", Pool: 32})
	if err != nil {
		t.Fatal(err)
	}
	im, err := NewImage(LogAxis(), c, 10, 7, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range im.Fields() {
		if want := map[string]int{"jobs": 1}[f.Name]; f.Filled != want {
			t.Errorf("%s: Filled is %d, want %d", f.Name, f.Filled, want)
		}
	}
}
