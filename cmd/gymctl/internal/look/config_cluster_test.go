package look_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/lab/workload"
)

const mixedCluster = `name: mixed
racks:
  - count: 2
    uplink: {gbps: 100, latency: 2us}
    nodes:
      - {count: 3, gpus: 8, gpu_type: H100, gpu_mem_gb: 80, cpus: 96, mem_gb: 1024, link: {class: nvlink, gbps: 900}, nic: {class: infiniband}}
      - {gpus: 1, gpu_type: T4}
  - nodes:
      - {count: 2, gpus: 0, cpus: 64}
speeds: {T4: 0.25}
vcs:
  - {name: research, nodes: 4}
  - {name: products, quota: 20}
  - {name: guests}
`

func TestClustersAreShownAsTrees(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "mixed.yaml", mixedCluster)
	clitest.Write(t, "quotas.yaml", "pool: 64\nvcs: [{name: a, quota: 32}, {name: b}]\n")
	// Racks 0, 1 and 3 are equal although not adjacent; so are the first and the last node of rack 2.
	clitest.Write(t, "list.csv",
		"num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n2,1,4,8,16\n1,2,2,8,16\n1,1,4,8,16\n")
	clitest.Write(t, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\na,8000,1024,1,A\nb,16500,512,0,\nc,8000,1024,1,A\n")
	clitest.Write(t, "split.yaml",
		"racks: [{nodes: [{count: 6, gpus: 1, cpus: 4, mem_gb: 0.5}]}]\nvcs: [{name: a, nodes: 5}]\n")
	var all strings.Builder
	for _, c := range []string{"mixed.yaml", "topdrl-2x4x4", "6x8", "dally:2x1", "pool:256", "quotas.yaml", "list.csv",
		"nodes.csv", "split.yaml"} {
		all.WriteString(clitest.Must(t, "config", "show", "--cluster", c) + "\n")
	}
	want := `mixed: 3 racks, 10 nodes, 50 GPUs
├─ racks 0–1 (2 equal): 4 nodes, 25 GPUs of 2 types each, uplink 100 Gbit/s 2µs
│  ├─ 3 nodes  8 × H100 of 80 GiB  96 cores  1024 GiB
│  │           between GPUs nvlink 900 Gbit/s; to the rack infiniband
│  └─ 1 node   1 × T4
└─ rack 2: 2 nodes, no GPUs
   └─ 2 nodes  no GPUs             64 cores

GPU type  nodes  GPUs  speed
--------  -----  ----  -----
H100          6    48      1
T4            2     2   0.25

virtual cluster  nodes   which  GPUs  quota
---------------  -----  ------  ----  -----
research             4     0–3    25      -
products             -  shared     -     20
guests               -  shared     -      -
(shared)             6     4–9    25      -

topdrl-2x4x4: 2 racks, 8 nodes, 32 GPUs
└─ racks 0–1 (2 equal): 4 nodes, 16 GPUs P100 each, uplink peer-to-peer
   └─ 4 nodes  4 × P100
               between GPUs nvlink; to the rack infiniband

6x8: 1 rack, 6 nodes, 48 GPUs
└─ rack 0: 6 nodes, 48 GPUs
   └─ 6 nodes  8 GPUs

dally:2x1: 2 racks, 2 nodes, 16 GPUs
└─ racks 0–1 (2 equal): 1 node, 8 GPUs each, uplink switch 3200 Gbit/s 50µs
   └─ 1 node   8 GPUs
               between GPUs nvlink 4800 Gbit/s 500ns; to the rack ring 1600 Gbit/s 5µs

pool:256: a plain counter of 256 GPUs or processors

quotas: a plain counter of 64 GPUs or processors

virtual cluster  quota
---------------  -----
a                   32
b                    -

list: 4 racks, 5 nodes, 16 GPUs, 40 cores, 80 GiB
├─ racks 0–1, 3 (3 equal): 1 node, 4 GPUs each
│  └─ 1 node   4 GPUs  8 cores  16 GiB
└─ rack 2: 2 nodes, 4 GPUs
   └─ 2 nodes  2 GPUs  8 cores  16 GiB

nodes: 1 rack, 3 nodes, 2 GPUs, 32.5 cores, 2.5 GiB
└─ rack 0: 3 nodes, 2 GPUs A
   ├─ 2 nodes  1 × A       8 cores    1 GiB
   └─ 1 node   no GPUs  16.5 cores  0.5 GiB

split: 1 rack, 6 nodes, 6 GPUs, 24 cores, 3 GiB
└─ rack 0: 6 nodes, 6 GPUs
   └─ 6 nodes  1 GPU  4 cores  0.5 GiB

virtual cluster  nodes  which  GPUs
---------------  -----  -----  ----
a                    5    0–4     5
(nobody's)           1      5     1

`
	if all.String() != want {
		t.Errorf("got\n%s\nwant\n%s", all.String(), want)
	}
}

func TestClustersInJSONHaveTotalsAndResolvedLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "mixed.yaml", mixedCluster)
	out := clitest.Must(t, "config", "show", "--cluster", "mixed.yaml", "--json")
	want := `{"name":"mixed","pool":false,"racks":3,"nodes":10,"gpus":50,"cpus":0,"mem_gb":0,"by_type":[{"gpu_type":"H100","nodes":6,"gpus":48,"speed":1},` +
		`{"gpu_type":"T4","nodes":2,"gpus":2,"speed":0.25}],"vcs":[{"name":"research","first":0,"nodes":4,"gpus":25,"quota":0},` +
		`{"name":"products","first":0,"nodes":0,"gpus":0,"quota":20},{"name":"guests","first":0,"nodes":0,"gpus":0,"quota":0}],` +
		`"shared":{"first":4,"nodes":6,"gpus":25},"tree":[{"count":2,"uplink":{"class":"","gbps":100,"latency_us":2,"stated":true},"nodes":[` +
		`{"count":3,"gpus":8,"gpu_type":"H100","gpu_mem_gb":80,"cpus":96,"mem_gb":1024,"link":{"class":"nvlink","gbps":900,"latency_us":0.5,"stated":false},` +
		`"nic":{"class":"infiniband","gbps":100,"latency_us":5,"stated":false}},` +
		`{"count":1,"gpus":1,"gpu_type":"T4","gpu_mem_gb":0,"cpus":0,"mem_gb":0,"link":{"class":"pcie","gbps":126,"latency_us":1,"stated":false},` +
		`"nic":{"class":"ethernet","gbps":10,"latency_us":50,"stated":false}}]},{"count":1,"uplink":{"class":"","gbps":20,"latency_us":50,"stated":false},` +
		`"nodes":[{"count":2,"gpus":0,"gpu_type":"","gpu_mem_gb":0,"cpus":64,"mem_gb":0,"link":{"class":"pcie","gbps":126,"latency_us":1,"stated":false},` +
		`"nic":{"class":"ethernet","gbps":10,"latency_us":50,"stated":false}}]}]}` + "\n"
	if out != want {
		t.Errorf("got %swant %s", out, want)
	}
	// The racks have 3·100 + 10 and 2·10 Gbit/s of NICs; an uplink that is not stated carries them all.
	var d look.ClusterDocument
	clitest.Strict(t, clitest.Must(t, "config", "show", "--cluster", "pool:7", "--json"), &d)
	if !d.Pool || d.GPUs != 7 || len(d.Tree) != 0 || d.Shared.GPUs != 7 || d.Racks != 0 || d.Nodes != 0 ||
		d.Shared.Nodes != 0 {
		t.Errorf("a counter is %+v", d)
	}
}

// Every preset fits a window of 90 columns, and the numbers in its tree and tables add up.
func TestEveryClusterIsShownInFull(t *testing.T) {
	clitest.OneGoroutine(t)
	for _, name := range append(workload.ClusterPresets(), "dally:4x4") {
		out := clitest.Must(t, "config", "show", "--cluster", name)
		var d look.ClusterDocument
		clitest.Strict(t, clitest.Must(t, "config", "show", "--cluster", name, "--json"), &d)
		nodes, inTree := 0, 0
		for _, r := range d.Tree {
			for _, n := range r.Nodes {
				inTree += r.Count * n.Count
			}
		}
		racks := 1
		for line := range strings.Lines(out) {
			if w := utf8.RuneCountInString(line) - 1; w > 90 {
				t.Errorf("%s: a line of %d columns: %s", name, w, line)
			}
			body := strings.TrimLeft(line, "│├└─ ")
			if body == line {
				continue // totals and tables
			}
			if strings.HasPrefix(body, "rack") {
				racks = 1
				if _, rest, ok := strings.Cut(body, "("); ok {
					racks, _ = strconv.Atoi(strings.Fields(rest)[0]) // a wrong number shows in the sum below
				}
			} else if n, err := strconv.Atoi(strings.Fields(body)[0]); err == nil {
				nodes += racks * n
			}
		}
		if nodes != d.Nodes || inTree != d.Nodes || !strings.HasPrefix(out, name+": ") {
			t.Errorf("%s: %d nodes, %d in the tree, %d drawn\n%s", name, d.Nodes, inTree, nodes, out)
		}
	}
}

func TestConfigCheckNamesEveryFaultOfACluster(t *testing.T) {
	t.Chdir(t.TempDir())
	clitest.Write(t, "bad.yaml", `name: bad
racks:
  - count: 0
    uplink: {gbps: -1}
    nodes:
      - {count: 2, gpus: 8, gpu_type: A100, cpus: -4}
      - gpus: 9999
        nic: {latency: fast}
        link: {gbps: 1e12}
  - nodes: []
speeds:
  V100: 0.5
  A100: 0
vcs:
  - name: a
    nodes: 2
  - name: a
    quota: 4
    nodes: 1
  - nodes: 7
  - {name: c, quota: -3, limit: 2}
`)
	code, out, said := clitest.Run(t, "config", "check", "bad.yaml")
	want := []string{
		`bad.yaml:3: racks[0].count: got 0, want 1 or more (left out = 1)`,
		`bad.yaml:4: racks[0].uplink.gbps: got -1, want 0 to 1e9 Gbit/s, 0 = not stated`,
		`bad.yaml:6: racks[0].nodes[0].cpus: got -4, want 0 to 1048576 cores, 0 = not limited`,
		`bad.yaml:7: racks[0].nodes[1].gpus: got 9999, want 0 to 1024`,
		`bad.yaml:8: racks[0].nodes[1].nic.latency: got "fast", want a duration as "40s" or "1h30m"`,
		`bad.yaml:9: racks[0].nodes[1].link.gbps: got 1e+12, want 0 to 1e9 Gbit/s, 0 = not stated`,
		`bad.yaml:10: racks[1].nodes: got "none", want a list of nodes`,
		`bad.yaml:12: speeds.V100: got 0.5, want the type of some node: A100`,
		`bad.yaml:13: speeds.A100: got 0, want a positive factor, 1 = the reference GPU`,
		`bad.yaml:17: vcs[1].name: got "a", want a name of its own: vcs[0] has this one`,
		`bad.yaml:18: vcs[1].quota: got 4, want none beside nodes: a virtual cluster has nodes of its own or a quota`,
		`bad.yaml:20: vcs[2].name: got "", want a name, as jobs call it`,
		`bad.yaml:20: vcs[2].nodes: got 7, want 0 to 0: of 3 nodes, the virtual clusters before it own 3`,
		`bad.yaml:21: vcs[3].limit: unknown key; known are name, nodes, quota`,
		`bad.yaml:21: vcs[3].quota: got -3, want 0 to 16777216 GPUs, 0 = not limited`,
	}
	if code != cli.ExitMistake || out != "" {
		t.Errorf("exit code %d, printed %q", code, out)
	}
	for _, w := range want {
		if !strings.Contains(said, "gymctl: "+w) {
			t.Errorf("%q is missing in\n%s", w, said)
		}
	}
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "gymctl: bad.yaml:") {
			t.Errorf("a fault without file and line: %s", line)
		}
	}
	// Both ways of reading the file report the same faults.
	if _, err := workload.ClusterSpec("bad.yaml"); err == nil ||
		len(strings.Split(err.Error(), "\n")) != strings.Count(said, "\n") {
		t.Errorf("as a cluster: %v", err)
	}
}

// Published lists of machines are displayed like any cluster; they are not part of the repository.
func TestPublishedListsOfMachinesAreShown(t *testing.T) {
	for file, want := range map[string]string{
		"alibaba-gpu-2023/openb_node_list_all_node.csv": "openb_node_list_all_node: 1 rack, 1523 nodes, 6212 GPUs, 125514 cores, 597684 GiB\n",
		"alibaba-lingjun-2023/topo.csv":                 "topo: 48 racks, 847 nodes, 6776 GPUs\n",
		"philly/cluster_machine_list.csv":               "cluster_machine_list: 1 rack, 552 nodes, 2490 GPUs\n",
	} {
		path := filepath.Join("..", "..", "..", "..", "..", "shared", "traces", file)
		if _, err := os.Stat(path); err != nil {
			t.Skip("published lists of machines not at hand: looked for in ../shared, beside this repository, of which it is no part")
		}
		out := clitest.Must(t, "config", "show", "--cluster", path)
		if !strings.HasPrefix(out, want) || strings.Count(out, "\n") > 60 {
			t.Errorf("%s is shown as\n%s", file, out)
		}
		for line := range strings.Lines(out) {
			if w := utf8.RuneCountInString(line) - 1; w > 90 {
				t.Errorf("%s: a line of %d columns: %s", file, w, fmt.Sprintf("%.40s", line))
			}
		}
	}
}
