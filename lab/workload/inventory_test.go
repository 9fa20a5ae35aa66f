package workload

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
)

func TestListsOfMachinesAreClusters(t *testing.T) {
	t.Chdir(t.TempDir())
	node := func(count, gpus int, kind string, cpus, mem float64) cluster.NodeSpec {
		return cluster.NodeSpec{Count: cluster.Count(count), GPUs: gpus, GPUType: kind, CPUs: cpus, MemGB: mem}
	}
	for name, x := range map[string]struct {
		text string
		want cluster.Spec
	}{
		// Equal neighbours become one entry. The third a is not a neighbour of the others. The node without GPUs stays.
		"openb.csv": {"sn,cpu_milli,memory_mib,gpu,model\nn0,8000,30720,2,A\nn1,8000,30720,2,A\nn2,32500,262144,0,\nn3,8000,30720,2,A\n",
			cluster.Spec{Name: "openb",
				Racks: []cluster.RackSpec{
					{Count: 1, Nodes: []cluster.NodeSpec{node(2, 2, "A", 8, 30), node(1, 0, "", 32.5, 256),
						node(1, 2, "A", 8, 30)}}}}},
		// Two equal racks, then one of another size. Hosts of a rack need not be neighbours in the list.
		"topo.list.csv": {"ip,DSW,PSW,ASW\na,G,P,S1\nb,G,P,S2\nc,G,P,S1\nd,G,P,S2\ne,G,P,S0\n",
			cluster.Spec{Name: "topo", Racks: []cluster.RackSpec{{Count: 2, Nodes: []cluster.NodeSpec{node(2, 8, "", 0, 0)}},
				{Count: 1, Nodes: []cluster.NodeSpec{node(1, 8, "", 0, 0)}}}}},
		"vcs": {",num\nvcA,9\nvcNone,0\nvcB,2\n",
			cluster.Spec{Name: "vcs", Racks: []cluster.RackSpec{{Count: 1, Nodes: []cluster.NodeSpec{node(11, 8, "", 0, 0)}}},
				VCs: []cluster.VCSpec{{Name: "vcA", Nodes: 9}, {Name: "vcB", Nodes: 2}}}},
		"spec.csv": {"num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n3,4,8,64,256\n",
			cluster.Spec{Name: "spec",
				Racks: []cluster.RackSpec{{Count: 3, Nodes: []cluster.NodeSpec{node(4, 8, "", 64, 256)}}}}},
	} {
		if err := os.WriteFile(name, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create("packed-" + name)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		_, _ = z.Write([]byte(x.text)) // a disk failure shows when the file is read
		if err := errors.Join(z.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{name, "./" + name, "packed-" + name} {
			got, err := ClusterSpec(file)
			want := x.want
			if strings.HasPrefix(file, "packed-") {
				want.Name = "packed-" + want.Name
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v\n%+v\nwant\n%+v", file, err, got, want)
			}
		}
	}
}

func TestFaultyListsOfMachinesAreTheUsersMistake(t *testing.T) {
	t.Chdir(t.TempDir())
	const openb = "sn,cpu_milli,memory_mib,gpu,model\n"
	for name, x := range map[string]struct{ text, want string }{
		"cell.csv":  {openb + "a,1,1,x,A\n", `cell.csv:2: gpu: got "x", want`},
		"empty.csv": {openb, `empty.csv:1: got "no rows"`},
		"cpu.csv":   {openb + "a,1,1,0,\n", `cluster file cpu.csv: racks: got "0 GPUs in all", want 1 to`},
		"other.csv": {"a,b\n1,2\n", `other.csv`}, // read as YAML, and refused
	} {
		if err := os.WriteFile(name, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ClusterSpec(name)
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want a fault.Mistake with %q", name, err, x.want)
		}
	}
}

// The presets made from published lists have the machines of the lists, which are not part of the repository.
func TestPublishedListsOfMachinesAreTheirPresets(t *testing.T) {
	for file, preset := range map[string]string{
		"alibaba-gpu-2023/openb_node_list_all_node.csv": "openb-1523",
		"alibaba-pai-2020/pai_machine_spec.csv":         "pai-1897",
		"alibaba-spot-2026/node_info_df.csv":            "alibaba-spot-2026",
		"alibaba-lingjun-2023/topo.csv":                 "lingjun-847",
		"helios/venus_vc_config.csv":                    "helios-venus",
		"philly/philly_vc.csv":                          "philly-vcs",
	} {
		path := filepath.Join("..", "..", "..", "shared", "traces", file)
		if _, err := os.Stat(path); err != nil {
			t.Skip("published lists of machines not at hand: looked for in ../shared, beside this repository, of which it is no part")
		}
		got, err := ClusterSpec(path)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		want, err := ClusterSpec(preset)
		if err != nil {
			t.Fatal(err)
		}
		a, b := nodeKinds(got), nodeKinds(want)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s is\n%v\n%s is\n%v", file, a, preset, b)
		}
		if !reflect.DeepEqual(got.VCs, want.VCs) || !reflect.DeepEqual(rackSizes(got), rackSizes(want)) {
			t.Errorf("%s and %s differ in racks or virtual clusters", file, preset)
		}
	}
}

// nodeKinds counts the nodes of each kind. Presets may state the memory of GPUs, and the lists do not.
func nodeKinds(s cluster.Spec) map[string]int {
	kinds := map[string]int{}
	for _, r := range s.Racks {
		for _, n := range r.Nodes {
			count := r.Count.N() * n.Count.N()
			n.Count, n.GPUMemGB = 0, 0
			kinds[fmt.Sprintf("%+v", n)] += count
		}
	}
	return kinds
}

// rackSizes counts the racks by their number of nodes.
func rackSizes(s cluster.Spec) map[int]int {
	sizes := map[int]int{}
	for _, r := range s.Racks {
		nodes := 0
		for _, n := range r.Nodes {
			nodes += n.Count.N()
		}
		sizes[nodes] += r.Count.N()
	}
	return sizes
}

func TestFilesThatAreNoClustersAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"date,vcB,vcA,total\n2020-09-01,64,96,160\n": "this is Helios' list of the GPUs of each virtual cluster day by day, want its list of their nodes",
		"PAR1\x15\x04":    "this is a Parquet file",
		"<!DOCTYPE html>": "this is a web page",
		"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n": "git lfs pull",
	} {
		path := file(t, "c.csv", text)
		if _, err := ClusterSpec(path); err == nil || !strings.HasPrefix(err.Error(), "cluster file "+path+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
