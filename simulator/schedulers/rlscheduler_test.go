package schedulers_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// rlscheduler reads the results of RLScheduler's simulator for lublin_256, if they are available.
func rlscheduler(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "groundtruth", name))
	if err != nil {
		t.Skip("the published results are not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all[1:] {
		row := map[string]string{}
		for i, k := range all[0] {
			row[k] = r[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// committed runs jobs as that simulator does and returns what it prints.
func committed(t *testing.T, jobs []traces.Job, policy string, backfill bool) map[string]float64 {
	t.Helper()
	cfg := schedulers.DefaultConfig()
	cfg.Order = map[string]string{"FCFS": "fifo", "SJF": "sjf", "WFP3": "wfp3-rlscheduler", "UNICEP": "unicep-rlscheduler",
		"F1": "f1"}[policy]
	cfg.Admission = "commit"
	if backfill {
		cfg.Backfill = "easy"
	}
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sc := sim.DefaultConfig()
	cfg.Simulator(&sc)
	s, err := sim.New(sc, cluster.Spec{Pool: 256})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	var c metrics.Collector
	if err := sim.Run(context.Background(), s, h, &c); err != nil {
		t.Fatal(err)
	}
	sum := c.Summary(0, 0)
	last, wait := time.Duration(0), int64(0)
	for j := range c.Jobs() {
		last = max(last, j.First)
		wait += int64((j.Finish - j.Submit - j.Work) / time.Second)
	}
	area := 0.0
	for i := range jobs {
		area += jobs[i].Work.Seconds() * float64(jobs[i].GPUs)
	}
	return map[string]float64{
		"jobs": float64(len(jobs)), "bsld_avg": sum.BoundedSlowdown.Mean,
		"wait_avg": sum.Wait.Mean, "wait_median": sum.Wait.P50, "wait_p99": sum.Wait.P99, "wait_max": sum.Wait.Max,
		"jct_avg": sum.JCT.Mean, "jct_median": sum.JCT.P50, "jct_p99": sum.JCT.P99, "makespan": sum.Makespan,
		"util_true": area / 256 / sum.Makespan, "util_peer": area / 256 / (last - jobs[0].Submit).Seconds(),
		"wait_sum": float64(wait),
	}
}

// compare compares every number of a row with ours, to the digits that the row has.
func compare(t *testing.T, row map[string]string, got map[string]float64) {
	t.Helper()
	for key, v := range got {
		text, ok := row[key]
		if !ok {
			t.Errorf("the row has no %s", key)
			continue
		}
		want, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		// Printed rounded to six decimals at most: allow half a unit of the last, and the rounding of sums of floats.
		if d := v - want; d > 5.1e-7 || d < -5.1e-7 {
			t.Errorf("%s is %.6f, RLScheduler's simulator has %s", key, v, text)
		}
	}
}

func withoutZeros(jobs []traces.Job) []traces.Job {
	return slices.DeleteFunc(jobs, func(j traces.Job) bool { return j.Work == 0 })
}

// All hundred rows of windows of 1024 jobs, and the means that RLScheduler's README prints.
func TestRLSchedulerWindows(t *testing.T) {
	rows := rlscheduler(t, "rlscheduler_lublin_256_windows.csv")
	jobs := withoutZeros(lublin(t))
	sums := map[string]float64{}
	for _, row := range rows {
		start, err := strconv.Atoi(row["start_index"])
		if err != nil {
			t.Fatal(err)
		}
		t.Run(row["policy"]+"/backfill "+row["backfill"]+"/window "+row["window"], func(t *testing.T) {
			got := committed(t, jobs[start:start+1024], row["policy"], row["backfill"] == "1")
			compare(t, row, got)
			sums[row["policy"]+row["backfill"]] += got["bsld_avg"]
		})
	}
	if len(rows) != 100 {
		t.Errorf("%d rows, want 100", len(rows))
	}
	for key, want := range map[string]string{
		"FCFS0": "7273.77", "SJF0": "277.35", "WFP30": "19753.53", "UNICEP0": "22274.74", "F10": "258.37",
		"FCFS1": "235.82", "SJF1": "73.31", "WFP31": "133.87", "UNICEP1": "307.23", "F11": "75.07",
	} {
		if got := fmt.Sprintf("%.2f", sums[key]/10); got != want {
			t.Errorf("%s: a mean bounded slowdown of %s, the README has %s", key, got, want)
		}
	}
}

// The whole log.
func TestRLSchedulerWholeLog(t *testing.T) {
	jobs := withoutZeros(lublin(t))
	for _, row := range rlscheduler(t, "rlscheduler_lublin_256_full.csv") {
		t.Run(row["policy"]+"/backfill "+row["backfill"], func(t *testing.T) {
			compare(t, row, committed(t, jobs, row["policy"], row["backfill"] == "1"))
		})
	}
}
