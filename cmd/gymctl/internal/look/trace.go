package look

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
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
	c.AddCommand(traceStats(a), traceSynth(a), traceConvert(a), traceFormats(a), traceGet(a))
	return c
}

func traceSynth(a *cli.App) *cobra.Command {
	cfg := synth.DefaultConfig()
	var (
		file, out, to string
		sets          []string
		flags                = cfg
		seed          uint64 = 1
		asJSON        bool
	)
	c := &cobra.Command{
		Use:   "synth",
		Short: "Generate a workload like that of a real cluster",
		Long: `synth generates jobs from the published statistics of a real cluster, or from a published model of supercomputers
(profiles hpc and lublin), and writes them in the native CSV format or in Standard Workload Format (--to swf) to standard
output, or to the file that -o names (packed if it ends in .gz or .zst). The same settings and seed give the same bytes.
The profiles hpc and lublin need the same memory for any number of jobs.

-c reads settings from a YAML file; --set changes one of them. Settings and their defaults:

` + options.Indented(cfg),
		Example: `  gymctl trace synth --jobs 5 --seed 7
  gymctl trace synth --jobs 2000 --set rate=1.5 --set max_gpus=8 -o busy.csv.zst
  gymctl trace synth --jobs 2000 -o jobs.csv --json
  gymctl trace synth --profile hpc --jobs 1000 --set procs=1024 --to swf -o log.swf`,
		Args: cli.Args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkTarget(to); err != nil {
				return err
			}
			if err := checkDocument(asJSON, out); err != nil {
				return err
			}
			if file != "" {
				if err := options.DecodeFile(file, &cfg); err != nil {
					return err
				}
			}
			if err := options.SetAll(&cfg, sets); err != nil {
				return err
			}
			if c.Flags().Changed("jobs") {
				cfg.Jobs = flags.Jobs
			}
			if c.Flags().Changed("profile") {
				cfg.Profile = flags.Profile
			}
			if err := cfg.Validate(); err != nil {
				return &fault.Mistake{Err: err} // named by key: it may come from the file, from --set or from a flag
			}
			jobs, err := synth.New(cfg, seed)
			if err != nil {
				return err
			}
			n := 0
			err = a.WriteFile(out, []string{file}, func(w io.Writer) error {
				n, err = writeTrace(w, &stoppable{c.Context(), jobs}, to, synthHeader(cfg, seed), synth.Named(cfg.Profile), false)
				return err
			})
			if err != nil || !asJSON {
				return err
			}
			settings, err := configs.JSON(cfg)
			if err != nil {
				return err
			}
			return a.JSON(struct {
				writtenTrace
				Seed     uint64          `json:"seed"`
				Settings json.RawMessage `json:"settings"`
			}{writtenTrace{out, to, n}, seed, settings})
		},
	}
	f := c.Flags()
	f.StringVarP(&file, "config", "c", "", "read settings from this YAML `FILE`")
	f.StringArrayVar(&sets, "set", nil, "change a setting: `KEY=VALUE` (repeatable)")
	f.IntVar(&flags.Jobs, "jobs", cfg.Jobs, "how many jobs")
	f.StringVar(&flags.Profile, "profile", cfg.Profile, "`NAME` of what is imitated: "+strings.Join(synth.Profiles(), ", "))
	f.Uint64Var(&seed, "seed", seed, "another seed gives other jobs")
	toFlag(c, &to)
	f.StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	documentFlag(c, &asJSON)
	options.CompleteSet(c, func(*cobra.Command, []string) configs.Validator { return &cfg })
	cli.Complete(c, "profile", synth.Profiles()...)
	return c
}

// writtenTrace is what the JSON documents of trace synth and convert say of the written file.
type writtenTrace struct {
	File   string `json:"file"`
	Format string `json:"format"`
	Jobs   int    `json:"jobs"`
}

func documentFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "with -o: print one JSON document on what was written")
}

// checkDocument returns a mistake if the document and the trace would both go to standard output.
func checkDocument(asJSON bool, out string) error {
	if asJSON && (out == "" || out == "-") {
		return fault.Mistakef("--json: the document goes to standard output; want -o FILE for the trace")
	}
	return nil
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
	cfg := workload.DefaultTraceConfig()
	var (
		to, out string
		asJSON  bool
	)
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
			cfg.File = files[0]
			if err := checkTarget(to); err != nil {
				return err
			}
			if err := checkDocument(asJSON, out); err != nil {
				return err
			}
			t, err := openTrace(c, cfg)
			if err != nil {
				return err
			}
			defer t.Close() //nolint:errcheck // only read
			n, jobs := 0, &contents{Stream: t}
			err = a.WriteFile(out, []string{files[0], cfg.Profiles}, func(w io.Writer) error {
				h := t.Header()
				if h == nil {
					h = swf.Header{"Conversion": "from format " + t.Info().Format + " by gymctl trace convert"}
				}
				name, group := t.Named()
				n, err = writeTrace(w, jobs, to, h, name, group)
				return err
			})
			if err != nil {
				return err
			}
			i := t.Info()
			if out != "" && out != "-" {
				a.Notef("%s → %s (%s): %s, %d left out, %d moved", i.File, out, to, plain.Count(n, "job", "jobs"), i.Dropped, i.Moved)
			}
			for _, k := range i.Skipped {
				if k.Reason == sacctfmt.Duplicate {
					a.Notef("note: %d left out: %s", k.Count, k.Reason)
				}
			}
			if lost := jobs.lost(to); lost != "" {
				a.Notef("note: %s has no place for %s", to, lost)
			}
			if i.Timeless && i.Format != "openb" {
				a.Notef("note: run times are 0, as format %s does not tell them; --profiles gives a table from which they follow", i.Format)
			}
			if asJSON {
				return a.JSON(struct {
					writtenTrace
					Trace workload.Info `json:"trace"` // that was read
					Lost  []LostField   `json:"lost"`
				}{writtenTrace{out, to, n}, i, jobs.lostFields(to)})
			}
			return nil
		},
	}
	options.TraceFlags(c, &cfg)
	toFlag(c, &to)
	c.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	documentFlag(c, &asJSON)
	return c
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

func toFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "to", workload.FormatCSV, "`FORMAT` to write: "+strings.Join(targets(), ", "))
	cli.Complete(c, "to", targets()...)
}

func checkTarget(to string) error {
	if !slices.Contains(targets(), to) {
		return fault.Mistakef("--to: got %q, want %s%s", to, strings.Join(targets(), " or "), nearest.Meant(to, targets()))
	}
	return nil
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
	var asJSON bool
	c := &cobra.Command{
		Use:     "formats",
		Short:   "List the trace formats that can be read",
		Example: `  gymctl trace formats`,
		Args:    cli.Args(0, 0, "flags only"),
		RunE: func(*cobra.Command, []string) error {
			formats := workload.Formats()
			if asJSON {
				return a.JSON(struct {
					Formats []workload.Format `json:"formats"`
				}{formats})
			}
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
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
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
