package dally

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clustergym/internal/raced"
)

// recorded is the directory of the per-job results of the authors' program.
const recorded = "../../../../shared/groundtruth/dally"

func need(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(recorded, "cases.csv")); err != nil {
		t.Skipf("no recorded cases in %s", recorded)
	}
}

// rows reads a CSV, packed if it ends in .gz, as one map a row.
func rows(t testing.TB, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(recorded, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	r := csv.NewReader(f)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		r = csv.NewReader(z)
	}
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, h := range all[0] {
			m[h] = row[i]
		}
		list = append(list, m)
	}
	return list
}

func float(t testing.TB, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func workload(t testing.TB, name string) []Job {
	t.Helper()
	f, err := os.Open(filepath.Join(recorded, name+".csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := ReadJobs(z, name)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

func network(t testing.TB, net string) Factors {
	t.Helper()
	if net == "one" {
		return One{}
	}
	f, err := os.Open(filepath.Join(recorded, "factors.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	table, _, err := ReadFactors(f, "factors.csv", net)
	if err != nil {
		t.Fatal(err)
	}
	if net == "slow" {
		table.Else = Slow()
	}
	return table
}

// setting returns the configuration of a recorded case.
func setting(t testing.TB, c map[string]string) Config {
	cfg := DefaultConfig()
	cfg.Racks, cfg.Machines = int(float(t, c["racks"])), int(float(t, c["machines"]))
	cfg.Policy, cfg.Variant = strings.ToLower(c["scheduler"]), c["variant"]
	if c["rack_timer"] != "" {
		cfg.RackWait, cfg.NetworkWait = float(t, c["rack_timer"]), float(t, c["nw_timer"])
	}
	return cfg
}

func TestEveryRecordedJobToTheLastBit(t *testing.T) {
	need(t)
	if raced.On {
		t.Skip("one goroutine plays all of it, for minutes under the race detector")
	}
	for _, c := range rows(t, "cases.csv") {
		t.Run(c["case"], func(t *testing.T) {
			if testing.Short() && c["workload"] != "multi411" {
				t.Skip("the larger workload")
			}
			jobs := workload(t, c["workload"])
			r, err := Run(context.Background(), jobs, network(t, c["net"]), setting(t, c), nil)
			if err != nil {
				t.Fatal(err)
			}
			wrong, at := 0, map[string]int{}
			for i := range jobs {
				at[jobs[i].Name] = i
			}
			recorded := rows(t, "jobs/"+c["case"]+".csv.gz")
			if len(recorded) != len(jobs) {
				t.Fatalf("%d jobs, recorded %d", len(jobs), len(recorded))
			}
			for _, want := range recorded {
				got := r.Jobs[at[want["job"]]]
				values := map[string]float64{
					"first_start": got.First, "end": got.End, "queue_delay": got.Queue, "gpu_time": got.GPUTime, "comp_time": got.CompTime,
					"g_while_running": float64(got.WhileRunning),
				}
				for l, name := range []string{"g_one", "g_slot", "g_machine", "g_rack", "g_cross"} {
					values[name] = float64(got.Grants[l])
				}
				for k, v := range values {
					if w := float(t, want[k]); v != w {
						if wrong++; wrong <= 5 {
							t.Errorf("job %s: %s is %v, recorded %v", want["job"], k, v, w)
						}
					}
				}
			}
			if wrong > 0 {
				t.Errorf("%d values differ", wrong)
			}
			tot := r.Totals(jobs)
			for k, v := range map[string]float64{
				"makespan": tot.Makespan, "mean_jct": tot.MeanJCT, "mean_queue": tot.MeanQueue, "gpu_time": tot.GPUTime,
				"comp_time": tot.CompTime, "comm_time": tot.CommTime,
			} {
				if w := float(t, c[k]); math.Abs(v-w) > 1e-12*math.Abs(w) {
					t.Errorf("%s is %v, recorded %v", k, v, w)
				}
			}
			if got, want := fmt.Sprint(r.Blocks, " blocks ", r.Passes, " passes"), c["blocks"]+" blocks "+c["passes"]+" passes"; got != want {
				t.Errorf("got %s, recorded %s", got, want)
			}
		})
	}
}

func TestTheFirstGrantsAreTheRecordedGPUs(t *testing.T) {
	need(t)
	for _, name := range []string{"multi411.4x4.slow.dally.wait", "multi411.4x4.slow.tiresias.wait", "multi411.4x4.slow.gandiva.pub"} {
		t.Run(name, func(t *testing.T) {
			var cfg Config
			for _, c := range rows(t, "cases.csv") {
				if c["case"] == name {
					cfg = setting(t, c)
				}
			}
			jobs := workload(t, "multi411")
			recorded := rows(t, "grants_"+name+".csv.gz")
			ctx, enough := context.WithCancel(context.Background())
			defer enough()
			var got []string
			_, err := Run(ctx, jobs, network(t, "slow"), cfg, func(e *Event) {
				if e.Kind != Start && e.Kind != Second || len(got) == len(recorded) {
					return
				}
				row := fmt.Sprint(e.At, " ", jobs[e.Job].Name, " ", e.Kind == Second)
				for _, g := range e.GPUs {
					row += fmt.Sprintf(" %d.%d.%d.%d", g/32, g/8%4, g/4%2, g%4)
				}
				if got = append(got, row); len(got) == len(recorded) {
					enough()
				}
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			for i, c := range recorded {
				want := fmt.Sprint(float(t, c["time"]), " ", c["job"], " ", c["running"] == "1", " ", c["gpus"])
				if got[i] != want {
					t.Fatalf("grant %d is\n%s, recorded\n%s", i, got[i], want)
				}
			}
		})
	}
}
