package options

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/lab/workload"
	"clustergym/traces/csv"
	"clustergym/traces/profile"
)

// TraceFlags adds the flags that say how to read a trace.
func TraceFlags(c *cobra.Command, t *workload.TraceConfig) {
	f := c.Flags()
	f.StringVar(&t.Format, "format", t.Format,
		"`NAME` of the trace's format as in gymctl trace formats; auto = by content")
	columnsFlag(c, &t.Columns)
	f.StringVar(&t.Delimiter, "delimiter", t.Delimiter,
		"comma, semicolon, tab, bar or a `CHAR` between the fields of a csv or sacct file (default what its header shows)")
	f.StringVar(&t.Profiles, "profiles", t.Profiles,
		"throughput table, FILE or `DIR`: profiles of the jobs' models, and run times of those that count steps")
	f.StringVar(&t.Reference, "reference", t.Reference,
		"GPU `TYPE` that run times refer to, if --profiles or the trace have several")
	f.StringVar(&t.Mix, "mix", t.Mix,
		"`NAME` of a mix of models, drawn for the jobs without a profile: "+strings.Join(profile.Names(), ", "))
	f.BoolVar(&t.Sort, "sort", t.Sort, "sort the jobs by submit time, instead of refusing an unsorted file")
	f.IntVar(&t.Skip, "skip", t.Skip, "skip the first `N` jobs, not counting those that the reader drops")
	f.IntVar(&t.Jobs, "jobs", t.Jobs, "read `N` jobs, 0 = all")
	cli.CompleteDir(c, "profiles")
	cli.Complete(c, "format", workload.FormatNames()...)
	cli.Complete(c, "mix", profile.Names()...)
}

// AcceptHelp is the help of --accept-left-out.
const AcceptHelp = "take the trace even if more than 5 % of its GPU time can never run on the cluster and is left out"

// LimitHelp is the help of --limit.
const LimitHelp = "`TIME` that stands for the time limit of jobs that have none, for estimates trace; 0s = they have " +
	"none"

// columnsFlag adds --columns.
func columnsFlag(c *cobra.Command, columns *map[string]string) {
	c.Flags().Var((*columnMap)(columns), "columns",
		"`MAP` from names of the format csv to the file's, as submit_time=Submit,duration=Elapsed,num_gpu=GPUs")
	names := csv.Columns()
	for i := range names {
		names[i] += "="
	}
	cli.CompleteBy(c, "columns",
		cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// columnMap is the value of --columns: NAME=COLUMN, joined by commas. A piece without = belongs to the column before
// it, whose name has a comma.
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
