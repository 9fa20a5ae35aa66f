package inventory_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"clustergym/traces"
	"clustergym/traces/inventory"
)

var recorded = filepath.Join("..", "..", "..", "shared", "traces")

// published reads a file that is not part of the repository.
func published(tb testing.TB, path string) inventory.Inventory {
	tb.Helper()
	f, err := traces.OpenFile(filepath.Join(recorded, path))
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip("published lists of machines not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	v, err := inventory.Read(f, filepath.Base(path))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func TestPublishedListsHaveTheirMachines(t *testing.T) {
	for _, c := range []struct {
		path, format       string
		nodes, gpus, racks int
		kinds              map[string]int // nodes by type x GPUs; nil = not looked at
	}{
		{"alibaba-gpu-2023/openb_node_list_all_node.csv", "openb", 1523, 6212, 1,
			map[string]int{"x0": 310, "G2x8": 549, "T4x2": 387, "T4x4": 17, "P100x2": 131, "P100x1": 3,
				"G3x8": 39, "V100M16x4": 28, "V100M16x1": 19, "V100M16x8": 8, "V100M32x8": 21, "V100M32x4": 9, "A10x1": 2}},
		{"alibaba-gpu-2023/openb_node_list_gpu_node.csv", "openb", 1213, 6212, 1, nil},
		{"alibaba-pai-2020/pai_machine_spec.csv", "pai", 1897, 6742, 1,
			map[string]int{"P100x2": 798, "T4x2": 497, "MISCx8": 280, "V100M32x8": 135, "V100x8": 104, "x0": 83}},
		{"alibaba-spot-2026/node_info_df.csv", "spot", 4278, 2494 + 902 + 40 + 77*8 + (432+219+122+22)*8, 1,
			map[string]int{"A10x1": 2494, "GPU-series-1x1": 902,
				"GPU-series-1x4": 10, "GPU-series-1x8": 77, "A100-SXM4-80GBx8": 432, "H800x8": 219, "GPU-series-2x8": 122,
				"A800-SXM4-80GBx8": 22}},
		{"alibaba-lingjun-2023/topo.csv", "lingjun", 847, 0, 48, nil},
		{"philly/cluster_machine_list.csv", "philly", 552, 321*2 + 231*8, 1, map[string]int{"x2": 321, "x8": 231}},
		{"philly/revised_machine_list.csv", "philly", 552, 271*4 + 264*8 + 3*2 + 3, 1,
			map[string]int{"x4": 271, "x8": 264, "x0": 13, "x2": 3, "x3": 1}},
		{"tiresias/cluster_spec.csv", "tiresias", 16, 64, 1, map[string]int{"x4": 16}},
		{"tiresias/n160g8.csv", "tiresias", 160, 1280, 5, map[string]int{"x8": 160}},
		{"tiresias/n32g4.csv", "tiresias", 32, 128, 1, map[string]int{"x4": 32}},
	} {
		v := published(t, c.path)
		gpus, racks, kinds := 0, map[string]bool{}, map[string]int{}
		for _, n := range v.Nodes {
			gpus += n.GPUs
			racks[n.Rack] = true
			kinds[fmt.Sprintf("%sx%d", n.GPUType, n.GPUs)]++
			if want := map[int]float64{2: 12, 8: 24}[n.GPUs]; c.path == "philly/cluster_machine_list.csv" && n.GPUMemGB != want {
				t.Fatalf("%s: %+v", c.path, n)
			}
		}
		if v.Format != c.format || len(v.Nodes) != c.nodes || gpus != c.gpus || len(racks) != c.racks || len(v.VCs) != 0 {
			t.Errorf("%s: %s, %d nodes, %d GPUs, %d racks", c.path, v.Format, len(v.Nodes), gpus, len(racks))
		}
		if c.kinds != nil && fmt.Sprint(kinds) != fmt.Sprint(c.kinds) {
			t.Errorf("%s: %v\nwant %v", c.path, kinds, c.kinds)
		}
	}
}

func TestPublishedVirtualClustersHaveTheirNodes(t *testing.T) {
	for _, c := range []struct {
		path, format string
		vcs, nodes   int
		first        inventory.VC
	}{
		{"helios/venus_vc_config.csv", "helios", 15, 135, inventory.VC{Name: "vcEwI", Nodes: 9}},
		{"philly/philly_vc.csv", "philly-vc", 9, 304, inventory.VC{Name: "6214e9", Nodes: 64}},
	} {
		v := published(t, c.path)
		nodes := 0
		for _, vc := range v.VCs {
			nodes += vc.Nodes
		}
		if v.Format != c.format || len(v.VCs) != c.vcs || nodes != c.nodes || len(v.Nodes) != 0 || v.VCs[0] != c.first {
			t.Errorf("%s: %s, %d VCs of %d nodes, first %v", c.path, v.Format, len(v.VCs), nodes, v.VCs[0])
		}
	}
}
