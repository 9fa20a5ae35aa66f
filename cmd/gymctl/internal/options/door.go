package options

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"clustergym/bridge/server"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/lab/envs"
)

// Door holds where a server listens and who may connect.
type Door struct {
	addr      string
	TokenFile string
	logLevel  string
	Cfg       server.Config
	log       *slog.Logger // from open on
}

// logLevels are the values of --log-level.
var logLevels = []string{"debug", "info", "warn", "error"}

// NewDoor returns a door that listens at addr unless a flag says otherwise.
func NewDoor(addr string) *Door {
	v := cli.About()
	d := &Door{addr: addr, logLevel: "info", Cfg: server.DefaultConfig()}
	d.Cfg.Version, d.Cfg.Commit = v.Version, v.Commit
	return d
}

// Flags adds all flags but the limits. Verbs that serve while they do something else call the address --serve.
func (d *Door) Flags(c *cobra.Command) {
	f := c.Flags()
	if c.Name() != "serve" {
		f.StringVar(&d.addr, "serve", "", "`HOST:PORT` at which the policies of --external connect; port 0 picks a free one")
		d.logLevel = "warn"
	} else {
		f.StringVar(&d.addr, "addr", d.addr, "`HOST:PORT` to listen at; port 0 picks a free one")
	}
	f.StringVar(&d.TokenFile, "token-file", "",
		"`FILE` of the tokens that clients must present, one \"ROLE TOKEN\" per line")
	f.StringVar(&d.Cfg.TLSCert, "tls-cert", "", "PEM `FILE` of the server's certificate; with --tls-key, TLS only")
	f.StringVar(&d.Cfg.TLSKey, "tls-key", "", "PEM `FILE` of the certificate's key")
	f.StringVar(&d.Cfg.ClientCA, "client-ca", "",
		"PEM `FILE` of the authorities that must have signed the clients' certificates")
	f.StringArrayVar(&d.Cfg.AllowOrigin, "allow-origin", nil,
		"`ORIGIN` of web pages that may connect, as https://example.org (repeatable)")
	f.Var(SizeFlag{Bytes: &d.Cfg.Memory}, "memory",
		"`SIZE` of the memory that clients can take together, as 4GiB; by default a share of what there is")
	f.BoolVar(&d.Cfg.Insecure, "insecure", false, "listen beyond this machine without authenticating clients")
	f.StringVar(&d.logLevel, "log-level", d.logLevel,
		"lowest `LEVEL` that is logged to standard error: debug, info, warn or error")
	cli.Complete(c, "log-level", logLevels...)
}

// Private returns why this is no server for its owner alone, or nil if it is.
func (d *Door) Private() error {
	host, _, err := net.SplitHostPort(d.addr)
	ip := net.ParseIP(host)
	switch {
	case d.TokenFile == "":
		return fault.Mistakef(
			"--own-files lets clients read every file of yours; want --token-file FILE with a token that only your program knows")
	case err != nil || host != "localhost" && !ip.IsLoopback():
		return fault.Mistakef(
			"--own-files lets clients read every file of yours; want --addr 127.0.0.1:PORT, which other machines cannot reach")
	}
	return nil
}

// Open creates the server and listens. The caller serves.
func (d *Door) Open(a *cli.App, c *cobra.Command, f server.Factory) (*server.Server, net.Listener, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(d.logLevel)); err != nil {
		return nil, nil, fault.Mistakef("--log-level: got %q, want %s", d.logLevel, nearest.OneOf(d.logLevel, logLevels))
	}
	d.log = slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level}))
	var err error
	if d.Cfg.Tokens, err = d.tokens(); err != nil {
		return nil, nil, err
	}
	s, err := server.New(d.Cfg, f, d.log)
	if err != nil {
		if len(fault.All(err)) == 0 {
			return nil, nil, &fault.Mistake{Err: err} // for example, a certificate that cannot be read
		}
		return nil, nil, cli.FlagFaults(c, err, nil)
	}
	l, err := listen(d.addr, len(d.Cfg.Tokens) > 0 || d.Cfg.ClientCA != "" || d.Cfg.Insecure,
		"nothing is asked of clients; want "+
			"--token-file FILE, --client-ca FILE, an address such as 127.0.0.1:8765, or --insecure where the network is trusted")
	return s, l, err
}

// tokens reads the token file, if there is one.
func (d *Door) tokens() ([]server.Token, error) {
	return readTokens(d.TokenFile, func(warning string) { d.log.Warn(warning) })
}

// readTokens reads a token file, if there is one.
func readTokens(file string, warn func(text string)) ([]server.Token, error) {
	if file == "" {
		return nil, nil
	}
	tokens, warning, err := envs.ReadTokens(file)
	if warning != "" {
		warn(warning)
	}
	return tokens, err
}

// Reloads reads tokens and certificates again at every SIGHUP, until the function that it returns is called. Systems
// without that signal never send it.
func (d *Door) Reloads(s *server.Server) (stop func()) {
	hangup, end := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangup:
			case <-end:
				return
			}
			tokens, err := d.tokens()
			if err == nil {
				err = s.Reload(tokens)
			}
			if err != nil {
				d.log.Error("nothing was reloaded: tokens and certificates stay as they were", "error", err)
			}
		}
	}() // it does not hold up the end of the program, even if the token file is a pipe without a writer
	return func() {
		signal.Stop(hangup)
		close(end)
	}
}

// listen opens an address. If other machines can reach it, guarded must be true: otherwise the mistake ends with
// hint. The server that gets the listener puts it behind a Door (package door).
func listen(addr string, guarded bool, hint string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is in use by another program; port 0 picks a free one", addr)
	}
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		text := strings.TrimPrefix(err.Error(), "listen tcp: ")
		return nil, fault.Mistakef("address %q: %s; want HOST:PORT, as 127.0.0.1:8765", addr, text)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !guarded {
		_ = l.Close() // no client knows the address yet
		return nil, fault.Mistakef("%s can be reached from other machines, and %s", addr, hint)
	}
	return l, nil
}

// UntilEnd returns a copy of ctx that ends, if atEOF, when standard input ends. The goroutine that reads ends at the
// latest with the program, because a read of standard input cannot be cancelled.
func UntilEnd(ctx context.Context, atEOF bool) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	if atEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // an input that cannot be read counts as ended
			stop()
		}()
	}
	return ctx, stop
}
