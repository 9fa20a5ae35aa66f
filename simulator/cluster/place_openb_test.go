package cluster_test

import (
	"compress/gzip"
	"encoding/csv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// openbRows reads one list of the openb cluster by column, if the file is available.
func openbRows(t testing.TB, name string) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "traces", "alibaba-gpu-2023", name))
	if err != nil {
		t.Skip("the lists of the openb cluster are not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	all, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, v := range row {
			m[all[0][i]] = v
		}
		rows = append(rows, m)
	}
	return rows
}

func atoi(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// openbCluster returns the 1,213 nodes that have GPUs.
func openbCluster(t testing.TB) *cluster.Cluster {
	spec := cluster.Spec{Racks: make([]cluster.RackSpec, 1)}
	for _, n := range openbRows(t, "openb_node_list_gpu_node.csv") {
		spec.Racks[0].Nodes = append(spec.Racks[0].Nodes, cluster.NodeSpec{GPUs: atoi(t, n["gpu"]), GPUType: n["model"],
			CPUs: float64(atoi(t, n["cpu_milli"])) / 1000, MemGB: float64(atoi(t, n["memory_mib"])) / 1024})
	}
	return mustNew(t, "", spec)
}

// openbPods returns the requests of one list of pods, without those that can never be placed.
func openbPods(t testing.TB, c *cluster.Cluster, list string) (pods []cluster.Request) {
	for _, p := range openbRows(t, list) {
		j := traces.Job{GPUs: atoi(t, p["num_gpu"]), GPUMilli: atoi(t, p["gpu_milli"]),
			CPUMilli: int64(atoi(t, p["cpu_milli"])),
			MemBytes: int64(atoi(t, p["memory_mib"])) << 20}
		if p["gpu_spec"] != "" {
			j.GPUTypes = strings.Split(p["gpu_spec"], "|")
		}
		if r, ok := c.Request(&j); ok {
			pods = append(pods, r)
		}
	}
	return pods
}

// inflated draws pods until they ask for share times the cluster's GPUs, as the FGD paper's experiments do.
func inflated(c *cluster.Cluster, pods []cluster.Request, share float64, seed uint64) (out []cluster.Request) {
	r := rand.New(rand.NewPCG(seed, 0))
	out = append(out, pods...)
	r.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	milli, most := 0, int(share*1000*float64(c.GPUs()))
	for i := 0; ; i++ {
		if i == len(out) {
			out = append(out, pods[r.IntN(len(pods))])
		}
		if milli += out[i].GPUs * out[i].Milli; milli > most {
			return out[:i]
		}
	}
}

// whole reports whether gpus are on one node: a pod cannot be split.
func whole(c *cluster.Cluster, gpus []cluster.GPU) bool {
	for _, g := range gpus {
		if c.NodeOf(g) != c.NodeOf(gpus[0]) {
			return false
		}
	}
	return true
}

// allocated returns the percentage of the cluster's GPUs in use after all pods that fit a node were placed, and the
// percentage when the first pod was refused.
func allocated(t testing.TB, c *cluster.Cluster, pods []cluster.Request, rule cluster.Placement) (end, first float64) {
	var gpus []cluster.GPU
	c.Reset()
	percent := func() float64 { return 100 - float64(c.FreeMilli())/10/float64(c.GPUs()) }
	first = -1
	for i := range pods {
		var ok bool
		if gpus, ok = rule.Place(c, &pods[i], gpus); ok && whole(c, gpus) {
			if err := c.Allocate(&pods[i], gpus); err != nil {
				t.Fatal(err)
			}
		} else if first < 0 {
			first = percent()
		}
	}
	return percent(), first
}

// With pods for 130 % of the GPUs, the authors' simulator allocates these percentages of them (means of ten runs, in
// its repository). It rounds the gradients to 100 grades and draws among the best, which allocates up to 0.7 more than
// breaking ties by the lowest number. FGD must come within 1.25 of theirs, random within 2.5, and FGD must beat both
// random and best-fit and refuse its first pod later. (worst-fit, which they do not have, allocates as much in the
// end, but refuses pods of 8 GPUs from the beginning.)
func TestFGDAllocatesWhatItsAuthorsReport(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a cluster twelve times")
	}
	for _, want := range []struct {
		list        string
		random, fgd float64
	}{
		{"cpu050", 91.24, 95.21},
		{"gpushare40", 86.00, 94.15},
		{"gpuspec10", 87.43, 94.95},
		{"multigpu20", 88.69, 95.65},
	} {
		c := openbCluster(t)
		pods := openbPods(t, c, "openb_pod_list_"+want.list+".csv.gz")
		all := inflated(c, pods, 1.3, 1)
		random, _ := allocated(t, c, all, cluster.NewRandom(1))
		fit, fitFirst := allocated(t, c, all, rule(t, "best-fit"))
		fgd, fgdFirst := allocated(t, c, all, cluster.NewFGD(cluster.Classes(pods)))
		t.Logf("%s, of %d pods: random allocates %.2f %% (the authors: %.2f), best-fit %.2f, refusing first at %.2f, FGD %.2f (%.2f), first at %.2f",
			want.list, len(all), random, want.random, fit, fitFirst, fgd, want.fgd, fgdFirst)
		if math.Abs(fgd-want.fgd) > 1.25 || math.Abs(random-want.random) > 2.5 {
			t.Errorf("%s: FGD and random allocate %.2f and %.2f %%, the authors report %.2f and %.2f", want.list, fgd, random,
				want.fgd, want.random)
		}
		if fgd <= fit || fgd <= random || fgdFirst < fitFirst {
			t.Errorf("%s: FGD %.2f (first refusal at %.2f), best-fit %.2f (%.2f), random %.2f", want.list, fgd, fgdFirst, fit,
				fitFirst, random)
		}
	}
}

// The openb cluster is filled from empty with its own pods.
func BenchmarkOpenb(b *testing.B) {
	c := openbCluster(b)
	pods := openbPods(b, c, "openb_pod_list_default_part1.csv.gz")
	all := inflated(c, pods, 1.3, 1)
	for _, name := range []string{"best-fit", "tetris", "random", "fgd", "fgd-learning"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var p cluster.Placement
				switch name {
				case "fgd":
					p = cluster.NewFGD(cluster.Classes(pods))
				case "fgd-learning":
					p = cluster.NewFGD(nil)
				default:
					p = rule(b, name)
				}
				allocated(b, c, all, p)
			}
			b.ReportMetric(float64(len(all)*b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}
