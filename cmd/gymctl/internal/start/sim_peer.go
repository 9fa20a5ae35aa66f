package start

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/experiments/simulate"
	"clustergym/internal/fault"
)

// ofPeers are the flags that apply only with --peer; withPeers are other flags that also apply with it.
var (
	ofPeers   = []string{"net", "factors", "timers", "lease", "granularity", "history"}
	withPeers = []string{
		"peer", "trace", "format", "columns", "delimiter", "sort", "skip", "jobs", "profiles", "reference", "mix", "cluster", "policy", "seed", "fail-refused", "set",
		"events", "jobs-out", "json", "kernels", "help",
	}
)

// peerFlags are the flags of sim --peer.
func peerFlags(c *cobra.Command, cfg *simulate.Config) {
	f, p := c.Flags(), &cfg.Peer
	f.StringVar(&p.Name, "peer", p.Name, "run another published simulator instead of this one: `NAME`, one of "+strings.Join(simulate.PeerNames(), ", "))
	f.StringVar(&p.Net, "net", p.Net, "with --peer dally-…: cost of communication: slow (rings of 600, 25 and 10 GB/s in a machine, a rack and between racks), one (none) or a network of --factors")
	f.StringVar(&p.Factors, "factors", p.Factors, "with --peer dally-…: table `FILE` of factors, with net, model, shape and factor in its header")
	f.StringVar(&p.Timers, "timers", p.Timers, "with --peer dally-…, policy dally: for how many leases to decline a rack and the network, as 5/10, or auto")
	f.DurationVar(&p.Lease, "lease", p.Lease, "with --peer dally-…: how long a job keeps its GPUs at a time")
	f.Int64Var(&p.Granularity, "granularity", p.Granularity, "with --peer dally-…: iterations of a block, per GPU")
	f.IntVar(&p.History, "history", p.History, "with --peer dally-…, policy dally: how many leases the tuner of timers looks back")
	cli.Complete(c, "peer", simulate.PeerNames()...)
	cli.Complete(c, "net", "slow", "one")
	cli.Complete(c, "timers", "auto", "5/10")
}

// peerOnly returns an error for flags that need --peer and lack it, or that do not apply with it.
func peerOnly(c *cobra.Command, peer string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case err != nil:
		case peer == "" && slices.Contains(ofPeers, f.Name):
			err = fault.Mistakef("--%s goes with --peer; want --peer %s, or not --%s", f.Name, simulate.PeerNames()[0], f.Name)
		case peer != "" && !slices.Contains(ofPeers, f.Name) && !slices.Contains(withPeers, f.Name):
			err = fault.Mistakef("--%s says nothing to the machine %s; want it left out", f.Name, peer)
		}
	})
	return err
}
