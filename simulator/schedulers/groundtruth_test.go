package schedulers_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// run simulates jobs under one scheduler and returns the metrics.
func run(t testing.TB, clusterName string, jobs []traces.Job, cfg schedulers.Config) metrics.Summary {
	t.Helper()
	spec, ok, err := cluster.Parse(clusterName)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	s, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var c metrics.Collector
	if err := sim.Run(context.Background(), s, h, &c); err != nil {
		t.Fatal(err)
	}
	return c.Summary(0, 0)
}

// published reads the 422 jobs of one of Philly's virtual clusters, if they are available.
func published(t *testing.T) []traces.Job {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "groundtruth", "philly_2869ce_all.csv.gz")
	f, err := os.Open(path)
	if err != nil {
		t.Skip("the published workload is not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var jobs []traces.Job
	for _, r := range rows[1:] {
		num := func(i int) int {
			n, err := strconv.Atoi(r[i])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		jobs = append(jobs, traces.Job{ID: r[0], Submit: time.Duration(num(1)) * time.Second,
			Work: time.Duration(num(2)) * time.Second, GPUs: num(3), GPUMilli: 1000})
	}
	return jobs
}

// Published simulators (Tiresias', Alibaba's for PAI, Lucid's) give these means, each for the rules that it has: 422
// jobs on a counter of 48 GPUs, printed to six decimals.
func TestPublishedMeans(t *testing.T) {
	jobs := published(t)
	for _, want := range []struct {
		order, admission            string
		jct, p50, wait, first, bsld string
		lastEnd                     float64
		preemptions                 int
	}{
		{"fifo", "strict", "841484.616114", "935980.500000", "766992.308057", "766992.308057", "390.215304", 7658747, 0},
		{"fifo", "skip", "387281.428910", "274612.500000", "312789.120853", "312789.120853", "81.316622", 7658747, 0},
		{"sjf", "strict", "366117.613744", "100941.500000", "291625.305687", "291625.305687", "33.277197", 7658747, 0},
		{"sjf", "skip", "306328.296209", "84094.000000", "231835.988152", "231835.988152", "25.288338", 7658747, 0},
		{"srtf", "skip", "232178.016588", "11296.000000", "157685.708531", "121397.708531", "1.917906", 7658747, 299},
		// only Tiresias' simulator
		{"las", "skip", "352919.966825", "19819.000000", "278427.658768", "618.177725", "6.212846", 7658747, 522},
	} {
		t.Run(want.order+"+"+want.admission, func(t *testing.T) {
			cfg := schedulers.DefaultConfig()
			cfg.Order, cfg.Admission = want.order, want.admission
			got := run(t, "pool:48", jobs, cfg)
			six := func(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }
			if six(got.JCT.Mean) != want.jct || six(got.JCT.P50) != want.p50 || six(got.Wait.Mean) != want.wait ||
				six(got.FirstWait.Mean) != want.first || six(got.BoundedSlowdown.Mean) != want.bsld ||
				got.Makespan != want.lastEnd ||
				got.Preemptions != want.preemptions {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
