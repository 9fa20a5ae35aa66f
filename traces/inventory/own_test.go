package inventory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/traces"
)

func fileOf(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name)) //nolint:gosec // of these tests
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// told says of each node what was read.
func told(nodes []Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, fmt.Sprintf("%s %dx%s %gc %.0fG %s/%s %s", n.Name, n.GPUs, n.GPUType, n.CPUs, n.MemGB, n.Pod, n.Rack,
			strings.Join(n.Partitions, ",")))
	}
	return strings.Join(all, "\n")
}

const ofLab = `g1 8xa100 128c 1007G / gpu
g2 8xa100 128c 1007G / gpu,debug
h01 4xH100 192c 1511G / gpu
c1 0x 64c 251G / cpu`

func TestListsOfTheClustersOwnPrograms(t *testing.T) {
	for name, c := range map[string]struct{ text, format, want string }{
		"sinfo -N -o":          {fileOf(t, "sinfo.txt"), "sinfo", ofLab},
		"scontrol show node":   {fileOf(t, "scontrol.txt"), "scontrol", ofLab},
		"slurm.conf":           {fileOf(t, "slurm.conf"), "scontrol", ofLab},
		"with bars":            {strings.ReplaceAll(fileOf(t, "sinfo.txt"), " ", "|"), "sinfo", ofLab},
		"with CR LF":           {strings.ReplaceAll(fileOf(t, "sinfo.txt"), "\n", "\r\n"), "sinfo", ofLab},
		"twice":                {fileOf(t, "sinfo.txt") + fileOf(t, "sinfo.txt"), "sinfo", ofLab},
		"columns, other order": {"GRES NODELIST\ngpu:8 g[1-2]\n", "sinfo", "g1 8x 0c 0G / \ng2 8x 0c 0G / "},
		"-o without -N": {"PARTITION NODES NODELIST GRES CPUS(A/I/O/T) MEMORY\ngpu* 2 g[1-2] gpu:v100:4 0/64/0/64 257000+\n",
			"sinfo", "g1 4xv100 64c 251G / gpu\ng2 4xv100 64c 251G / gpu"},
		"-l with a date": {"Fri Mar 01 10:00:00 2024\nNODELIST   NODES PARTITION STATE CPUS MEMORY GRES REASON\n" +
			"g1  1  gpu*  drained 64 257000 gpu:v100:4 Not responding\n", "sinfo", "g1 4xv100 64c 251G / gpu"},
		"-O": {"HOSTNAMES           GRES                CPUS                \n" +
			"g1                  gpu:2               16                  \n", "sinfo", "g1 2x 16c 0G / "},
		"a type with a colon":      {"NODELIST GRES\ng1 gpu:nvidia:a100:2\n", "sinfo", "g1 2xnvidia:a100 0c 0G / "},
		"GPUs without a number":    {"NODELIST GRES\ng1 gpu\n", "sinfo", "g1 1x 0c 0G / "},
		"types that come in parts": {"NODELIST GRES\ng1 gpu:a100:2(S:0),gpu:a100:2(S:1,3)\n", "sinfo", "g1 4xa100 0c 0G / "},
		"kubectl": {fileOf(t, "nodes.json"), "kubernetes", "g1 8xNVIDIA-A100-SXM4-80GB 128c 1007G /r1 \n" +
			"t1 4xTesla-T4 32c 128G /z2 \ncontrol 0x 8c 16G / "},
		"one node of kubectl": {`{"kind":"Node","metadata":{"name":"a"},"status":{"capacity":{"amd.com/gpu":"8"}}}`,
			"kubernetes", "a 8x 0c 0G / "},
		"scontrol --json": {`{"nodes": [{"name": "g1", "cpus": 64, "real_memory": {"set": true, "number": 1024}, "gres": "gpu:8", ` +
			`"partitions": ["gpu"]}, {"name": "c1", "cpus": "8", "gres": ""}]}`, "scontrol", "g1 8x 64c 1G / gpu\nc1 0x 8c 0G / "},
		"topology.conf": {fileOf(t, "topology.conf"), "topology", "g1 0x 0c 0G spine/leaf1 \ng2 0x 0c 0G spine/leaf1 \n" +
			"h01 0x 0c 0G spine/leaf2 \nc1 0x 0c 0G spine/leaf2 "},
		"scontrol show topology": {"SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=g[1-2]\n" +
			"SwitchName=spine Level=1 LinkSpeed=1 Nodes=g[1-2] Switches=leaf1\n", "topology",
			"g1 0x 0c 0G spine/leaf1 \ng2 0x 0c 0G spine/leaf1 "},
	} {
		got, err := Read(strings.NewReader(c.text), "t.txt")
		if err != nil || got.Format != c.format || told(got.Nodes) != c.want {
			t.Errorf("%s: %v, %s\n%s\nwant\n%s", name, err, got.Format, told(got.Nodes), c.want)
		}
		if !Sniff([]byte(c.text)) || !got.Own() || Mistaken([]byte(c.text)) != "" || got.Topology() != (c.format == "topology") {
			t.Errorf("%s: not recognised, %q", name, Mistaken([]byte(c.text)))
		}
	}
}

func TestRacksOfAList(t *testing.T) {
	read := func(name string) Inventory {
		v, err := Read(strings.NewReader(fileOf(t, name)), name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	nodes, topo := read("sinfo.txt"), read("topology.conf")
	got, err := nodes.Racked(&topo)
	want := strings.NewReplacer("G / gpu", "G spine/leaf1 gpu").Replace(ofLab)
	want = strings.Replace(want, "1511G spine/leaf1", "1511G spine/leaf2", 1)
	want = strings.Replace(want, "251G / cpu", "251G spine/leaf2 cpu", 1)
	if err != nil || told(got.Nodes) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, told(got.Nodes), want)
	}
	topo.Nodes = []Node{{Name: "x"}, {Name: "y"}}
	if _, err = nodes.Racked(&topo); err == nil ||
		!strings.Contains(err.Error(), "the list has g1, g2, h01, …, and the switches have x, y") {
		t.Error(err)
	}
}

func TestFaultsOfTheClustersOwnPrograms(t *testing.T) {
	cut := fileOf(t, "nodes.json")
	for name, c := range map[string]struct{ text, want string }{
		"no GRES": {"Fri Mar 01 10:00:00 2024\nNODELIST NODES PARTITION STATE CPUS S:C:T MEMORY TMP_DISK WEIGHT AVAIL_FE REASON\n" +
			"g1 1 gpu* idle 128 2:32:2 1031500 0 1 a100 none\n",
			`t.txt:2: no column GRES, so it is not known which nodes have GPUs, and how many; use what sinfo -N -o "%N %G %c`},
		"no GPUs":         {"NODELIST GRES\nc1 (null)\nc2 (null)\n", "t.txt:3: none of its 2 nodes has GPUs; use a list"},
		"no rows":         {"NODELIST GRES\n", "t.txt:1: there are no nodes in it"},
		"a field missing": {"NODELIST GRES CPUS\ng1 gpu:8\n", `t.txt:2: got "2 fields", want 3, as in the header`},
		"a field more":    {"NODELIST GRES CPUS\ng1 gpu:8 4 5\n", `t.txt:2: got "4 fields", want 3, as in the header`},
		"odd GPUs":        {"NODELIST GRES\ng1 gpu:a100:many\n", `t.txt:2: GRES: got "gpu:a100:many", want generic resources as`},
		"two types": {"NODELIST GRES\ng1 gpu:a100:4,gpu:v100:4\n",
			`t.txt:2: GRES: got "gpu:a100:4,gpu:v100:4", want GPUs of one type on each node`},
		"cut at 20 letters": {"HOSTNAMES           GRES                \ng1                  gpu:nvidia_a100_80gb\n",
			"want generic resources that sinfo has not cut at 20 letters"},
		"too many GPUs": {"NODELIST GRES\ng1 gpu:99999\n", `GRES: got "gpu:99999", want at most 65536 GPUs`},
		"odd list":      {"NODELIST GRES\ng[1-x] gpu:8\n", `t.txt:2: NODELIST: got "g[1-x]", want the name of a node, or a list`},
		"odd cores":     {"NODELIST GRES CPUS\ng1 gpu:8 many\n", `t.txt:2: CPUS: got "many", want a number of cores`},
		"odd memory":    {"NODELIST GRES MEMORY\ng1 gpu:8 64G\n", `t.txt:2: MEMORY: got "64G", want memory in MB`},
		"two sizes": {"NODELIST GRES PARTITION\ng1 gpu:8 a\ng1 gpu:4 b\n",
			"t.txt:3: node g1 has 4 GPUs here and 8 GPUs in a row before"},
		"scontrol, odd GPUs":   {"NodeName=g1\n   Gres=gpu:a100:x\n", `t.txt:1: Gres: got "gpu:a100:x", want generic`},
		"scontrol, no GPUs":    {"NodeName=g1 CPUTot=4 Gres=(null)\n", "t.txt:1: none of its 1 nodes has GPUs"},
		"a switch without":     {"SwitchName=a\n", `t.txt:1: SwitchName: got "a", want a switch with Nodes= or Switches=`},
		"a node on two":        {"SwitchName=a Nodes=g1\nSwitchName=b Nodes=g[1-2]\n", "t.txt:2: Nodes: got \"g1\", want each node on one"},
		"switches without":     {"SwitchName=a Switches=b\n", "t.txt:1: no switch has nodes"},
		"JSON cut off":         {cut[:len(cut)/2], ": the JSON ends in the middle; use the whole output of kubectl get nodes -o json"},
		"JSON, odd":            {strings.Replace(cut, `"items": [`, `"items": {`, 1), ": this is no JSON"},
		"JSON, odd kind":       {`{"kind": "NodeList", "items": 5}`, "items is a JSON number, and should be what kubectl get nodes"},
		"kubernetes, no GPUs":  {`{"kind": "NodeList", "items": [{"kind": "Node", "metadata": {"name": "a"}}]}`, "none of its 1 nodes has GPUs"},
		"kubernetes, no nodes": {`{"kind": "NodeList", "items": []}`, "there are no nodes in it; use what kubectl get nodes -o json prints"},
		"kubernetes, odd GPUs": {`{"kind": "Node", "metadata": {"name": "a"}, "status": {"capacity": {"nvidia.com/gpu": "x"}}}`, `capacity of nvidia.com/gpu: got "x"`},
	} {
		_, err := Read(strings.NewReader(c.text), "t.txt")
		var re *traces.RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "t.txt:") {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"g1 gpu:a100:8(S:0-1) 128 1031500 a100 gpu*\n":                                  "rows of sinfo without its header",
		"NAME   STATUS   ROLES    AGE   VERSION\ng1   Ready    <none>   1d   v1.30.0\n": "use what kubectl get nodes -o json",
		"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\nkind: List\n":          "nodes of Kubernetes as YAML",
		`{"sinfo": [{"node": {"state": "IDLE"}}]}`:                                      "what sinfo --json prints",
		"racks:\n  - nodes: [{gpus: 8, gpu_type: a100}]\n":                              "",
		"name: x\n": "",
	} {
		if got := Mistaken([]byte(text)); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzOwn(f *testing.F) {
	for _, name := range []string{"sinfo.txt", "scontrol.txt", "slurm.conf", "topology.conf", "nodes.json"} {
		f.Add([]byte(fileOf(f, name)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Mistaken(b)
		v, err := Read(strings.NewReader(string(b)), "f")
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, n := range v.Nodes {
			if n.Name == "" || v.Own() && seen[n.Name] || n.GPUs < 0 || n.GPUs > maxGPUs || !(n.CPUs >= 0 && n.MemGB >= 0) {
				t.Fatalf("%+v", n)
			}
			seen[n.Name] = true
		}
	})
}
