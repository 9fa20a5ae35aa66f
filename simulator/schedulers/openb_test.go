package schedulers_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
	"clustergym/traces/openb"
)

const openbFolder = "../../../shared/traces/alibaba-gpu-2023"

// crowded returns, if they are available, the 1,213 GPU nodes of Alibaba's openb cluster and its pods five times
// over, all at once and with invented run times: thirty thousand wait, with hundreds of kinds of requests.
func crowded(b *testing.B) (cluster.Spec, []traces.Job) {
	b.Helper()
	f, err := os.Open(filepath.Join(openbFolder, "openb_node_list_gpu_node.csv"))
	if err != nil {
		b.Skip("the openb cluster is not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		b.Fatal(err)
	}
	var rack cluster.RackSpec
	for _, r := range rows[1:] {
		num := func(i int) float64 {
			v, err := strconv.ParseFloat(r[i], 64)
			if err != nil {
				b.Fatal(err)
			}
			return v
		}
		rack.Nodes = append(rack.Nodes,
			cluster.NodeSpec{CPUs: num(1) / 1000, MemGB: num(2) / 1024, GPUs: int(num(3)), GPUType: r[4]})
	}
	const pods = "openb_pod_list_default_part1.csv.gz"
	g, err := traces.OpenFile(filepath.Join(openbFolder, pods))
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	reader, err := openb.NewReader(g, pods, openb.Options{Static: true})
	if err != nil {
		b.Fatal(err)
	}
	all, err := traces.ReadAll(reader)
	if err != nil {
		b.Fatal(err)
	}
	var jobs []traces.Job
	for k := range 5 {
		for i, j := range all {
			j.ID = fmt.Sprint(j.ID, "/", k)
			j.Work = time.Duration(1+(7919*k+i*i)%9973) * second
			jobs = append(jobs, j)
		}
	}
	return cluster.Spec{Racks: []cluster.RackSpec{rack}}, jobs
}

// BenchmarkManyKinds plays pods with shares, types, cores and memory on a crowded cluster.
func BenchmarkManyKinds(b *testing.B) {
	for _, c := range []struct{ admission, backfill string }{{"strict", "none"}, {"skip", "none"}, {"strict", "easy"}} {
		b.Run(c.admission+"+"+c.backfill, func(b *testing.B) {
			spec, jobs := crowded(b)
			playOn(b, spec, jobs, func(k *schedulers.Config) {
				k.Admission, k.Backfill, k.Placement = c.admission, c.backfill,
					"best-fit"
			})
		})
	}
}
