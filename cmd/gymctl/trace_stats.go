package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/traces"
)

func traceStats(a *app) *cobra.Command {
	cfg := workload.DefaultTraceConfig()
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats FILE",
		Short: "Describe a trace: sizes, run times, load",
		Long: `stats reads a trace once and describes it: jobs, sizes, run times (quantiles by nearest rank), GPU-hours, users,
virtual clusters and models, and, where the trace has them, groups, names of jobs and how many jobs come after one of the
same user and name. The mean load is the number of GPUs that the jobs would keep busy all the time.`,
		Example: `  gymctl trace synth --jobs 2000 -o jobs.csv.gz
  gymctl trace stats jobs.csv.gz
  gymctl trace stats jobs.csv.gz --json`,
		Args:              args(1, 1, "one FILE"),
		ValidArgsFunction: oneFile,
		RunE: func(c *cobra.Command, files []string) error {
			cfg.File = files[0]
			line := newStatus(a, unnoticed)
			defer line.clear()
			if line != nil {
				c.SetContext(workload.WithReading(c.Context(), a.reading(line, cfg.File)))
			}
			t, err := openTrace(c, cfg)
			if err != nil {
				return err
			}
			defer t.Close() //nolint:errcheck // only read
			jobs := &contents{Stream: t}
			s, err := traces.Summarize(jobs)
			line.clear()
			if err != nil {
				return err
			}
			if i := t.Info(); s.Jobs == 0 {
				return fault.Mistakef("trace %s: there are no jobs to read, %d left out", cfg.File, i.Dropped+i.Passed)
			}
			d := describe(&s, t.Info())
			d.Contents = jobs
			if asJSON {
				return a.json(d)
			}
			return a.showStats(d)
		},
	}
	traceFlags(c, &cfg)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// stats is the JSON document of trace stats.
type stats struct {
	Trace       workload.Info `json:"trace"`
	FirstS      float64       `json:"first_s"` // submit times of the first and last job
	LastS       float64       `json:"last_s"`
	SpanS       float64       `json:"span_s"`
	JobsPerHour float64       `json:"jobs_per_hour"`
	Duration    spread        `json:"duration_s"`
	GPUHours    float64       `json:"gpu_hours"`
	MeanGPUs    float64       `json:"mean_gpus"` // GPU-hours divided by the span
	Sizes       []size        `json:"sizes"`
	Users       int           `json:"users"`
	Groups      int           `json:"groups,omitempty"`
	Names       int           `json:"names,omitempty"`   // of jobs
	Repeats     int           `json:"repeats,omitempty"` // jobs that come after one of the same user and name
	VCs         []count       `json:"vcs"`
	Models      []count       `json:"models"`
	Statuses    statuses      `json:"statuses"`
	NoEstimate  int           `json:"no_estimate"`
	ZeroWork    int           `json:"zero_duration"`
	Shared      int           `json:"shared_gpu"`
	Contents    *contents     `json:"carry"`
}

type spread struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

type size struct {
	GPUs     float64 `json:"gpus"`
	Jobs     int     `json:"jobs"`
	Share    float64 `json:"share"` // of jobs
	GPUHours float64 `json:"gpu_hours"`
}

type count struct {
	Name string `json:"name"`
	Jobs int    `json:"jobs"`
}

type statuses struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Unknown   int `json:"unknown"`
}

func describe(s *traces.Stats, info workload.Info) stats {
	d := stats{
		Trace: info, FirstS: s.First.Seconds(), LastS: s.Last.Seconds(), SpanS: s.Span.Seconds(), JobsPerHour: s.JobsPerHour,
		Duration: spread{s.Work.P50.Seconds(), s.Work.P90.Seconds(), s.Work.P99.Seconds(), s.Work.Mean.Seconds(), s.Work.Max.Seconds()},
		GPUHours: s.GPUHours, Users: len(s.Users), Groups: len(s.Groups), Names: len(s.Names), Repeats: s.Repeats, VCs: counted(s.VCs), Models: counted(s.Models), Sizes: []size{},
		Statuses: statuses{s.Statuses[traces.Completed], s.Statuses[traces.Failed], s.Statuses[traces.Cancelled],
			s.Statuses[traces.StatusUnknown]},
		NoEstimate: s.NoEstimate, ZeroWork: s.ZeroWork, Shared: s.Shared,
	}
	if s.Span > 0 {
		d.MeanGPUs = s.GPUHours / s.Span.Hours()
	}
	for _, z := range s.Sizes {
		d.Sizes = append(d.Sizes, size{float64(z.Milli) / 1000, z.Jobs, float64(z.Jobs) / float64(s.Jobs), z.GPUHours})
	}
	return d
}

func counted(cs []traces.Count) []count {
	out := make([]count, 0, len(cs))
	for _, c := range cs {
		out = append(out, count{c.Name, c.Jobs})
	}
	return out
}

func (a *app) showStats(d stats) error {
	span := time.Duration(d.SpanS * float64(time.Second))
	a.printf("trace       %s\n", d.Trace)
	a.printf("span        %s, %.3g jobs/h\n", days(span), d.JobsPerHour)
	if d.Trace.Timeless && d.Duration.Max == 0 {
		a.printf("run time    not in the file; --profiles gives a table from which it follows\n")
	} else {
		a.printf("run time    p50 %s, p90 %s, p99 %s, mean %s, max %s\n", seconds(d.Duration.P50), seconds(d.Duration.P90),
			seconds(d.Duration.P99), seconds(d.Duration.Mean), seconds(d.Duration.Max))
		a.printf("GPU time    %.0f GPU-hours, %.1f GPUs busy on average\n", d.GPUHours, d.MeanGPUs)
	}
	a.printf("users       %d\n", d.Users)
	if d.Groups > 0 {
		a.printf("groups      %d\n", d.Groups)
	}
	if d.Names > 0 {
		a.printf("names       %d", d.Names)
		if d.Users > 0 {
			a.printf("; %s of jobs come after one of the same user and name", percent(float64(d.Repeats), float64(d.Trace.Jobs)))
		}
		a.printf("\n")
	}
	if s := d.Statuses; s.Unknown < d.Trace.Jobs {
		a.printf("ended       %d completed, %d failed, %d cancelled, %d unknown\n", s.Completed, s.Failed, s.Cancelled, s.Unknown)
	}
	if n := d.NoEstimate; n > 0 {
		a.printf("estimates   missing in %d of %s\n", n, plain.Count(d.Trace.Jobs, "job", "jobs"))
	}
	if d.ZeroWork > 0 && d.Duration.Max > 0 {
		a.printf("zero        %s a run time of 0\n", plain.Count(d.ZeroWork, "job has", "jobs have"))
	}
	if d.Shared > 0 {
		a.printf("shares      %s less than a whole GPU\n", plain.Count(d.Shared, "job wants", "jobs want"))
	}
	if c := d.Contents; c.Graphs > 0 {
		a.printf("graphs      %s, %s, %s\n", plain.Count(c.Graphs, "job", "jobs"), plain.Count(c.Tasks, "task", "tasks"), plain.Count(c.Edges, "edge", "edges"))
	}
	if carried := d.Contents.list(); carried != "" {
		a.printf("carry       %s\n", carried)
	}
	a.printf("\n")
	var rows [][]string
	for _, b := range buckets(d.Sizes) {
		rows = append(rows, []string{b.name, strconv.Itoa(b.jobs), percent(float64(b.jobs), float64(d.Trace.Jobs)), percent(b.hours, d.GPUHours)})
	}
	if err := a.table(1, []string{"GPUs", "jobs", "of jobs", "of GPU time"}, rows); err != nil {
		return err
	}
	for _, t := range []struct {
		name string
		of   []count
	}{{"virtual cluster", d.VCs}, {"model", d.Models}} {
		if len(t.of) == 0 {
			continue
		}
		const most = 15
		rows = nil
		rest := 0
		for i, c := range t.of {
			if i < most {
				rows = append(rows, []string{c.Name, strconv.Itoa(c.Jobs), percent(float64(c.Jobs), float64(d.Trace.Jobs))})
			} else {
				rest += c.Jobs
			}
		}
		if rest > 0 {
			rows = append(rows, []string{fmt.Sprintf("(%d others)", len(t.of)-most), strconv.Itoa(rest), percent(float64(rest), float64(d.Trace.Jobs))})
		}
		a.printf("\n")
		if err := a.table(1, []string{t.name, "jobs", "of jobs"}, rows); err != nil {
			return err
		}
	}
	return nil
}

// bucket is a range of sizes.
type bucket struct {
	name  string
	jobs  int
	hours float64
}

// buckets groups sizes by powers of two and leaves out empty groups.
func buckets(sizes []size) []bucket {
	var out []bucket
	from := 0.0
	for _, r := range []struct {
		name string
		to   float64 // up to and including
	}{{"0", 0}, {"below 1", .9995}, {"1", 1}, {"2", 2}, {"3-4", 4}, {"5-8", 8}, {"9-16", 16}, {"17-32", 32}, {"33-64", 64}, {"65-128", 128},
		{"129-256", 256}, {"257 and more", 1e18}} {
		b := bucket{name: r.name}
		for _, z := range sizes {
			if z.GPUs <= r.to && (z.GPUs > from || r.to == 0) {
				b.jobs += z.Jobs
				b.hours += z.GPUHours
			}
		}
		if from = r.to; b.jobs > 0 {
			out = append(out, b)
		}
	}
	return out
}

func percent(part, of float64) string {
	if of == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*part/of, 'f', 1, 64) + " %"
}

// seconds formats a time in a suitable unit.
func seconds(s float64) string {
	switch {
	case s >= 2*86400:
		return strconv.FormatFloat(s/86400, 'f', 1, 64) + " d"
	case s >= 2*3600:
		return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
	case s >= 2*60:
		return strconv.FormatFloat(s/60, 'f', 1, 64) + " min"
	}
	return strconv.FormatFloat(s, 'f', -1, 64) + " s"
}

func days(d time.Duration) string { return seconds(d.Seconds()) }
