package dally

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/recorded"
)

// runs is the folder of the per-job results of the authors' program.
const runs = "groundtruth/dally/"

func workload(t testing.TB, name string) []Job {
	t.Helper()
	jobs, err := ReadJobs(recorded.Open(t, runs+name+".csv.gz"), name)
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
	table, _, err := ReadFactors(recorded.Open(t, runs+"factors.csv"), "factors.csv", net)
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
	t.Helper()
	cfg := DefaultConfig()
	cfg.Racks, cfg.Machines = int(recorded.Number(t, c["racks"])), int(recorded.Number(t, c["machines"]))
	cfg.Policy, cfg.Variant = strings.ToLower(c["scheduler"]), c["variant"]
	if c["rack_timer"] != "" {
		cfg.RackWait, cfg.NetworkWait = recorded.Number(t, c["rack_timer"]), recorded.Number(t, c["nw_timer"])
	}
	return cfg
}

func TestEveryRecordedJobToTheLastBit(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine plays all of it, for minutes under the race detector")
	}
	cases := recorded.Rows(t, runs+"cases.csv")
	if len(cases) != 27 {
		t.Errorf("%d recorded cases, want 27", len(cases))
	}
	for _, c := range cases {
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
			rows := recorded.Rows(t, runs+"jobs/"+c["case"]+".csv.gz")
			if len(rows) != len(jobs) {
				t.Fatalf("%d jobs, recorded %d", len(jobs), len(rows))
			}
			for _, want := range rows {
				got := r.Jobs[at[want["job"]]]
				values := map[string]float64{
					"first_start": got.First, "end": got.End, "queue_delay": got.Queue, "gpu_time": got.GPUTime,
					"comp_time":       got.CompTime,
					"g_while_running": float64(got.WhileRunning),
				}
				for l, name := range []string{"g_one", "g_slot", "g_machine", "g_rack", "g_cross"} {
					values[name] = float64(got.Grants[l])
				}
				for k, v := range values {
					if w := recorded.Number(t, want[k]); v != w {
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
				if w := recorded.Number(t, c[k]); math.Abs(v-w) > 1e-12*math.Abs(w) {
					t.Errorf("%s is %v, recorded %v", k, v, w)
				}
			}
			if got, want := fmt.Sprint(r.Blocks, " blocks ", r.Passes, " passes"),
				c["blocks"]+" blocks "+c["passes"]+" passes"; got != want {
				t.Errorf("got %s, recorded %s", got, want)
			}
		})
	}
}

func TestTheFirstGrantsAreTheRecordedGPUs(t *testing.T) {
	for _, name := range []string{"multi411.4x4.slow.dally.wait", "multi411.4x4.slow.tiresias.wait",
		"multi411.4x4.slow.gandiva.pub"} {
		t.Run(name, func(t *testing.T) {
			var cfg Config
			for _, c := range recorded.Rows(t, runs+"cases.csv") {
				if c["case"] == name {
					cfg = setting(t, c)
				}
			}
			jobs := workload(t, "multi411")
			rows := recorded.Rows(t, runs+"grants_"+name+".csv.gz")
			ctx, enough := context.WithCancel(context.Background())
			defer enough()
			var got []string
			_, err := Run(ctx, jobs, network(t, "slow"), cfg, func(e *Event) {
				if e.Kind != Start && e.Kind != Second || len(got) == len(rows) {
					return
				}
				row := fmt.Sprint(e.At, " ", jobs[e.Job].Name, " ", e.Kind == Second)
				for _, g := range e.GPUs {
					row += fmt.Sprintf(" %d.%d.%d.%d", g/32, g/8%4, g/4%2, g%4)
				}
				if got = append(got, row); len(got) == len(rows) {
					enough()
				}
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			for i, c := range rows {
				want := fmt.Sprint(recorded.Number(t, c["time"]), " ", c["job"], " ", c["running"] == "1", " ", c["gpus"])
				if got[i] != want {
					t.Fatalf("grant %d is\n%s, recorded\n%s", i, got[i], want)
				}
			}
		})
	}
}
