package look

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/live"
	"clustergym/live/slurm"
	"clustergym/traces"
	sacctfmt "clustergym/traces/sacct"
)

// SlurmCommands returns what runs Slurm's commands; tests replace it. A month of a large cluster takes sacct minutes.
var SlurmCommands = func(s *options.SlurmAccess) slurm.Runner {
	return s.Through(slurm.Exec{Timeout: time.Hour, Bound: 1 << 40})
}

// slurmFlags are the flags of trace get slurm.
type slurmFlags struct {
	options.SlurmAccess
	since, until, from, out, vc string
}

// What the jobs' VC is.
const (
	vcPartition = "partition"
	vcAccount   = "account"
)

func traceGetSlurm(a *cli.App) *cobra.Command {
	g := slurmFlags{vc: vcPartition}
	c := &cobra.Command{
		Use:   "slurm",
		Short: "Fetch the history of your own Slurm cluster",
		Long: `slurm asks sacct for the jobs of all users and writes them in a file that every command reads as a trace (format sacct).
It asks for a month at a time, since sacct holds its answer in memory, and only reads. Where sacct shows you only your
own jobs (PrivateData=jobs), an operator has to run it. The file appears as a whole or not at all.

--from reads what sacct has printed elsewhere instead, by sacct -P or by sacct --json, plain or packed:

  sacct -a -X -D --json -S 2024-01-01 -E 2024-02-01 > jobs.json

The file has names of users and jobs. GPUs are known only if slurm.conf has AccountingStorageTRES=gres/gpu.`,
		Example: `  gymctl trace get slurm
  gymctl trace get slurm -S 2024-01-01 -E 2024-07-01 -o history.txt.gz
  gymctl trace get slurm --from jobs.json -o history.txt.gz`,
		RunE: func(c *cobra.Command, _ []string) error { return getSlurm(a, c, &g) },
	}
	f := c.Flags()
	f.StringVarP(&g.since, "since", "S", "90d",
		"the first `TIME`: 2024-01-31, 2024-01-31T12:00:00 (UTC), or how long ago: 12h, 90d, 52w")
	f.StringVarP(&g.until, "until", "E", "now", "the last `TIME`, likewise")
	f.StringVar(&g.from, "from", "", "read this `FILE` of sacct -P or sacct --json, and ask nobody")
	cli.Choice(c, &g.vc, "vc", "what a job's virtual cluster is: partition or account; the other one becomes its group",
		vcPartition, vcAccount)
	g.SlurmAccess.Add(f)
	f.StringVarP(&g.out, "output", "o", "slurm-jobs.txt.gz",
		"write to `FILE`, packed if it ends in .gz or .zst; - for standard output")
	f.Bool("json", false, "print one JSON document on what was written")
	cli.Apart(c, []string{"from"}, "since", "until", "ssh", "slurm-conf")
	cli.Filled(c, "output")
	return c
}

// FetchedHistory is what the JSON document of trace get slurm says.
type FetchedHistory struct {
	File      string          `json:"file"`
	Rows      int             `json:"rows"`   // that sacct has printed
	Again     int             `json:"again"`  // rows that two months had; they are written once
	Broken    int             `json:"broken"` // lines that were left out, behind a line break in a name
	Jobs      int             `json:"jobs"`
	Skipped   []workload.Skip `json:"skipped"` // jobs that a run leaves out, by reason
	Users     int             `json:"users"`
	VCs       int             `json:"vcs"`
	GPUJobs   int             `json:"gpu_jobs"`
	GPUTypes  []string        `json:"gpu_types"` // that jobs ask for
	Estimates int             `json:"estimates"` // jobs with a time limit
	Span      string          `json:"span"`      // from the first submit to the last
}

func getSlurm(a *cli.App, c *cobra.Command, g *slurmFlags) error {
	if err := checkDocument(c, g.out); err != nil {
		return err
	}
	var h FetchedHistory
	err := a.WriteFile(g.out, []string{g.from}, func(w io.Writer) error {
		if g.from != "" {
			return copyHistory(c.Context(), w, g)
		}
		return askSlurm(c.Context(), a, w, g, &h)
	})
	if err != nil || g.out == "-" {
		return err
	}
	if err := h.look(c.Context(), g.out); err != nil {
		return err
	}
	return a.Show(c, h, func(io.Writer) error {
		showHistory(a, &h)
		return nil
	})
}

// askSlurm lets sacct write the history to w.
func askSlurm(ctx context.Context, a *cli.App, w io.Writer, g *slurmFlags, h *FetchedHistory) error {
	now := a.Now().UTC()
	since, err := instant("since", g.since, now)
	if err != nil {
		return err
	}
	until, err := instant("until", g.until, now)
	if err != nil {
		return err
	}
	if !since.Before(until) {
		return fault.Mistakef("--since %s: want a time before --until %s", g.since, g.until)
	}
	bar := cli.NewBar(a, 0)
	opt := slurm.HistoryOptions{Since: since, Until: until, Accounts: g.vc == vcAccount}
	opt.Progress = func(done, all, rows int) {
		amount := func(done, all int64) string { return fmt.Sprintf("%d of %d months, %d rows", done, all, rows) }
		rate := func(perSecond float64) string { return fmt.Sprintf("%.1f months/min", 60*perSecond) }
		bar.Show("sacct", int64(done), int64(all), amount, rate)
	}
	count, err := slurm.History(ctx, SlurmCommands(&g.SlurmAccess), opt, w)
	bar.Clear()
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: nothing is written", fault.ErrInterrupted)
	case errors.Is(err, live.ErrUnsupported):
		return fault.Mistakef("%w", err)
	}
	h.Rows, h.Again, h.Broken = count.Rows, count.Again, count.Broken
	return err
}

// instant reads a time, or how long ago it is.
func instant(flag, s string, now time.Time) (time.Time, error) {
	if s == "now" {
		return now, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	if n := len(s) - 1; n > 0 {
		unit := map[byte]time.Duration{'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[s[n]]
		if v, err := strconv.ParseUint(s[:n], 10, 16); err == nil && unit > 0 {
			return now.Add(-time.Duration(v) * unit), nil
		}
	}
	return now,
		fault.Mistakef("--%s: got %q, want 2024-01-31, 2024-01-31T12:00:00, now, or how long ago as 12h, 90d or 52w", flag, s)
}

// copyHistory writes what sacct has printed into a file, as sacct -P would have.
func copyHistory(ctx context.Context, w io.Writer, g *slurmFlags) error {
	f, err := (*traces.Files)(nil).Open(ctx, g.from)
	if err != nil {
		return options.FileMistake(g.from, err)
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewReaderSize(f, 1<<16)
	head, err := in.Peek(1 << 16)
	if err != nil && err != io.EOF {
		return options.FileMistake(g.from, err)
	}
	if !sacctfmt.Sniff(head) {
		if says := sacctfmt.Mistaken(head); says != "" {
			return fault.Mistakef("%s: %s", g.from, says)
		}
		return fault.Mistakef("%s: this is neither what sacct -P prints nor sacct --json", g.from)
	}
	text := sacctfmt.AsText(in, g.from)
	if g.vc == vcAccount {
		text = sacctfmt.Renamed(text, map[string]string{"Partition": "Account", "Account": "Partition"})
	}
	_, err = io.Copy(w, text)
	return err
}

// look reads the file that was written, as every command will.
func (h *FetchedHistory) look(ctx context.Context, file string) error {
	cfg := workload.DefaultTraceConfig()
	cfg.File, cfg.Format = file, "sacct"
	t, err := workload.OpenUntimed(ctx, cfg)
	if err != nil {
		return err
	}
	defer t.Close() //nolint:errcheck // only read
	h.File, h.Skipped, h.GPUTypes = file, []workload.Skip{}, []string{}
	vcs, users := map[string]bool{}, map[string]bool{}
	var j traces.Job
	last := time.Duration(0)
	for {
		if err := t.Next(&j); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		h.Jobs++
		vcs[j.VC], users[j.User] = true, true
		if j.GPUs > 0 {
			h.GPUJobs++
		}
		if j.Estimate > 0 {
			h.Estimates++
		}
		for _, k := range j.GPUTypes {
			if !slices.Contains(h.GPUTypes, k) {
				h.GPUTypes = append(h.GPUTypes, k)
			}
		}
		last = j.Submit
	}
	slices.Sort(h.GPUTypes)
	h.Users, h.VCs, h.Span = len(users), len(vcs), last.Round(time.Second).String()
	h.Skipped = append(h.Skipped, t.Info().Skipped...)
	return nil
}

func showHistory(a *cli.App, h *FetchedHistory) {
	a.Printf("%s: %s of %s in %s, over %s\n", h.File, plain.Count(h.Jobs, "job", "jobs"),
		plain.Count(h.Users, "user", "users"), plain.Count(h.VCs, "virtual cluster", "virtual clusters"), h.Span)
	a.Printf("  GPUs      %s", plain.Count(h.GPUJobs, "job", "jobs"))
	if len(h.GPUTypes) > 0 {
		a.Printf("; some ask for %s", strings.Join(h.GPUTypes, ", "))
	}
	a.Printf("\n  limits    %s a time limit, which is the estimate\n", plain.Count(h.Estimates, "job has", "jobs have"))
	for _, s := range h.Skipped {
		a.Printf("  left out  %d: %s\n", s.Count, s.Reason)
	}
	if h.Again > 0 {
		a.Printf("  twice     %d rows that two months had, written once\n", h.Again)
	}
	if h.Broken > 0 {
		a.Printf("  broken    %d lines behind a line break in a name, left out\n", h.Broken)
	}
	a.Printf("  try       gymctl trace stats %s\n", cli.ShellWords(h.File))
	switch {
	case h.Jobs == 0:
		a.Notef("note: there is no job that has run and ended in this time; --since asks for more (sacct shows only your " +
			"own jobs where slurm.conf has PrivateData=jobs)")
	case h.GPUJobs == 0:
		a.Notef("note: no job has GPUs, so no run takes any of them; sacct counts GPUs only where slurm.conf has " +
			"AccountingStorageTRES=gres/gpu")
	}
}
