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

// stints notes when each job started and finished, in seconds; -1 = never.
type stints struct{ start, end []int64 }

func (s *stints) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		switch e := &p.Events[i]; e.Kind {
		case sim.Start:
			s.start[v.Pos(e.Job)] = int64(e.At / time.Second)
		case sim.Finish:
			s.end[v.Pos(e.Job)] = int64(e.At / time.Second)
		}
	}
	return nil
}

// onNodes runs jobs on six nodes of eight GPUs.
func onNodes(t *testing.T, jobs []traces.Job, order, admission, placement string) (metrics.Summary, stints) {
	t.Helper()
	cfg := schedulers.DefaultConfig()
	cfg.Order, cfg.Admission, cfg.Placement = order, admission, placement
	spec, _, err := cluster.Parse("6x8")
	if err != nil {
		t.Fatal(err)
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
	seen := stints{make([]int64, len(jobs)), make([]int64, len(jobs))}
	for i := range jobs {
		seen.start[i], seen.end[i] = -1, -1
	}
	if err := sim.Run(context.Background(), s, h, &c, &seen); err != nil {
		t.Fatal(err)
	}
	return c.Summary(0, 0), seen
}

// Lucid's simulator, policy strict, placement "consolidate", and Tiresias', placement "yarn", give these means on six
// nodes of eight GPUs, in seconds. If the placement does not constrain, they equal those of the counter.
func TestPublishedMeansOnNodes(t *testing.T) {
	jobs := published(t)
	for _, want := range []struct {
		order, admission, placement string
		jct, p50, first, bsld       string
		lastEnd                     float64
	}{
		{"fifo", "strict", "consolidate-best", "841517.990521", "935980.500000", "767025.682464", "390.239666", 7658747},
		{"sjf", "strict", "consolidate-best", "366117.613744", "100941.500000", "291625.305687", "33.277197", 7658747},
		{"fifo", "strict", "consolidate-first", "841561.172986", "935980.500000", "767068.864929", "390.282265", 7658747},
		{"fifo", "skip", "consolidate-first", "387281.428910", "274612.500000", "312789.120853", "81.316622", 7658747},
		{"lpf", "strict", "consolidate-first", "820165.701422", "909121.500000", "745673.393365", "379.681146", 7658747},
	} {
		t.Run(want.order+"+"+want.admission+"/"+want.placement, func(t *testing.T) {
			got, _ := onNodes(t, jobs, want.order, want.admission, want.placement)
			six := func(v float64) string { return strconv.FormatFloat(v, 'f', 6, 64) }
			if six(got.JCT.Mean) != want.jct || six(got.JCT.P50) != want.p50 || six(got.FirstWait.Mean) != want.first ||
				six(got.BoundedSlowdown.Mean) != want.bsld || got.Makespan != want.lastEnd || got.Finished != len(jobs) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// Every job starts and ends when it does in Lucid's simulator.
func TestLucidSchedulesJobByJob(t *testing.T) {
	jobs := published(t)
	for _, order := range []string{"fifo", "sjf"} {
		f, err := os.Open(filepath.Join("..", "..", "..", "shared", "groundtruth", "lucid_6x8_consolidate_"+order+".csv.gz"))
		if err != nil {
			t.Skip("the published schedules are not at hand: looked for in ../shared, beside this repository, of which it is no part")
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
		_, got := onNodes(t, jobs, order, "strict", "consolidate-best")
		pos := map[string]int{}
		for i := range jobs {
			pos[jobs[i].ID] = i
		}
		wrong := 0
		for _, r := range rows[1:] {
			i, ok := pos[r[0]]
			if !ok {
				t.Fatalf("%s: job %s is not among the jobs", order, r[0])
			}
			if strconv.FormatInt(got.start[i], 10) != r[1] || strconv.FormatInt(got.end[i], 10) != r[2] {
				wrong++
				t.Logf("%s: job %s ran from %d to %d, want %s to %s", order, r[0], got.start[i], got.end[i], r[1], r[2])
			}
		}
		if len(rows)-1 != len(jobs) || wrong > 0 {
			t.Errorf("%s: %d of %d jobs differ", order, wrong, len(rows)-1)
		}
	}
}
