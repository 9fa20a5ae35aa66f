package options

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/env/bridge/server"
	"clustergym/experiments/arena"
	"clustergym/internal/fault"
)

// EvalDrain is how long clients may take to leave after the last window.
const EvalDrain = 5 * time.Second

// Join lets the policies of --external play through the server that d describes.
func Join(a *cli.App, c *cobra.Command, d *Door, external *arena.External, opt *arena.EvalOptions) error {
	serve := c.Flags().Changed("serve")
	if !serve {
		for _, name := range []string{"external", "external-timeout", "token-file", "tls-cert", "tls-key", "client-ca", "allow-origin", "insecure", "log-level", "memory"} {
			if c.Flags().Changed(name) {
				return fault.Mistakef("--%s goes with --serve HOST:PORT", name)
			}
		}
		return nil
	}
	if len(external.Names) == 0 {
		return fault.Mistakef("--serve: there is nobody to serve; want --external NAME for each policy that will connect")
	}
	if err := external.Validate(); err != nil {
		return cli.FlagFaults(c, err, nil)
	}
	a.Unblock()
	external.Serve = func(ctx context.Context, f server.Factory) error {
		s, l, err := d.Open(a, c, f)
		if err != nil {
			return err
		}
		defer d.Reloads(s)()
		a.Notef("%s can connect to %s", strings.Join(external.Names, ", "), l.Addr())
		return s.Serve(ctx, l)
	}
	opt.External = external
	return nil
}
