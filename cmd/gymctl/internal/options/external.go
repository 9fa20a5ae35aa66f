package options

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/bridge/server"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/lab/arena"
)

// EvalDrain is how long clients may take to leave after the last window.
const EvalDrain = 5 * time.Second

// Join lets the policies of --external play through the server that d describes.
func Join(a *cli.App, c *cobra.Command, d *Door, external *arena.External, opt *arena.EvalOptions) error {
	if !c.Flags().Changed("serve") {
		return nil
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

// ExternalRules says which flags of a verb with --serve and --external go with which.
func ExternalRules(c *cobra.Command) {
	serve := []string{"serve"}
	cli.Needs(c, serve, "external", "external-timeout", "client-ca", "allow-origin", "insecure", "log-level", "memory")
	cli.Needs(c, []string{"external"}, "serve")
	if c.Flags().Lookup("queue") != nil { // whose server has them too
		serve = append(serve, "listen", "queue")
	}
	cli.Needs(c, serve, "token-file", "tls-cert", "tls-key")
}
