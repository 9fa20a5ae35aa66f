package steer

import (
	"strings"
	"testing"

	"clustergym/simulator/cluster"
)

// A cluster fits a training if it has as many nodes of the same GPUs. A training without types takes every type.
func TestDiffers(t *testing.T) {
	spec := func(nodes ...cluster.NodeSpec) *cluster.Spec {
		return &cluster.Spec{Racks: []cluster.RackSpec{{Nodes: nodes}}}
	}
	node := func(count, gpus int, kind string) cluster.NodeSpec {
		return cluster.NodeSpec{Count: cluster.Count(count), GPUs: gpus, GPUType: kind}
	}
	for _, x := range []struct {
		trained, here *cluster.Spec
		want          string
	}{
		{spec(node(4, 8, "")), spec(node(2, 8, ""), node(2, 8, "")), ""},
		{spec(node(4, 8, "")), spec(node(2, 8, "A100"), node(2, 8, "V100")), ""},
		{spec(node(4, 8, "A100")), spec(node(4, 8, "A100")), ""},
		{spec(node(4, 8, "A100")), spec(node(4, 8, "V100")), "4 nodes of 8 GPUs of type A100 there, 0 here"},
		{spec(node(4, 8, "A100")), spec(node(3, 8, "A100"), node(1, 8, "V100")),
			"4 nodes of 8 GPUs of type A100 there, 3 here"},
		{spec(node(4, 8, "A100")), spec(node(4, 8, "")), "0 nodes of 8 GPUs there, 4 here"},
		{spec(node(4, 8, "")), spec(node(4, 4, "")), "0 nodes of 4 GPUs there, 4 here"},
		{spec(node(4, 8, "")), spec(node(5, 8, "A100")), "4 nodes of 8 GPUs there, 5 here"},
	} {
		if got := differs(x.trained, x.here); got != x.want && !(x.want != "" && strings.Contains(got, x.want)) {
			t.Errorf("%+v, %+v: %q, want %q", x.trained.Racks, x.here.Racks, got, x.want)
		}
	}
}
