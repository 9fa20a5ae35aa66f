package look

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/traces"
	"clustergym/traces/csv"
	sacctfmt "clustergym/traces/sacct"
	"clustergym/traces/swf"
	"clustergym/traces/synth"
)

func traceVerb(a *cli.App) *cobra.Command {
	c := cli.Parent(&cobra.Command{
		Use:   "trace",
		Short: "Describe, generate and convert workload traces",
		Long: `trace works on workloads: tables of jobs with submit time, run time and number of GPUs.

A file may be plain or packed with gzip, zstd, bzip2 or zip. Its format is detected from its content, unless --format names
it.`,
		Example: `  gymctl trace formats
  gymctl trace synth --jobs 1000 -o jobs.csv
  gymctl trace stats jobs.csv`,
	})
	c.AddCommand(traceStats(a), traceSynth(a), traceConvert(a), traceAccount(a), traceFormats(a), traceGet(a))
	return c
}

// writeOptions are the flags of verbs that write a trace.
type writeOptions struct{ out, to string }

func (o *writeOptions) flags(c *cobra.Command) {
	o.to = workload.FormatCSV
	cli.Choice(c, &o.to, "to", "`FORMAT` to write: "+strings.Join(targets(), ", "), targets()...)
	c.Flags().StringVarP(&o.out, "output", "o", "", "write to `FILE` instead of standard output")
	c.Flags().Bool("json", false, "with -o: print one JSON document on what was written")
}

// checkDocument returns a mistake if the document and the trace would both go to standard output.
func checkDocument(c *cobra.Command, out string) error {
	if cli.AsJSON(c) && (out == "" || out == "-") {
		return fault.Mistakef("--json: the document goes to standard output; want -o FILE for the trace")
	}
	return nil
}

// synthOptions are the flags of trace synth.
type synthOptions struct {
	writeOptions
	cfg           synth.Config
	file, profile string
	sets          []string
	jobs          int
	seed          uint64
}

func traceSynth(a *cli.App) *cobra.Command {
	o := &synthOptions{cfg: synth.DefaultConfig()}
	c := &cobra.Command{
		Use:   "synth",
		Short: "Generate a workload like that of a real cluster",
		Long: `synth generates jobs from the published statistics of a real cluster, or from a published model of supercomputers
(profiles hpc and lublin), and writes them in the native CSV format or in Standard Workload Format (--to swf) to standard
output, or to the file that -o names (packed if it ends in .gz or .zst). The same settings and seed give the same bytes.
The profiles hpc and lublin need the same memory for any number of jobs.

-c reads settings from a YAML file; --set changes one of them. Settings and their defaults:

` + options.Indented(o.cfg),
		Example: `  gymctl trace synth --jobs 5 --seed 7
  gymctl trace synth --jobs 2000 --set rate=1.5 --set max_gpus=8 -o busy.csv.zst
  gymctl trace synth --jobs 2000 -o jobs.csv --json
  gymctl trace synth --profile hpc --jobs 1000 --set procs=1024 --to swf -o log.swf`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	f := c.Flags()
	f.StringVarP(&o.file, "config", "c", "", "read settings from this YAML `FILE`")
	f.StringArrayVar(&o.sets, "set", nil, "change a setting: `KEY=VALUE` (repeatable)")
	f.IntVar(&o.jobs, "jobs", o.cfg.Jobs, "how many jobs")
	f.StringVar(&o.profile, "profile", o.cfg.Profile, "`NAME` of what is imitated: "+strings.Join(synth.Profiles(), ", "))
	f.Uint64Var(&o.seed, "seed", 1, "another seed gives other jobs")
	o.writeOptions.flags(c)
	options.CompleteSet(c, func(*cobra.Command, []string) configs.Validator { return &o.cfg })
	cli.Complete(c, "profile", synth.Profiles()...)
	return c
}

// complete reads the settings.
func (o *synthOptions) complete(c *cobra.Command) error {
	if err := checkDocument(c, o.out); err != nil {
		return err
	}
	if o.file != "" {
		if err := options.DecodeFile(o.file, &o.cfg); err != nil {
			return err
		}
	}
	if err := options.SetAll(&o.cfg, o.sets); err != nil {
		return err
	}
	if c.Flags().Changed("jobs") {
		o.cfg.Jobs = o.jobs
	}
	if c.Flags().Changed("profile") {
		o.cfg.Profile = o.profile
	}
	if err := o.cfg.Validate(); err != nil {
		return &fault.Mistake{Err: err} // named by key: it may come from the file, from --set or from a flag
	}
	return nil
}

func (o *synthOptions) run(a *cli.App, c *cobra.Command) error {
	if err := o.complete(c); err != nil {
		return err
	}
	jobs, err := synth.New(o.cfg, o.seed)
	if err != nil {
		return err
	}
	n := 0
	err = a.WriteFile(o.out, []string{o.file}, func(w io.Writer) error {
		n, err = writeTrace(w, &stoppable{c.Context(), jobs}, o.to, synthHeader(o.cfg, o.seed), synth.Named(o.cfg.Profile),
			false)
		return err
	})
	if err != nil || !cli.AsJSON(c) {
		return err
	}
	settings, err := configs.JSON(o.cfg)
	if err != nil {
		return err
	}
	return a.JSON(struct {
		writtenTrace
		Seed     uint64          `json:"seed"`
		Settings json.RawMessage `json:"settings"`
	}{writtenTrace{o.out, o.to, n}, o.seed, settings})
}

// writtenTrace is what the JSON documents of trace synth and convert say of the written file.
type writtenTrace struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Jobs   int    `json:"jobs"`
}

// synthHeader returns the header of a log of generated jobs.
func synthHeader(cfg synth.Config, seed uint64) swf.Header {
	h := swf.Header{
		"Computer": "none: a generated workload", "MaxJobs": strconv.Itoa(cfg.Jobs), "MaxRecords": strconv.Itoa(cfg.Jobs),
		"Note": fmt.Sprintf("gymctl trace synth, profile %s, seed %d", cfg.Profile, seed),
	}
	if cfg.Procs > 0 {
		h["MaxProcs"] = strconv.Itoa(cfg.Procs)
	} else if cfg.Profile == "hpc" || cfg.Profile == "lublin" {
		h["MaxProcs"] = strconv.Itoa(synth.DefaultProcs)
	}
	return h
}

func traceConvert(a *cli.App) *cobra.Command {
	cfg, o := workload.DefaultTraceConfig(), &writeOptions{}
	c := &cobra.Command{
		Use:   "convert FILE --to FORMAT -o FILE",
		Short: "Write a trace in the native format or as an SWF log",
		Long: `convert reads a trace in any known format and writes its jobs to standard output, or to the file that -o names
(packed if it ends in .gz or .zst). It writes the native CSV format, with every field that has a column (name and group of
jobs if some have them), or a log in Standard Workload Format. It reports on standard error what the written format cannot hold.`,
		Example: `  gymctl trace synth --jobs 300 -o jobs.csv
  gymctl trace convert jobs.csv --to csv --skip 100 --jobs 50 -o part.csv.gz
  gymctl trace convert jobs.csv --to swf -o jobs.swf --json`,
		Args:              cli.Args(1, 1, "one FILE"),
		ValidArgsFunction: cli.OneFile,
		RunE: func(c *cobra.Command, files []string) error {
			if err := checkDocument(c, o.out); err != nil {
				return err
			}
			cfg.File = files[0]
			return convert(a, c, cfg, o)
		},
	}
	options.TraceFlags(c, &cfg)
	o.flags(c)
	return c
}

// convert writes a trace, and says what it could not write.
func convert(a *cli.App, c *cobra.Command, cfg workload.TraceConfig, o *writeOptions) error {
	t, err := openTrace(c, cfg)
	if err != nil {
		return err
	}
	defer t.Close() //nolint:errcheck // only read
	n, jobs := 0, &contents{Stream: t}
	err = a.WriteFile(o.out, []string{cfg.File, cfg.Profiles}, func(w io.Writer) error {
		h := t.Header()
		if h == nil {
			h = swf.Header{"Conversion": "from format " + t.Info().Format + " by gymctl trace convert"}
		}
		name, group := t.Named()
		n, err = writeTrace(w, jobs, o.to, h, name, group)
		return err
	})
	if err != nil {
		return err
	}
	i := t.Info()
	if o.out != "" && o.out != "-" {
		a.Notef("%s → %s (%s): %s, %d left out, %d moved", i.File, o.out, o.to, plain.Count(n, "job", "jobs"), i.Dropped,
			i.Moved)
	}
	for _, k := range i.Skipped {
		if k.Reason == sacctfmt.Duplicate {
			a.Notef("note: %d left out: %s", k.Count, k.Reason)
		}
	}
	if lost := jobs.lost(o.to); lost != "" {
		a.Notef("note: %s has no place for %s", o.to, lost)
	}
	if i.Timeless && i.Format != "openb" {
		a.Notef("note: run times are 0, as format %s does not tell them; --profiles gives a table from which they follow",
			i.Format)
	}
	if !cli.AsJSON(c) {
		return nil
	}
	return a.JSON(struct {
		writtenTrace
		Trace workload.Info `json:"trace"` // that was read
		Lost  []LostField   `json:"lost"`
	}{writtenTrace{o.out, o.to, n}, i, jobs.lostFields(o.to)})
}

// targets returns the formats that can be written.
func targets() []string {
	var names []string
	for _, f := range workload.Formats() {
		if f.Writes {
			names = append(names, f.Name)
		}
	}
	return names
}

// writeTrace writes jobs in format to, one by one. h is the header of a log; name and group say whether jobs can have a
// name and a group. If the format cannot express a job, that is the user's mistake.
func writeTrace(w io.Writer, jobs traces.Stream, to string, h swf.Header, name, group bool) (n int, err error) {
	checked := &failing{Stream: jobs}
	if to == workload.FormatSWF {
		n, err = swf.Write(w, checked, h)
	} else {
		n, err = csv.WriteNamed(w, checked, name, group)
	}
	if err != nil && checked.err == nil && strings.HasPrefix(err.Error(), to+": job ") {
		return n, fault.Mistakef("%w", err)
	}
	return n, err
}

// failing keeps the error of its stream.
type failing struct {
	traces.Stream
	err error
}

// Next implements traces.Stream.
func (f *failing) Next(j *traces.Job) error {
	err := f.Stream.Next(j)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return err
}

// stoppable ends a stream when ctx is done.
type stoppable struct {
	ctx context.Context
	traces.Stream
}

// Next implements traces.Stream.
func (s *stoppable) Next(j *traces.Job) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return s.Stream.Next(j)
}

func traceFormats(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:     "formats",
		Short:   "List the trace formats that can be read",
		Example: `  gymctl trace formats`,
		RunE: func(c *cobra.Command, _ []string) error {
			formats := workload.Formats()
			return a.Show(c, cli.Keyed{"formats": formats}, func(io.Writer) error { return showFormats(a, formats) })
		},
	}
	cli.JSONFlag(c)
	return c
}

func showFormats(a *cli.App, formats []workload.Format) error {
	for i, f := range formats {
		if i > 0 {
			a.Printf("\n")
		}
		order := "in order of submit, unless --sort"
		if !f.Sorted {
			order = "in any order"
		}
		a.Printf("%s: %s\n  known by  %s\n  columns   %s\n  rows      %s\n", f.Name, f.What, f.KnownBy, f.Columns, order)
		if f.Profiles {
			a.Printf("  run times with --profiles, from a throughput table\n")
		}
		if f.Writes {
			a.Printf("  written   by gymctl trace synth and convert, --to %s\n", f.Name)
		}
	}
	return nil
}

// openTrace opens the trace that the flags name.
func openTrace(c *cobra.Command, cfg workload.TraceConfig) (*workload.Trace, error) {
	if cfg.File == "" {
		return nil, fault.Mistakef(`%s: got "", want the path of a trace`, c.CommandPath())
	}
	if err := cfg.Validate(); err != nil {
		return nil, cli.FlagFaults(c, err, nil)
	}
	return workload.OpenUntimed(c.Context(), cfg)
}
