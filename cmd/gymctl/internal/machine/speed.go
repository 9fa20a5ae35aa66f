package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/lab/speed"
	"clustergym/lab/workload"
	"clustergym/simulator/schedulers"
)

// speedOptions are the flags of speed.
type speedOptions struct {
	cfg             speed.Config
	kernels, asRank string
	dir             string // of --long, to be removed
}

func speedVerb(a *cli.App) *cobra.Command {
	o := &speedOptions{cfg: speed.Config{Trace: workload.DefaultTraceConfig()}}
	c := &cobra.Command{
		Use:     "speed [" + strings.Join(speed.Groups(), "|") + "] ...",
		Aliases: []string{"bench"}, // its name until 2026
		Short:   "Measure how fast this machine simulates, steps, trains and serves",
		Long: `speed measures and prints a table with units: the simulator under several policies on generated workloads,
the cost of a job while 100 to 1,000,000 others wait, encoders, environments, training and planning. Without arguments it
measures all groups except the bridge and ranks, which takes a few minutes.

speed bridge steps environments of this program from a Python program over a loopback connection, and compares that
with Gymnasium's own vector environments, bare frames of the same size, and the same environments without a bridge.
It needs a Python with the package installed (pip install './python[gymnasium]'); --python names that Python.

speed ranks sums vectors over 2, 4 and 8 processes of this program, as gymctl train does with ranks, by turns with
gloo of torch.distributed if --python has PyTorch.

Every row runs once to warm up, then for three rounds of half a second or one run, of which the best counts. Beside
each row two fixed loops are measured, one in registers and one through memory. The table also gives the cost of a unit
of work in steps of these loops, for comparing two machines, or a busy and a quiet hour. Only the row of --long includes
reading traces. docs/evidence/performance.md has results, also of other simulators.

With --trace the simulator plays that trace on --cluster, with best-fit placement, and with the trace's estimates if
every job has one.`,
		Example: `  gymctl speed encoders --quick
  gymctl trace synth --profile hpc --jobs 2000 --to swf -o log.swf
  gymctl speed --trace log.swf --cluster swf-128 --policy fifo+strict+easy,sjf+skip --quick --json`,
		ValidArgs: speed.Groups(),
		Args: func(_ *cobra.Command, args []string) error {
			for _, g := range args {
				if !slices.Contains(speed.Groups(), g) {
					return cli.Unknown("speed: group", g, speed.Groups())
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.asRank != "" {
				return speedRank(c, a, o.asRank)
			}
			o.cfg.Groups = args
			return o.run(a, c)
		},
	}
	o.flags(c)
	return c
}

func (o *speedOptions) flags(c *cobra.Command) {
	f, cfg := c.Flags(), &o.cfg
	f.BoolVar(&cfg.Quick, "quick", false, "small workloads and short rounds: an impression within seconds")
	f.BoolVar(&cfg.Long, "long", false,
		"also 11,500,000 jobs, read from a file while they are simulated; takes 200 MB of disk")
	f.StringVar(&cfg.Trace.File, "trace", "", "simulate this trace `FILE` instead of generated workloads")
	options.TraceFlags(c, &cfg.Trace)
	cli.Filled(c, "trace")
	f.StringVar(&cfg.Cluster, "cluster", "", "with --trace: preset, `FILE`, pool:N, swf-N or NxG")
	options.PolicyListVar(f)(&cfg.Policies, "policy", nil,
		"with --trace: policies, joined by commas: `ORDER`[+ADMISSION][+BACKFILL] (default some)")
	f.StringVar(&cfg.Python, "python", "python3",
		"of the bridge: `PROGRAM` of a Python in which the package of python/ is installed; of ranks: one with PyTorch")
	cli.JSONFlag(c)
	f.StringVar(&o.asRank, "as-rank", "", "a process of speed ranks")
	f.Lookup("as-rank").Hidden = true
	options.KernelsFlag(c, &o.kernels)
	cli.CompleteOrFile(c, "cluster", workload.ClusterPresets()...)
	cli.CompleteList(c, "policy",
		func(_ *cobra.Command, word string) []string { return schedulers.Names().Complete(word) })
}

func (o *speedOptions) run(a *cli.App, c *cobra.Command) error {
	if c.Flags().Changed("kernels") {
		if err := options.UseKernels(o.kernels); err != nil {
			return err
		}
	}
	if err := o.cfg.Validate(); err != nil {
		return cli.FlagFaults(c, err, map[string]string{"trace": "trace", "policies": "policy"})
	}
	defer func() {
		if err := os.RemoveAll(o.dir); o.dir != "" && err != nil {
			a.Notef("%v", err)
		}
	}()
	report, err := speed.Run(c.Context(), o.cfg, speed.Hooks{
		Now: a.Now,
		Row: func(what string) { a.Notef("%s", what) },
		Rank: func(ctx context.Context, rank, world int, rendezvous string, quick bool) *exec.Cmd {
			what := fmt.Sprintf("%d,%d,%s,%t", rank, world, rendezvous, quick)
			return exec.CommandContext(ctx, cli.Self(), "speed", "--as-rank", what) //nolint:gosec // this program
		},
		Dir: func() (dir string, err error) {
			if o.dir, err = os.MkdirTemp("", "gymctl-bench-"); err != nil {
				return "", fmt.Errorf("--long needs a folder for its log: %w", err)
			}
			return o.dir, nil
		},
	})
	if err != nil {
		return err
	}
	return a.Show(c, report, report.WriteTable)
}

// speedRank is a rank of gymctl speed ranks: RANK,WORLD,RENDEZVOUS,QUICK.
func speedRank(c *cobra.Command, a *cli.App, what string) error {
	parts := strings.Split(what, ",")
	if len(parts) != 4 {
		return fault.Mistakef("--as-rank: got %q, which is for speed ranks itself", what)
	}
	rank, errRank := strconv.Atoi(parts[0])
	world, errWorld := strconv.Atoi(parts[1])
	if err := errors.Join(errRank, errWorld); err != nil {
		return fault.Mistakef("--as-rank: %w", err)
	}
	return speed.Rank(c.Context(), rank, world, parts[2], parts[3] == "true", a.Now, a.Stdout)
}
