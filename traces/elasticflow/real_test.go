package elasticflow_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"clustergym/traces"
	"clustergym/traces/elasticflow"
)

func TestRealTracesHaveTheirPublishedStatistics(t *testing.T) {
	for _, c := range []struct {
		file                     string
		jobs                     int
		ones, twos, fours        float64 // percent of the jobs
		p50, p90, p99, mean, max int
		days, perHour            float64
		moved, tight, estimates  int // tight: jobs that meet their deadline only on more GPUs
	}{
		{"philly_103959.csv", 876, 58.6, 3.8, 37.7, 24066, 181363, 266440, 56571, 1792395, 91.6, 0.399, 0, 466, 876},
		{"resnet_cifar_trace.csv", 5, 100, 0, 0, 3930, 10823, 10823, 4336, 10823, 3.58, 0.0582, 1, 0, 0},
	} {
		t.Run(c.file, func(t *testing.T) {
			f, err := traces.OpenFile(filepath.Join("..", "..", "..", "shared", "traces", "philly-elasticflow", c.file))
			if errors.Is(err, fs.ErrNotExist) {
				t.Skip("real trace not at hand: looked for in ../shared, beside this repository, of which it is no part")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			d, err := elasticflow.NewReader(f, c.file)
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := traces.ReadAll(d)
			if err != nil {
				t.Fatal(err)
			}
			st, err := traces.Summarize(&traces.Slice{Jobs: jobs})
			if err != nil {
				t.Fatal(err)
			}
			if st.Jobs != c.jobs || st.ZeroWork != 0 || d.Moved() != c.moved || st.First != 0 {
				t.Errorf("%d jobs, %d without work, %d moved, first at %v; want %d, 0, %d, 0", st.Jobs, st.ZeroWork, d.Moved(),
					st.First, c.jobs, c.moved)
			}
			for _, q := range []struct {
				name string
				got  time.Duration
				want int
			}{{"p50", st.Work.P50, c.p50}, {"p90", st.Work.P90, c.p90}, {"p99", st.Work.P99, c.p99},
				{"mean", st.Work.Mean, c.mean}, {"max", st.Work.Max, c.max}} {
				if got := q.got.Round(time.Second); got != time.Duration(q.want)*time.Second {
					t.Errorf("%s %v, want %d s", q.name, q.got, q.want)
				}
			}
			for gpus, want := range map[int]float64{1: c.ones, 2: c.twos, 4: c.fours} {
				if got := 100 * float64(st.Between(gpus*1000, gpus*1000+1)) / float64(st.Jobs); got-want > .0501 ||
					want-got > .0501 {
					t.Errorf("%.2f %% of the jobs have %d GPUs, want %.1f", got, gpus, want)
				}
			}
			if days := st.Span.Hours() / 24; days < .995*c.days || days > 1.005*c.days || st.JobsPerHour < .995*c.perHour ||
				st.JobsPerHour > 1.005*c.perHour {
				t.Errorf("%.3f days, %.4f jobs/h; want %v, %v", days, st.JobsPerHour, c.days, c.perHour)
			}
			tight := 0
			for _, j := range jobs {
				if j.Deadline <= j.Submit || j.MinGPUs != 1 || j.MaxGPUs < 32 || j.MaxGPUs > 64 {
					t.Errorf("%+v", j)
				}
				if j.Deadline < j.Submit+j.Work {
					tight++
				}
			}
			if tight != c.tight || st.Jobs-st.NoEstimate != c.estimates {
				t.Errorf("%d deadlines before the run time's end, %d estimates; want %d, %d", tight, st.Jobs-st.NoEstimate, c.tight,
					c.estimates)
			}
		})
	}
}
