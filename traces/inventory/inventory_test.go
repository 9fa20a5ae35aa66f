package inventory

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"clustergym/traces"
)

// made holds a small file of each format and what is in it.
var made = []struct {
	name, text string
	want       Inventory
}{
	{"openb", "sn,cpu_milli,memory_mib,gpu,model\nn0,32500,262144,0,\nn1,8000,30720,2,P100\n",
		Inventory{Format: "openb", Nodes: []Node{{Name: "n0", CPUs: 32.5, MemGB: 256},
			{Name: "n1", GPUType: "P100", GPUs: 2, CPUs: 8, MemGB: 30}}}},
	{"pai", "cap_gpu,machine,gpu_type,cap_cpu,cap_mem\n0,a,CPU,96,512\n8,b,MISC,96,384\n",
		Inventory{Format: "pai", Nodes: []Node{{Name: "a", CPUs: 96, MemGB: 512},
			{Name: "b", GPUType: "MISC", GPUs: 8, CPUs: 96, MemGB: 384}}}},
	{"spot", "gpu_model,gpu_capacity_num,cpu_num,node_name\nA10,1,128,0\nH800,8,192,1\n",
		Inventory{Format: "spot", Nodes: []Node{{Name: "0", GPUType: "A10", GPUs: 1, CPUs: 128},
			{Name: "1", GPUType: "H800", GPUs: 8, CPUs: 192}}}},
	{"lingjun", "ip,DSW,PSW,ASW\nff00,G6,P10,S14\n",
		Inventory{Format: "lingjun", Nodes: []Node{{Name: "ff00", Rack: "S14", Pod: "P10", Core: "G6"}}}},
	{"philly as shipped", "machineId, number of GPUs, single GPU mem\nm0,2, 12GB\nm1,8, 24GB\n",
		Inventory{Format: "philly", Nodes: []Node{{Name: "m0", GPUs: 2, GPUMemGB: 12}, {Name: "m1", GPUs: 8, GPUMemGB: 24}}}},
	{"philly revised", ",machineId,number of GPUs\n0,m0,8\n1,m1,0\n",
		Inventory{Format: "philly", Nodes: []Node{{Name: "m0", GPUs: 8}, {Name: "m1"}}}},
	{"tiresias", "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,1,4,128,254\n1,2,8,64,256\n",
		Inventory{Format: "tiresias",
			Nodes: []Node{{Name: "node0", Rack: "switch0", GPUs: 4, CPUs: 128, MemGB: 254},
				{Name: "node1", Rack: "switch1", GPUs: 4, CPUs: 128, MemGB: 254},
				{Name: "node2", Rack: "switch2", GPUs: 8, CPUs: 64, MemGB: 256},
				{Name: "node3", Rack: "switch2", GPUs: 8, CPUs: 64, MemGB: 256}}}},
	{"helios", ",num\nvcA,9\nvcB,0\n", Inventory{Format: "helios", VCs: []VC{{"vcA", 9}, {"vcB", 0}}}},
	{"philly-vc", "vc,node num\n6214e9,64\n", Inventory{Format: "philly-vc", VCs: []VC{{"6214e9", 64}}}},
}

func TestEveryFormatIsFoundAndRead(t *testing.T) {
	for _, c := range made {
		for how, in := range map[string]string{"as it is": c.text, "CR LF": strings.ReplaceAll(c.text, "\n", "\r\n"),
			"byte order mark, blank last line": "\ufeff" + c.text + "\n"} {
			got, err := Read(strings.NewReader(in), "t.csv")
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, %s: %v\n%+v\nwant\n%+v", c.name, how, err, got, c.want)
			}
			if !Sniff([]byte(in)) || got.GivesGPUs() == (c.name == "lingjun") {
				t.Errorf("%s, %s: not recognised", c.name, how)
			}
		}
	}
}

func TestAHeaderFitsOneFormatOnly(t *testing.T) {
	for i, f := range formats {
		if g := find(append(f.required[:len(f.required):len(f.required)], f.optional...)); g != &formats[i] {
			t.Errorf("%s with all columns is taken for %+v", f.name, g)
		}
		if find(f.required[1:]) != nil {
			t.Errorf("%s without %s is taken for something", f.name, f.required[0])
		}
		if find(append([]string{"other"}, f.required...)) != nil {
			t.Errorf("%s with another column is taken for something", f.name)
		}
	}
}

func TestFaultsSayWhereWhatAndWhatWouldBeRight(t *testing.T) {
	const (
		openb    = "sn,cpu_milli,memory_mib,gpu,model\n"
		shipped  = "machineId, number of GPUs, single GPU mem\n"
		tiresias = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"
	)
	for name, c := range map[string]struct{ text, want string }{
		"empty file": {"",
			`t.csv:1: got "", want the header of a list of machines: sn,cpu_milli,memory_mib,gpu,model (openb); or `},
		"another header":  {"a,b\n1,2\n", `t.csv:1: got "a,b", want the header of a list of machines`},
		"a column twice":  {"sn,sn\n", `t.csv:1: sn: got "sn", want each column once`},
		"no rows":         {openb, `t.csv:1: got "no rows", want at least one node or virtual cluster`},
		"a field missing": {openb + "a,1\n", `t.csv:2: got "2 fields", want 5`},
		"no name":         {openb + ",1,1,1,A\n", `t.csv:2: sn: got "", want a name`},
		"a name twice":    {openb + "a,1,1,1,A\na,1,1,1,A\n", `t.csv:3: sn: got "a", want each name once`},
		"negative cores":  {openb + "a,-1,1,1,A\n", `t.csv:2: cpu_milli: got "-1", want thousandths of a core`},
		"half a GPU":      {openb + "a,1,1,.5,A\n", `t.csv:2: gpu: got ".5", want a whole number of GPUs`},
		"absurd GPUs":     {openb + "a,1,1,65537,A\n", `t.csv:2: gpu: got "65537"`},
		"no switch":       {"ip,DSW,PSW,ASW\na,G,P,\n", `t.csv:2: ASW: got "", want the name of a switch`},
		"memory, no unit": {shipped + "m0,2, 12\n", `t.csv:2: single GPU mem: got " 12", want GB of each GPU, as in 12GB`},
		"memory in words": {shipped + "m0,2, someGB\n", `t.csv:2: single GPU mem: got " someGB", want GB`},
		"no switches": {tiresias + "0,1,1,1,1\n",
			`t.csv:2: num_switch: got "0", want a whole number of switches, 1 or more`},
		"too many nodes": {tiresias + "1048576,2,1,1,1\n",
			`t.csv:2: num_node_p_switch: got "2", want at most 1048576 nodes`},
		"VCs in words":     {",num\na,few\n", `t.csv:2: num: got "few", want a whole number of nodes`},
		"an open quote":    {openb + "\"a\n", `t.csv:2: got "\"a", want a closing quote`},
		"negative VC size": {"vc,node num\na,-1\n", `t.csv:2: node num: got "-1"`},
	} {
		_, err := Read(strings.NewReader(c.text), "t.csv")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range made {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		known := Sniff(b)
		v, err := Read(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		if !known || len(v.Nodes) > maxNodes || len(v.Nodes)+len(v.VCs) == 0 {
			t.Fatalf("recognised %v, %d nodes, %d VCs", known, len(v.Nodes), len(v.VCs))
		}
		for _, n := range v.Nodes {
			if n.Name == "" || n.GPUs < 0 || !(n.CPUs >= 0 && n.MemGB >= 0 && n.GPUMemGB >= 0) {
				t.Fatalf("%+v", n)
			}
		}
	})
}
