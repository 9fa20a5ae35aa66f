package profile

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clustergym/traces"
)

// realPath returns a path of recorded data; tests skip if it does not exist.
func realPath(path string) string {
	return filepath.Join("..", "..", "..", "shared", "traces", filepath.FromSlash(path))
}

func loadReal(t *testing.T, path string) *Table {
	t.Helper()
	table, err := LoadIn(context.Background(), nil, realPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("measurements not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func readReal(t *testing.T, path string) string {
	t.Helper()
	r, err := traces.OpenFile(realPath(path))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("recorded data not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// realRows returns the rows of a file as values by column.
func realRows(t *testing.T, path string) []map[string]string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(readReal(t, path), "\r", "")), "\n")
	head := strings.Split(lines[0], ",")
	var rows []map[string]string
	for _, l := range lines[1:] {
		row := map[string]string{}
		for i, f := range strings.Split(l, ",") {
			row[head[i]] = f
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRealGavelEqualsAnIndependentReading(t *testing.T) {
	for file, zeros := range map[string]int{"simulation_throughputs.json.gz": 3,
		"physical_cluster_throughputs.json.gz": 4} {
		g := loadReal(t, "profiles-gavel/"+file)
		if n := len(g.Models()); n != 26 || strings.Join(g.Types(), " ") != "k80 p100 v100" {
			t.Errorf("%s: %d models, types %v", file, n, g.Types())
		}
		var all map[string]map[string]map[string]any
		if err := json.Unmarshal([]byte(readReal(t, "profiles-gavel/"+file)), &all); err != nil {
			t.Fatal(err)
		}
		type sum struct{ total, n float64 }
		shared := map[[2]string]sum{}
		points, none := 0, 0
		for gpu, jobs := range all {
			base, spread := strings.CutSuffix(gpu, unconsolidated)
			for key, with := range jobs {
				name, n, _ := tuple(key)
				want := with["null"].(float64)
				points++
				if want == 0 {
					none++
				}
				got, ok := g.Throughput(name, base, n)
				if spread {
					kept, known := g.Spread(name, base, n, n)
					if known && n > 1 && math.Abs(kept-min(1, want/got)) > 1e-15 || known != ok {
						t.Errorf("%s of %s keeps %v, want %v of %v", key, gpu, kept, want, got)
					}
					continue
				}
				if got != want || ok != (want > 0) {
					t.Errorf("%s on %s: %v, want %v", key, gpu, got, want)
				}
				for other, both := range with {
					if o, _, ok := tuple(other); ok {
						if r := both.([]any)[0].(float64); r > 0 && want > 0 {
							s := shared[[2]string{name, o}]
							shared[[2]string{name, o}] = sum{s.total + r/want, s.n + 1}
						}
					}
				}
			}
		}
		if points != 5*83+77 || none != zeros {
			t.Errorf("%s: %d throughputs, %d of them 0", file, points, none)
		}
		x, err := g.Interference()
		if err != nil {
			t.Fatal(err)
		}
		for p, s := range shared {
			if got, ok := g.Kept(p[0], p[1]); !ok || math.Abs(got-min(1, s.total/s.n)) > 1e-12 ||
				x.Kept(of(p[0]), of(p[1])) != got {
				t.Errorf("%s beside %s keeps %v, want %v", p[0], p[1], got, s.total/s.n)
			}
		}
		if len(shared) != len(g.kept) || len(shared) < 600 {
			t.Errorf("%d pairs, want %d", len(g.kept), len(shared))
		}
	}
}

func TestRealGavelJobsAllRun(t *testing.T) {
	g := loadReal(t, "profiles-gavel/simulation_throughputs.json.gz")
	var jobs []traces.Job
	for _, line := range strings.Split(strings.TrimSpace(readReal(t, "philly-gavel/0e4a51.trace.gz")), "\n") {
		f := strings.Split(line, "\t")
		jobs = append(jobs, traces.Job{Model: f[0], Iterations: int64(number(t, f[4])), GPUs: int(number(t, f[6]))})
	}
	for _, gpu := range g.Types() {
		given := append([]traces.Job(nil), jobs...)
		changed, unknown := assign(given, g, gpu)
		if gpu != "k80" && (unknown != 0 || changed != len(jobs)) {
			t.Errorf("%s: %d of %d jobs unknown", gpu, unknown, len(jobs))
		}
		for i := range given {
			if j := &given[i]; j.Work > 0 {
				rate, ok := g.Throughput(j.Model, gpu, j.GPUs)
				for n := j.GPUs; !ok; n-- {
					rate, ok = g.Throughput(j.Model, gpu, n)
				}
				if math.Abs(j.Work.Seconds()-float64(j.Iterations)/rate) > 1e-6 {
					t.Fatalf("%+v on %s runs %v", j, gpu, j.Work)
				}
			}
		}
	}
}

func TestRealSiaKnowsItsWorkloads(t *testing.T) {
	s := loadReal(t, "profiles-sia")
	if got, want := strings.Join(s.Types(), " "), "aws dgx-ext quad rtx"; got != want {
		t.Errorf("types %s, want %s", got, want)
	}
	if n := len(s.Models()); n != 6+6+6+6+7+8+7 {
		t.Errorf("%d models", n)
	}
	var jobs []traces.Job
	var batches []int
	for _, file := range []string{"newtrace/workload-1.csv", "philly/workload-1.csv", "pollux/workload-1.csv",
		"saturn/workload-1.csv"} {
		for _, r := range realRows(t, "sia-workloads/"+file) {
			jobs = append(jobs, traces.Job{Model: r["application"], GPUs: int(number(t, r["num_replicas"]))})
			batches = append(batches, int(number(t, r["batch_size"])))
		}
	}
	given := append([]traces.Job(nil), jobs...)
	for i := range given {
		given[i].Batch = batches[i]
		if changed, known := s.Assign(&given[i], "aws"); !changed || !known {
			t.Errorf("unknown on aws: %+v with batch size %d", given[i], batches[i])
		}
	}
	// The authors gave each number of GPUs the batch size with the shortest training, but computed layouts that were
	// not measured in another way.
	var longest float64
	same := 0
	for i := range given {
		j := &given[i]
		longest = max(longest, j.Work.Hours())
		if d, ok := s.Work(j.Model, 0, j.GPUs, 0, "aws"); ok && d == j.Work {
			same++
		} else if d > j.Work {
			t.Errorf("%s on %d GPUs: %v with batch size %d, %v with the one that is said to be best", j.Model, j.GPUs, j.Work,
				batches[i], d)
		}
	}
	t.Logf("longest %.2f h, batch size as the table would choose for %d of %d", longest, same, len(jobs))
	if longest > 24 || same < len(jobs)*8/10 {
		t.Errorf("longest %.2f h, batch size as the table would choose for %d of %d", longest, same, len(jobs))
	}
}

func TestRealElasticFlowHasTheRunTimesOfItsTrace(t *testing.T) {
	e := loadReal(t, "profiles-elasticflow")
	if n := len(e.Models()); n != 7*2+3+2+8-1 || strings.Join(e.Types(), " ") != "A100 T4" {
		t.Errorf("%d models %v on %v", n, e.Models(), e.Types())
	}
	rows := realRows(t, "philly-elasticflow/philly_103959.csv")
	good := 0
	for _, r := range rows {
		d, ok := e.Work(r["model_name"], int(number(t, r["batch_size"])), int(number(t, r["num_gpu"])),
			int64(number(t, r["iteration"])), "A100")
		if !ok {
			t.Fatalf("unknown: %v", r)
		}
		if want := number(t, r["duration"]); math.Abs(d.Seconds()-want) <= .01*want+1 {
			good++
		}
	}
	t.Logf("%d of %d run times within 1 %%", good, len(rows))
	if good < len(rows)*9/10 {
		t.Errorf("%d of %d run times within 1 %%", good, len(rows))
	}
}

func TestRealLucidPairs(t *testing.T) {
	l := loadReal(t, "profiles-lucid")
	rows := realRows(t, "profiles-lucid/colocate_info.csv")
	x, err := l.Interference()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1388 {
		t.Errorf("%d rows", len(rows))
	}
	type sum struct{ total, n float64 }
	shared := map[[2]string]sum{}
	name := func(r map[string]string, i string) string {
		amp := ""
		if r["amp"+i] == "1" {
			amp = ", amp"
		}
		return r["model"+i] + " (" + r["dataset"+i] + ", batch size " + r["batchsize"+i] + amp + ")"
	}
	for _, r := range rows {
		for _, k := range [][2]string{{"1", "2"}, {"2", "1"}} {
			p := [2]string{name(r, k[0]), name(r, k[1])}
			shared[p] = sum{shared[p].total + number(t, r["speed"+k[0]]), shared[p].n + 1}
		}
	}
	for p, s := range shared {
		if got := x.Kept(of(p[0]), of(p[1])); math.Abs(got-min(1, s.total/s.n)) > 1e-12 || got <= 0 {
			t.Errorf("%v keeps %v, want %v", p, got, s.total/s.n)
		}
	}
	alone := 0
	for _, m := range l.Models() {
		if _, ok := l.Throughput(m, "", 1); ok {
			alone++
			if p, ok := l.Profile(m, ""); !ok || p.MemBytes < 1<<30 || p.MemBytes > 24<<30 {
				t.Errorf("%s: %+v", m, p)
			}
		}
	}
	if alone != 66 {
		t.Errorf("%d models alone, want 66", alone)
	}
}

func TestRealTiresiasAndChronus(t *testing.T) {
	s := loadReal(t, "profiles-tiresias/model_tensors.csv")
	mix, _ := Named("tiresias-cnn")
	for name, mib := range map[string]float64{"vgg19": 547, "vgg16": 527, "vgg11": 507, "alexnet": 236, "resnet152": 150,
		"resnet101": 120, "resnet50": 81, "inception4": 133, "inception3": 57} {
		p, ok := s.Profile(name, "")
		if !ok || math.Abs(float64(p.GradientBytes)/(1<<20)-mib) > .51 ||
			p.Skewed != (name == "alexnet" || strings.HasPrefix(name, "vgg")) {
			t.Errorf("%s: %+v", name, p)
		}
		if v := mix.Find(name); v == nil || math.Abs(v.MB*1e6-float64(p.GradientBytes)) > 1000 || v.Skewed != p.Skewed {
			t.Errorf("%s: the mix has %+v, the table %+v", name, v, p)
		}
	}
	if len(s.Models()) != 9 {
		t.Errorf("models %v", s.Models())
	}
	c := loadReal(t, "profiles-chronus/model_info.json")
	if len(c.Models()) != 5 {
		t.Errorf("models %v", c.Models())
	}
	for _, m := range c.Models() {
		for _, gpus := range []int{2, 4, 6, 8} {
			one, ok := c.Spread(m, "", gpus, 1)
			two, ok2 := c.Spread(m, "", gpus, 2)
			if !ok || !ok2 || one != 1 || two > 1 || two < .2 {
				t.Errorf("%s on %d GPUs keeps %v and %v", m, gpus, one, two)
			}
		}
	}
}

func TestRealProfilesScaleAsTheirTables(t *testing.T) {
	for _, path := range []string{"profiles-sia", "profiles-elasticflow",
		"profiles-gavel/simulation_throughputs.json.gz"} {
		table := loadReal(t, path)
		compared := 0
		for _, gpu := range table.Types() {
			for _, m := range table.Models() {
				p, ok := table.Profile(m, gpu)
				if !ok || p.Scaling == nil {
					continue
				}
				for n := p.Scaling[0].GPUs; n <= p.Scaling[len(p.Scaling)-1].GPUs; n++ {
					want, ok := table.Throughput(m, gpu, n)
					if got := p.Throughput(n); !ok || math.Abs(got-want) > 1e-12*want {
						t.Errorf("%s on %d %s: the profile says %v, the table %v", m, n, gpu, got, want)
					}
					compared++
				}
			}
		}
		if compared < 300 {
			t.Errorf("%s: compared %d only", path, compared)
		}
	}
}
