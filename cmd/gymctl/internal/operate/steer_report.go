package operate

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/ops/steer/report"
)

func steerReport(a *cli.App) *cobra.Command {
	var g SteerFlags
	var html string
	var asks int
	c := &cobra.Command{
		Use:   "report LOG...",
		Short: "Say from the logs of steer whether the policy would help",
		Long: `report reads what gymctl steer --log has written, and says (docs/guides/steer-report.md):

  agreement    how many of the jobs that the cluster started the policy would have started, and where
  replay       how long the observed jobs would have waited under the policy, a model of the cluster's own scheduler, and
               simple rivals
  calibration  how long they waited under that model and in the cluster: a gain that is smaller than this error is none

LOG.1, LOG.2 and so on are read with LOG. The model is the one of several rules that comes closest in the first half of the
time; all comparisons are of the jobs of the second half. The policy is that of the log, opened as steer opened it; --policy,
--policy-onnx, --history, --estimates, --budget and --limit choose another one, or where its files are now.`,
		Example: `  gymctl steer report steer.jsonl
  gymctl steer report steer.jsonl --html report.html
  gymctl steer report steer.jsonl --policy runs/mine --history slurm-jobs.txt.gz`,
		Args: cli.Args(1, math.MaxInt, "one log of steer or more"),
		RunE: func(c *cobra.Command, logs []string) error {
			if err := options.CheckPage(html, ""); err != nil {
				return err
			}
			l, err := report.Read(c.Context(), logs)
			if err != nil {
				return err
			}
			opt, err := g.reported(c, l)
			if err != nil {
				return err
			}
			opt.Asks = asks
			line := cli.NewStatus(a, 0)
			opt.Progress = func(what string) { line.Show(func(int) []string { return []string{what} }) }
			r, err := report.Build(c.Context(), l, *opt)
			line.Clear()
			if err != nil {
				return err
			}
			err = a.Show(c, r, r.Text)
			if err == nil && html != "" {
				if err = a.WriteFile(html, logs, func(w io.Writer) error { return r.HTML(w) }); err == nil {
					a.Notef("the page is %s", html)
				}
			}
			return err
		},
	}
	f := c.Flags()
	g.choiceFlags(c, "that is asked and replayed (default that of the log)",
		"; what the log tells goes before the default")
	f.StringVar(&g.past.File, "history", "",
		"`FILE` of what the cluster had done before the log (default that of the log)")
	f.IntVar(&asks, "asks", 5000, "ask the policy again at `N` real starts at most, evenly spread")
	f.StringVar(&html, "html", "", "write a page with plots to `FILE`, for any browser and without a network")
	cli.Least(c, 1, "asks")
	cli.JSONFlag(c)
	return c
}

// reported returns what is asked of a report: the flags, or what the log says.
func (g *SteerFlags) reported(c *cobra.Command, l *report.Log) (*report.Options, error) {
	given := c.Flags().Changed
	asked := given("policy") || given("policy-onnx")
	if b := l.Begun; b != nil {
		if !asked {
			g.policy = b.Policy
			if b.Model != "" {
				g.models.Files = []string{b.Model}
			}
		}
		if !given("estimates") && b.Estimates != "" {
			if err := g.estimates.UnmarshalText([]byte(b.Estimates)); err != nil {
				return nil, fault.Mistakef("--estimates: %w", err)
			}
		}
		if !given("history") {
			g.past.File = b.History
		}
		if !given("limit") && b.Limit > 0 {
			g.limit = time.Duration(b.Limit * float64(time.Second))
		}
		if !given("budget") && b.Budget != "" {
			if err := g.budget.UnmarshalText([]byte(b.Budget)); err != nil {
				return nil, fault.Mistakef("--budget: %w", err)
			}
		}
	} else if !asked {
		g.policy = l.Policy
	}
	opt := &report.Options{Estimates: g.estimates, Limit: g.limit}
	if g.past.File != "" && !given("history") {
		if _, err := os.Stat(g.past.File); err != nil {
			opt.Notes = append(opt.Notes,
				fmt.Sprintf(
					"steer knew the history %s, which is not there any more: predictors know only what ended in the log; want "+
						"--history FILE", g.past.File))
			g.past.File = ""
		}
	}
	ch, err := g.choice(c)
	if b := l.Begun; err == nil && b != nil && b.HistoryUntil > 0 && !given("history") {
		ch.History = until(ch.History, b.HistoryUntil)
	}
	if err == nil {
		opt.Choice, opt.History = ch, ch.History
		err = opt.Try(l)
	}
	switch {
	case err != nil && (asked || given("history") || given("estimates")):
		return nil, err
	case err != nil:
		opt.Choice, opt.Why = nil, fmt.Sprintf("that of the log cannot be opened (%v); want --policy", err)
	}
	return opt, nil
}
