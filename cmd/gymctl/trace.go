package main

import (
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"clustergym/configs"
	"clustergym/experiments"
	"clustergym/traces"
	"clustergym/traces/csv"
	"clustergym/traces/synth"
)

func traceVerb(a *app) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "trace",
		Short: "Describe, generate and convert workload traces",
		Long: `trace works on workloads: tables of jobs with submit time, run time and number of GPUs.

A file may be plain or packed with gzip or zstd. Its format is found by its content, unless --format names it.`,
		Example: `  gymctl trace formats
  gymctl trace synth --jobs 1000 -o jobs.csv
  gymctl trace stats jobs.csv`,
	})
	c.AddCommand(traceStats(a), traceSynth(a), traceConvert(a), traceFormats(a))
	return c
}

func traceSynth(a *app) *cobra.Command {
	cfg := synth.DefaultConfig()
	var (
		file, out string
		sets      []string
		jobs      int
		seed      uint64 = 1
	)
	c := &cobra.Command{
		Use:   "synth",
		Short: "Generate a workload like that of a real cluster",
		Long: `synth generates jobs after the published statistics of a real cluster and writes them in the native CSV
format to standard output, or to the file that -o names (packed if it ends in .gz or .zst). The same settings and
seed give the same bytes.

-c reads settings from a YAML file; --set changes one of them. Settings and their defaults:

` + indented(cfg),
		Example: `  gymctl trace synth --jobs 5 --seed 7
  gymctl trace synth --jobs 2000 --set rate=1.5 --set max_gpus=8 -o busy.csv.zst`,
		Args: args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if file != "" {
				if err := decodeFile(file, &cfg); err != nil {
					return err
				}
			}
			if err := setAll(&cfg, sets); err != nil {
				return err
			}
			if c.Flags().Changed("jobs") {
				cfg.Jobs = jobs
			}
			if err := cfg.Validate(); err != nil {
				return &experiments.InputError{Err: err} // by key: it may come from the file, from --set or from --jobs
			}
			list, err := synth.Generate(cfg, seed)
			if err != nil {
				return err
			}
			return a.writeTo(out, []string{file}, func(w io.Writer) error {
				_, err := csv.Write(w, &traces.Slice{Jobs: list})
				return err
			})
		},
	}
	f := c.Flags()
	f.StringVarP(&file, "config", "c", "", "read settings from this YAML `FILE`")
	f.StringArrayVar(&sets, "set", nil, "change a setting: `KEY=VALUE` (repeatable)")
	f.IntVar(&jobs, "jobs", cfg.Jobs, "how many jobs")
	f.Uint64Var(&seed, "seed", seed, "another seed gives other jobs")
	f.StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	return c
}

func traceConvert(a *app) *cobra.Command {
	cfg := experiments.DefaultTraceConfig()
	var to, out string
	c := &cobra.Command{
		Use:   "convert FILE --to FORMAT -o FILE",
		Short: "Write a trace in the native format",
		Long: `convert reads a trace in any known format and writes its jobs in the native CSV format, every field that the
project knows, to standard output or to the file that -o names (packed if it ends in .gz or .zst).`,
		Example: `  gymctl trace synth --jobs 300 -o jobs.csv
  gymctl trace convert jobs.csv --to csv --skip 100 --jobs 50 -o part.csv.gz`,
		Args: args(1, 1, "one FILE"),
		RunE: func(c *cobra.Command, files []string) error {
			cfg.File = files[0]
			if to != experiments.FormatCSV {
				return mistake("--to: got %q, want %s", to, experiments.FormatCSV)
			}
			t, err := openTrace(c, cfg)
			if err != nil {
				return err
			}
			defer t.Close() //nolint:errcheck // only read
			n := 0
			err = a.writeTo(out, files, func(w io.Writer) error {
				n, err = csv.Write(w, t)
				return err
			})
			if err != nil {
				return err
			}
			if i := t.Info(); out != "" && out != "-" {
				a.notef("%s → %s (%s): %d jobs, %d dropped, %d moved", i.File, out, to, n, i.Dropped, i.Moved)
			}
			return nil
		},
	}
	traceFlags(c, &cfg)
	c.Flags().StringVar(&to, "to", experiments.FormatCSV, "format to write: "+experiments.FormatCSV)
	c.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	complete(c, "to", experiments.FormatCSV)
	return c
}

func traceFormats(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "formats",
		Short:   "List the trace formats that can be read",
		Example: `  gymctl trace formats`,
		Args:    args(0, 0, "flags only"),
		RunE: func(*cobra.Command, []string) error {
			formats := experiments.Formats()
			if asJSON {
				return a.json(struct {
					Formats []experiments.Format `json:"formats"`
				}{formats})
			}
			for i, f := range formats {
				if i > 0 {
					a.printf("\n")
				}
				order := "in order of submit, unless --sort"
				if !f.Sorted {
					order = "in any order"
				}
				a.printf("%s: %s\n  known by  %s\n  columns   %s\n  rows      %s\n", f.Name, f.What, f.KnownBy, f.Columns, order)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// openTrace opens a trace that is named by flags.
func openTrace(c *cobra.Command, cfg experiments.TraceConfig) (*experiments.Trace, error) {
	if cfg.File == "" {
		return nil, mistake(`%s: got "", want the path of a trace`, c.CommandPath())
	}
	if err := cfg.Validate(); err != nil {
		return nil, flagFaults(err, nil)
	}
	return experiments.OpenTrace(c.Context(), cfg)
}

// decodeFile reads a YAML file into cfg.
func decodeFile(file string, cfg configs.Validator) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fileMistake(file, err)
	}
	if err := configs.DecodeBytes(file, data, cfg); err != nil {
		return &experiments.InputError{Err: err}
	}
	return nil
}

// setAll carries out --set flags in order.
func setAll(cfg configs.Validator, sets []string) error {
	for _, s := range sets {
		if err := configs.Set(cfg, s); err != nil {
			return mistake("--set %s: %w", strconv.Quote(s), err)
		}
	}
	return nil
}
