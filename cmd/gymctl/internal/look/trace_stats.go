package look

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/traces"
)

func traceStats(a *cli.App) *cobra.Command {
	cfg := workload.DefaultTraceConfig()
	c := &cobra.Command{
		Use:   "stats FILE",
		Short: "Describe a trace: sizes, run times, load",
		Long: `stats reads a trace once and describes it: jobs, sizes, run times (quantiles by nearest rank), GPU-hours, users,
virtual clusters and models, and, where the trace has them, groups, names of jobs and how many jobs come after one of the
same user and name. The mean load is the number of GPUs that the jobs would keep busy all the time.`,
		Example: `  gymctl trace synth --jobs 2000 -o jobs.csv.gz
  gymctl trace stats jobs.csv.gz
  gymctl trace stats jobs.csv.gz --json`,
		Args:              cli.Args(1, 1, "one FILE"),
		ValidArgsFunction: cli.OneFile,
		RunE: func(c *cobra.Command, files []string) error {
			cfg.File = files[0]
			line := cli.NewStatus(a, cli.Unnoticed)
			defer line.Clear()
			c.SetContext(options.WithReading(c.Context(), line, cfg.File))
			t, err := openTrace(c, cfg)
			if err != nil {
				return err
			}
			defer t.Close() //nolint:errcheck // only read
			jobs := &contents{Stream: t}
			s, err := traces.Summarize(jobs)
			line.Clear()
			if err != nil {
				return err
			}
			if i := t.Info(); s.Jobs == 0 {
				return fault.Mistakef("trace %s: there are no jobs to read, %d left out", cfg.File, i.Dropped+i.Passed)
			}
			d := describe(&s, t.Info())
			d.Contents = jobs
			return a.Show(c, d, func(io.Writer) error { return showStats(a, d) })
		},
	}
	options.TraceFlags(c, &cfg)
	cli.JSONFlag(c)
	return c
}

// Stats is the JSON document of trace stats.
type Stats struct {
	Trace       workload.Info `json:"trace"`
	FirstS      float64       `json:"first_s"` // submit times of the first and last job
	LastS       float64       `json:"last_s"`
	SpanS       float64       `json:"span_s"`
	JobsPerHour float64       `json:"jobs_per_hour"`
	Duration    spread        `json:"duration_s"`
	GPUHours    float64       `json:"gpu_hours"`
	MeanGPUs    float64       `json:"mean_gpus"` // GPU-hours divided by the span
	Sizes       []Size        `json:"sizes"`
	Users       int           `json:"users"`
	Groups      int           `json:"groups,omitempty"`
	Names       int           `json:"names,omitempty"`   // of jobs
	Repeats     int           `json:"repeats,omitempty"` // jobs that come after one of the same user and name
	VCs         []count       `json:"vcs"`
	Models      []count       `json:"models"`
	Statuses    Statuses      `json:"statuses"`
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

// Size counts the jobs of one number of GPUs.
type Size struct {
	GPUs     float64 `json:"gpus"`
	Jobs     int     `json:"jobs"`
	Share    float64 `json:"share"` // of jobs
	GPUHours float64 `json:"gpu_hours"`
}

type count struct {
	Name string `json:"name"`
	Jobs int    `json:"jobs"`
}

// Statuses counts jobs by how they ended.
type Statuses struct {
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Unknown   int `json:"unknown"`
}

func describe(s *traces.Stats, info workload.Info) Stats {
	d := Stats{
		Trace: info, FirstS: s.First.Seconds(), LastS: s.Last.Seconds(), SpanS: s.Span.Seconds(), JobsPerHour: s.JobsPerHour,
		Duration: spread{s.Work.P50.Seconds(), s.Work.P90.Seconds(), s.Work.P99.Seconds(), s.Work.Mean.Seconds(),
			s.Work.Max.Seconds()},
		GPUHours: s.GPUHours, Users: len(s.Users), Groups: len(s.Groups), Names: len(s.Names), Repeats: s.Repeats,
		VCs: counted(s.VCs), Models: counted(s.Models), Sizes: []Size{},
		Statuses: Statuses{s.Statuses[traces.Completed], s.Statuses[traces.Failed], s.Statuses[traces.Cancelled],
			s.Statuses[traces.StatusUnknown]},
		NoEstimate: s.NoEstimate, ZeroWork: s.ZeroWork, Shared: s.Shared,
	}
	if s.Span > 0 {
		d.MeanGPUs = s.GPUHours / s.Span.Hours()
	}
	for _, z := range s.Sizes {
		d.Sizes = append(d.Sizes, Size{float64(z.Milli) / 1000, z.Jobs, float64(z.Jobs) / float64(s.Jobs), z.GPUHours})
	}
	return d
}

func counted(cs []traces.Count) []count {
	return cli.NamesOf(cs, func(c traces.Count) count { return count(c) })
}

func showStats(a *cli.App, d Stats) error {
	a.Printf("trace       %s\n", d.Trace)
	a.Printf("span        %s, %.3g jobs/h\n", cli.Seconds(d.SpanS), d.JobsPerHour)
	if d.Trace.Timeless && d.Duration.Max == 0 {
		a.Printf("run time    not in the file; --profiles gives a table from which it follows\n")
	} else {
		a.Printf("run time    p50 %s, p90 %s, p99 %s, mean %s, max %s\n", cli.Seconds(d.Duration.P50),
			cli.Seconds(d.Duration.P90),
			cli.Seconds(d.Duration.P99), cli.Seconds(d.Duration.Mean), cli.Seconds(d.Duration.Max))
		a.Printf("GPU time    %.0f GPU-hours, %.1f GPUs busy on average\n", d.GPUHours, d.MeanGPUs)
	}
	a.Printf("users       %d\n", d.Users)
	if d.Groups > 0 {
		a.Printf("groups      %d\n", d.Groups)
	}
	if d.Names > 0 {
		a.Printf("names       %d", d.Names)
		if d.Users > 0 {
			a.Printf("; %s of jobs come after one of the same user and name",
				cli.Percent(float64(d.Repeats), float64(d.Trace.Jobs)))
		}
		a.Printf("\n")
	}
	if s := d.Statuses; s.Unknown < d.Trace.Jobs {
		a.Printf("ended       %d completed, %d failed, %d cancelled, %d unknown\n", s.Completed, s.Failed, s.Cancelled,
			s.Unknown)
	}
	if n := d.NoEstimate; n > 0 {
		a.Printf("estimates   missing in %d of %s\n", n, plain.Count(d.Trace.Jobs, "job", "jobs"))
	}
	if d.ZeroWork > 0 && d.Duration.Max > 0 {
		a.Printf("zero        %s a run time of 0\n", plain.Count(d.ZeroWork, "job has", "jobs have"))
	}
	if d.Shared > 0 {
		a.Printf("shares      %s less than a whole GPU\n", plain.Count(d.Shared, "job wants", "jobs want"))
	}
	if c := d.Contents; c.Graphs > 0 {
		a.Printf("graphs      %s, %s, %s\n", plain.Count(c.Graphs, "job", "jobs"), plain.Count(c.Tasks, "task", "tasks"),
			plain.Count(c.Edges, "edge", "edges"))
	}
	if carried := d.Contents.list(); carried != "" {
		a.Printf("carry       %s\n", carried)
	}
	a.Printf("\n")
	var rows [][]string
	for _, b := range Buckets(d.Sizes) {
		rows = append(rows,
			[]string{b.Name, strconv.Itoa(b.Jobs), cli.Percent(float64(b.Jobs), float64(d.Trace.Jobs)),
				cli.Percent(b.Hours, d.GPUHours)})
	}
	if err := a.Table(1, []string{"GPUs", "jobs", "of jobs", "of GPU time"}, rows); err != nil {
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
		shown := slices.Clone(t.of[:min(most, len(t.of))])
		if len(t.of) > most {
			others := count{Name: fmt.Sprintf("(%d others)", len(t.of)-most)}
			for _, c := range t.of[most:] {
				others.Jobs += c.Jobs
			}
			shown = append(shown, others)
		}
		rows = cli.NamesOf(shown, func(c count) []string {
			return []string{c.Name, strconv.Itoa(c.Jobs), cli.Percent(float64(c.Jobs), float64(d.Trace.Jobs))}
		})
		a.Printf("\n")
		if err := a.Table(1, []string{t.name, "jobs", "of jobs"}, rows); err != nil {
			return err
		}
	}
	return nil
}

// Bucket is a range of sizes.
type Bucket struct {
	Name  string
	Jobs  int
	Hours float64
}

// Buckets groups sizes by powers of two and leaves out empty groups.
func Buckets(sizes []Size) []Bucket {
	var out []Bucket
	from := 0.0
	for _, r := range []struct {
		name string
		to   float64 // up to and including
	}{{"0", 0}, {"below 1", .9995}, {"1", 1}, {"2", 2}, {"3-4", 4}, {"5-8", 8}, {"9-16", 16}, {"17-32", 32}, {"33-64", 64},
		{"65-128", 128},
		{"129-256", 256}, {"257 and more", 1e18}} {
		b := Bucket{Name: r.name}
		for _, z := range sizes {
			if z.GPUs <= r.to && (z.GPUs > from || r.to == 0) {
				b.Jobs += z.Jobs
				b.Hours += z.GPUHours
			}
		}
		if from = r.to; b.Jobs > 0 {
			out = append(out, b)
		}
	}
	return out
}
