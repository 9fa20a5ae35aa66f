package options

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"clustergym/bridge/server"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/pages"
)

// UIFlags are the flags of verbs that can show pages while they work.
type UIFlags struct {
	Addr      string
	TokenFile string
	Flag      string // that has the address
}

// TokenHelp is the help of a flag that names the tokens of pages.
const TokenHelp = "`FILE` of the tokens that the pages want, one \"ROLE TOKEN\" per line; those of role read or " +
	"admin count"

// Flags adds --ui and --ui-token-file.
func (u *UIFlags) Flags(c *cobra.Command) {
	u.Flag = "ui"
	f := c.Flags()
	f.StringVar(&u.Addr, "ui", "",
		"show live pages and /metrics at `HOST:PORT` meanwhile (docs/guides/dashboard.md); :PORT is this machine alone, "+
			"port 0 picks a free one")
	f.StringVar(&u.TokenFile, "ui-token-file", "", TokenHelp)
	cli.Filled(c, "ui")
	cli.Needs(c, []string{"ui"}, "ui-token-file")
}

// Listen opens the address, before the work begins: a port in use must not be found out afterwards. Who serves on it
// stands behind a Door, which package pages puts there.
func (u *UIFlags) Listen(a *cli.App) (net.Listener, []server.Token, error) {
	tokenFlag := "--" + u.Flag + "-token-file"
	if u.Flag == "addr" {
		tokenFlag = "--token-file"
	}
	tokens, err := readTokens(u.TokenFile, func(warning string) { a.Notef("%s", warning) })
	if err != nil {
		return nil, nil, err
	}
	reads := func(t server.Token) bool { return t.Role == server.RoleRead || t.Role == server.RoleAdmin }
	if u.TokenFile != "" && !slices.ContainsFunc(tokens, reads) {
		return nil, nil, fault.Mistakef("%s %s: no token has role read or admin, so nobody could look", tokenFlag,
			u.TokenFile)
	}
	addr := u.Addr
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	l, err := listen(addr, len(tokens) > 0,
		"nothing is asked of readers; want "+tokenFlag+" FILE, or an address such as 127.0.0.1:6006")
	if err != nil {
		return nil, nil, fault.Errorf("--%s: %w", u.Flag, err)
	}
	return l, tokens, nil
}

// Show serves pages about paths while the command works, if --ui was given. The caller calls stop at the end.
func (u *UIFlags) Show(ctx context.Context, a *cli.App, c *cobra.Command, opt pages.Options) (stop func(), err error) {
	if u.Addr == "" {
		return func() {}, nil
	}
	l, tokens, err := u.Listen(a)
	if err != nil {
		return nil, err
	}
	opt.Tokens, opt.Version = tokens, cli.About().Version
	a.Say("pages     http://%s/", l.Addr())
	return Beside(ctx, a, "pages", func(ctx context.Context) error { return pages.New(opt).Serve(ctx, l) }), nil
}

// Beside lets serve work until ctx ends or stop is called, which waits for its end and notes an error of it. what
// names it, in the plural.
func Beside(ctx context.Context, a *cli.App, what string, serve func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			a.Notef("the %s ended: %v", what, err)
		}
	})
}
