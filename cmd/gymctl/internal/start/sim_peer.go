package start

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/lab/simulate"
)

// peerVerb is gymctl peer: sim on other published simulators.
func peerVerb(a *cli.App) *cobra.Command {
	o := newSimOptions()
	c := &cobra.Command{
		Use:   "peer NAME [FILE]",
		Short: "Simulate a trace on another published simulator",
		Long: `peer runs a workload on another published simulator, rebuilt from its rules, and prints what sim
prints (docs/reference/schedulers.md).
NAME is

  dally-waiting-only, dally-published  that of Dally's authors, with the policies dally, tiresias and gandiva
  lwf-pure, lwf-orig, lwf-pureall      that of LWF's authors, with policies ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE, as
                                       ssf-lwf1-srsf-1-true for Ada-SRSF

The workload is a trace, FILE or --trace FILE, or generated as in sim. --set changes the settings of sim.`,
		Example: `  gymctl peer dally-waiting-only --set trace.synth.profile=dally --jobs 200 --cluster dally:4x4 --policy dally,tiresias
  gymctl peer lwf-pure --jobs 50 --mix lwf --cluster lwf-16x4 --policy ssf-lwf1-srsf-1-true,ssf-lwf1-srsf-0-false`,
		Args: cli.Args(1, 2, "the NAME of a simulator, and one FILE or none"),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			if len(args) == 0 {
				return simulate.PeerNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return cli.OneFile(c, args[1:], typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if o.cfg.Peer.Name = args[0]; !slices.Contains(simulate.PeerNames(), args[0]) {
				return cli.Unknown("peer: simulator", args[0], simulate.PeerNames())
			}
			return o.carryOut(a, c, args[1:])
		},
	}
	o.flags(c)
	o.peerFlags(c)
	cli.Section(c, "Policies and cluster", append([]string{"policy", "cluster"}, peerOnly...)...)
	cli.Section(c, "Workload", workloadFlags...)
	cli.Section(c, "Run", "seed", "fail-refused", "set")
	cli.Section(c, "Output", "json", "events", "jobs-out")
	return c
}

// peerOnly are the flags of peerFlags.
var peerOnly = []string{"net", "factors", "timers", "lease", "granularity", "history"}

// peerFlags adds the flags of other simulators.
func (o *simOptions) peerFlags(c *cobra.Command) {
	f, p := c.Flags(), &o.cfg.Peer
	f.StringVar(&p.Net, "net", p.Net,
		"of dally-…: cost of communication: slow (rings of 600, 25 and 10 GB/s in a machine, a rack and between racks), "+
			"one (none) or a network of --factors")
	f.StringVar(&p.Factors, "factors", p.Factors,
		"of dally-…: table `FILE` of factors, with net, model, shape and factor in its header")
	f.StringVar(&p.Timers, "timers", p.Timers,
		"of dally-…, policy dally: for how many leases to decline a rack and the network, as 5/10, or auto")
	f.DurationVar(&p.Lease, "lease", p.Lease, "of dally-…: how long a job keeps its GPUs at a time")
	f.Int64Var(&p.Granularity, "granularity", p.Granularity, "of dally-…: iterations of a block, per GPU")
	f.IntVar(&p.History, "history", p.History, "of dally-…, policy dally: how many leases the tuner of timers looks back")
	cli.Complete(c, "net", "slow", "one")
	cli.Complete(c, "timers", "auto", "5/10")
}

// peerForm adds sim --peer, hidden: the form of gymctl peer before it was a verb.
func (o *simOptions) peerForm(c *cobra.Command) {
	c.Flags().StringVar(&o.cfg.Peer.Name, "peer", "",
		"`NAME` of gymctl peer, one of "+strings.Join(simulate.PeerNames(), ", "))
	also := append([]string{"peer", "cluster", "policy", "seed", "fail-refused", "set", "events", "jobs-out", "json"},
		workloadFlags...)
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(also, f.Name) || f.Name == "limit" {
			c.MarkFlagsMutuallyExclusive("peer", f.Name)
		}
	})
	o.peerFlags(c)
	cli.Needs(c, []string{"peer"}, peerOnly...)
	for _, name := range append([]string{"peer"}, peerOnly...) {
		c.Flags().Lookup(name).Hidden = true
	}
	cli.Complete(c, "peer", simulate.PeerNames()...)
}
