package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/env/sim"
	"clustergym/experiments/config"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/traces/csv"
	"clustergym/traces/profile"
)

// flagMistake turns an error of the flag parser into one sentence: for an unknown flag it suggests the nearest one,
// for a value that cannot be read it says what would be right.
func flagMistake(c *cobra.Command, err error) error {
	verb := verbName(c)
	var (
		missing *pflag.NotExistError
		value   *pflag.InvalidValueError
		without *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &missing):
		name := missing.GetSpecifiedName()
		if len(missing.GetSpecifiedShortnames()) > 0 {
			return fault.Mistakef("%sflag -%s is unknown; see %s --help", verb, name, c.CommandPath())
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := nearest.Name(name, names); near != "" {
			return fault.Mistakef("%sflag --%s is unknown; did you mean --%s?", verb, name, near)
		}
		return fault.Mistakef("%sflag --%s is unknown; see %s --help", verb, name, c.CommandPath())
	case errors.As(err, &value):
		f := value.GetFlag()
		want := wantOf(f)
		if _, own, says := strings.Cut(value.Unwrap().Error(), "want "); says {
			want = own
		}
		return fault.Mistakef("--%s: got %q, want %s", f.Name, value.GetValue(), want)
	case errors.As(err, &without):
		return fault.Mistakef("--%s: got nothing, want %s", without.GetFlag().Name, wantOf(without.GetFlag()))
	}
	return fault.Mistakef("%s%w", verb, err)
}

// verbName returns the beginning of a message about c: its path without the program's name, "" for the program itself.
func verbName(c *cobra.Command) string {
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	if verb == "" {
		return ""
	}
	return verb + ": "
}

// wantOf describes the values that a flag accepts.
func wantOf(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int", "uint64", "uint", "int64":
		if f.Value.Type()[0] == 'u' {
			return "a whole number, 0 or more"
		}
		return "a whole number"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a time such as 90s, 40m or 72h"
	case "columns":
		return "NAME=COLUMN, joined by commas, as submit_time=Submit,duration=Elapsed"
	case "size":
		return "a size such as 4GiB, 500MB or 1073741824"
	}
	if name, _ := pflag.UnquoteUsage(f); name != "" && name != "string" && name != "stringArray" {
		return name
	}
	return "a value"
}

// flagFaults rewrites every fault of a configuration to name the flag of c that sets the value. names holds the flags whose
// names differ from their keys; otherwise the flag is the last part of the key. A key without a flag is named as an
// argument of --set.
func flagFaults(c *cobra.Command, err error, names map[string]string) error {
	faults := fault.All(err)
	if len(faults) == 0 {
		return err
	}
	var l fault.List
	for _, f := range faults {
		key, _, _ := strings.Cut(f.Key, "[") // for a list, the value shows which element it is
		name, ok := names[key]
		if !ok {
			name = key[strings.LastIndexByte(key, '.')+1:]
			name = strings.ReplaceAll(name, "_", "-")
			if c.Flags().Lookup(name) == nil && c.Flags().Lookup("set") != nil {
				name = "set " + key
			}
		}
		g := *f
		g.Key = "--" + name
		l.Join("", &g)
	}
	return &fault.Mistake{Err: l.Err()}
}

// traceFlags adds the flags that say how to read a trace.
func traceFlags(c *cobra.Command, t *workload.TraceConfig) {
	f := c.Flags()
	f.StringVar(&t.Format, "format", t.Format, "`NAME` of the trace's format as in gymctl trace formats; auto = by content")
	columnsFlag(c, &t.Columns)
	f.StringVar(&t.Delimiter, "delimiter", t.Delimiter, "comma, semicolon, tab, bar or a `CHAR` between the fields of a csv or sacct file (default what its header shows)")
	f.StringVar(&t.Profiles, "profiles", t.Profiles, "throughput table, FILE or `DIR`: profiles of the jobs' models, and run times of those that count steps")
	f.StringVar(&t.Reference, "reference", t.Reference, "GPU `TYPE` that run times refer to, if --profiles or the trace have several")
	f.StringVar(&t.Mix, "mix", t.Mix, "`NAME` of a mix of models, drawn for the jobs without a profile: "+strings.Join(profile.Names(), ", "))
	f.BoolVar(&t.Sort, "sort", t.Sort, "sort the jobs by submit time, instead of refusing an unsorted file")
	f.IntVar(&t.Skip, "skip", t.Skip, "skip the first `N` jobs, not counting those that the reader drops")
	f.IntVar(&t.Jobs, "jobs", t.Jobs, "read `N` jobs, 0 = all")
	completeDir(c, "profiles")
	complete(c, "format", workload.FormatNames()...)
	complete(c, "mix", profile.Names()...)
}

// limitFlag adds --limit.
func limitFlag(c *cobra.Command, limit *time.Duration) {
	c.Flags().DurationVar(limit, "limit", *limit, "`TIME` that stands for the time limit of jobs that have none, for estimates trace; 0s = they have none")
}

// columnsFlag adds --columns.
func columnsFlag(c *cobra.Command, columns *map[string]string) {
	c.Flags().Var((*columnMap)(columns), "columns", "`MAP` from names of the format csv to the file's, as submit_time=Submit,duration=Elapsed,num_gpu=GPUs")
	names := csv.Columns()
	for i := range names {
		names[i] += "="
	}
	completeBy(c, "columns", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// columnMap is the value of --columns: NAME=COLUMN, joined by commas. A piece without = belongs to the column before it, whose
// name has a comma.
type columnMap map[string]string

// Set implements pflag.Value.
func (m *columnMap) Set(text string) error {
	all := map[string]string{}
	maps.Copy(all, *m)
	last := ""
	for piece := range strings.SplitSeq(text, ",") {
		name, column, ok := strings.Cut(piece, "=")
		switch {
		case ok:
			last = strings.TrimSpace(name)
			all[last] = strings.TrimSpace(column)
		case last == "":
			return errors.New("a name without a column")
		default:
			all[last] += "," + piece
		}
	}
	*m = all
	return nil
}

// String implements pflag.Value.
func (m *columnMap) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*m)) {
		all = append(all, name+"="+(*m)[name])
	}
	return strings.Join(all, ",")
}

// Type implements pflag.Value.
func (m *columnMap) Type() string { return "columns" }

// estimatesFlag is a flag of estimates.
type estimatesFlag struct{ *sim.Estimates }

// Set implements pflag.Value.
func (f estimatesFlag) Set(s string) error { return f.UnmarshalText([]byte(s)) }

// Type implements pflag.Value.
func (f estimatesFlag) Type() string { return "string" }

// kernelsFlag adds --kernels; useKernels applies it.
func kernelsFlag(c *cobra.Command, name *string) {
	sets := config.KernelSets()
	c.Flags().StringVar(name, "kernels", sets[0], "`SET` of float32 kernels: "+strings.Join(sets, ", ")+"; auto = the fastest")
	complete(c, "kernels", sets...)
}

// useKernels selects the set of kernels that --kernels names.
func useKernels(name string) error {
	if !slices.Contains(config.KernelSets(), name) {
		return unknown("--kernels: set", name, config.KernelSets())
	}
	if err := config.UseKernels(name); err != nil {
		return fault.Mistakef("--%w", err)
	}
	return nil
}
