package main

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

	"clustergym/env/bridge/budget"
	"clustergym/env/bridge/server"
	"clustergym/experiments/envs"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
)

func serveVerb(a *app) *cobra.Command {
	var (
		door     = newDoor("127.0.0.1:8765")
		reg      = envs.DefaultRegistryConfig()
		untilEOF bool
		asJSON   bool
		onnx     modelFlags
	)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the environments to other languages and other machines",
		Long: `serve listens for clients of the bridge: websockets at /v1/ws, with the protocol of docs/wire.md. The first line on
standard output is the address in use. Other pages are /healthz and /readyz for probes, /metrics for Prometheus,
/v1/envs and /v1/version.

Without --token-file everyone who can reach the address may play; serve refuses that for addresses beyond this machine
unless --client-ca or --insecure is given. A token file has one "ROLE TOKEN" per line: env may play, read may see
metrics, admin may do everything. A token has at least 16 characters. The file must not be writable for everybody.

Clients use generated workloads by default. --trace-root lets them name files below one folder, and no others; public
traces that gymctl trace get has fetched can always be named, as get:NAME. A link is followed if it is relative and
stays below the folder; pipes and devices are refused. Clients are told where a file has a fault, but not what is there.
A client without files of its own on the server can describe its cluster instead, with the keys of a cluster file.

--own-files is for a program that starts a server for itself alone, as the Python package does. A client with a token of
--token-file may then name any ordinary file that this process can read, by its absolute path, and errors say what is
wrong in the file.

--memory is the budget of everything that clients make the server hold: environments, workloads, replies, requests. An
open that does not fit is refused, so those who are in are not harmed. By default it is 60 % of the memory that the
process may have: the least of the limits of its control groups (containers) and of the machine's memory, or two thirds
of GOMEMLIMIT if that is less; 2GiB where the machine does not tell. The process takes up to half as much more than the
budget, and 64 MiB; without GOMEMLIMIT serve sets the limit of the Go runtime to that.

--advise names the policies that clients may ask for the action that they would take in the present state: RULE@slots, and in
JobSelect-v1 rollout:RULE@slots, which looks ahead with at most --budget rollouts. Asking changes nothing in the environment.
With --policy-onnx clients can also ask an ONNX model, by its --name, wherever it fits the environment (docs/onnx.md).

SIGTERM or Ctrl-C drains: clients are notified, /readyz reports not ready, and the program ends with exit code 0 when
the last one has left, or after --drain-timeout. A second signal, a second later or more, ends it at once. SIGHUP reads
the token file and the certificates again, for new connections; if one of them is bad, all stays as it was. Logs go to
standard error, and the server never waits for them to be read.`,
		Example: `  gymctl serve
  gymctl serve --addr 127.0.0.1:0 --json
  gymctl serve --addr 0.0.0.0:8765 --token-file tokens --tls-cert cert.pem --tls-key key.pem
  gymctl serve --trace-root /srv/traces --max-sessions 16 --memory 4GiB`,
		Args: args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			if reg.OwnFiles {
				if err := door.private(reg.TraceRoot); err != nil {
					return err
				}
				reg.MaxJobs = envs.OwnMaxJobs
			}
			var err error
			if reg.Advice.Models, err = onnx.read(); err != nil {
				return err
			}
			r, err := envs.NewRegistry(reg)
			if err != nil {
				return flagFaults(c, err, nil)
			}
			a.unblock()
			s, l, err := door.open(a, c, envs.NewFactory(r))
			if err != nil {
				return err
			}
			defer door.reloads(s)()
			defer budget.Limit(s.Memory())()
			ctx := c.Context()
			if untilEOF {
				var stop context.CancelFunc
				ctx, stop = untilEnd(ctx, os.Stdin)
				defer stop()
			}
			err = a.announce(ctx, func(a *app) error {
				if asJSON {
					return a.json(struct {
						Addr string `json:"addr"`
					}{l.Addr().String()})
				}
				_, err := fmt.Fprintln(a.stdout, l.Addr())
				return err
			})
			if err != nil {
				_ = l.Close() // no client knows the address yet
				if ctx.Err() != nil {
					return nil // told to end before the address was read
				}
				return err
			}
			return s.Serve(ctx, l)
		},
	}
	f := c.Flags()
	door.flags(c)
	f.StringVar(&reg.TraceRoot, "trace-root", "", "clients may name the trace files below `DIR`, by their paths relative to it")
	f.BoolVar(&reg.OwnFiles, "own-files", false, "clients may name every file that you can read, by absolute paths; goes with --token-file")
	f.StringSliceVar(&reg.Advice.Policies, "advise", []string{envs.AllPolicies}, "`POLICIES` that clients may ask for an action, as sjf@slots,rollout:sjf@slots; all = every one, \"\" = none")
	onnx.flags(c)
	f.IntVar(&reg.Advice.Budget, "budget", reg.Advice.Budget, "at most `N` rollouts for one action of a policy that looks ahead")
	f.DurationVar(&reg.Advice.Time, "budget-time", reg.Advice.Time, "time limit of one such action, for clients that give a budget of time")
	f.BoolVar(&untilEOF, "until-eof", false, "drain and end when standard input ends, for a program that starts this one and may be killed")
	f.BoolVar(&asJSON, "json", false, `print the address as {"addr":"…"}`)
	f.IntVar(&door.cfg.MaxSessions, "max-sessions", door.cfg.MaxSessions, "at most `N` clients at once, including lost ones that may reconnect")
	f.IntVar(&door.cfg.MaxHandles, "max-handles", door.cfg.MaxHandles, "at most `N` sets of environments per client")
	f.IntVar(&door.cfg.MaxEnvs, "max-envs", door.cfg.MaxEnvs, "at most `N` environments per set")
	f.IntVar(&door.cfg.MaxInflight, "max-inflight", door.cfg.MaxInflight, "at most `N` unanswered requests per set")
	f.IntVar(&door.cfg.MaxFrameIn, "max-frame-in", door.cfg.MaxFrameIn, "at most `BYTES` per message received")
	f.IntVar(&door.cfg.MaxFrameOut, "max-frame-out", door.cfg.MaxFrameOut, "at most `BYTES` per message sent")
	f.DurationVar(&door.cfg.HelloTimeout, "hello-timeout", door.cfg.HelloTimeout, "time limit from a connection to its first message")
	f.DurationVar(&door.cfg.IdleTimeout, "idle-timeout", door.cfg.IdleTimeout, "time without a byte from a client after which its session ends")
	f.DurationVar(&door.cfg.ResumeWindow, "resume-window", door.cfg.ResumeWindow, "how long a lost client's environments are kept for it; 0s = not at all")
	f.DurationVar(&door.cfg.StepTimeout, "step-timeout", door.cfg.StepTimeout, "time limit of one request")
	f.DurationVar(&door.cfg.DrainTimeout, "drain-timeout", door.cfg.DrainTimeout, "time for clients to leave when the server is told to end")
	f.DurationVar(&door.cfg.PingInterval, "ping-interval", door.cfg.PingInterval, "interval of pings to clients; 0s = none")
	f.IntVar(&door.cfg.Workers, "workers", door.cfg.Workers, "`N` goroutines per set of environments, 0 = chosen by the server; affects only speed")
	f.BoolVar(&door.cfg.SharedMemory, "shared-memory", door.cfg.SharedMemory, "let clients on this machine that run as the same user read large observations from memory (Linux)")
	(&check{door: door, asJSON: &asJSON}).install(a, c)
	return c
}

// door holds where a server listens and who may connect.
type door struct {
	addr      string
	tokenFile string
	logLevel  string
	cfg       server.Config
	log       *slog.Logger // from open on
}

func newDoor(addr string) *door {
	v := about()
	d := &door{addr: addr, logLevel: "info", cfg: server.DefaultConfig()}
	d.cfg.Version, d.cfg.Commit = v.Version, v.Commit
	return d
}

// flags adds all flags but the limits. eval, which serves while it evaluates, calls the address --serve.
func (d *door) flags(c *cobra.Command) {
	f := c.Flags()
	if c.Name() == "eval" {
		f.StringVar(&d.addr, "serve", "", "`HOST:PORT` at which the policies of --external connect; port 0 picks a free one")
		d.logLevel = "warn"
	} else {
		f.StringVar(&d.addr, "addr", d.addr, "`HOST:PORT` to listen at; port 0 picks a free one")
	}
	f.StringVar(&d.tokenFile, "token-file", "", "`FILE` of the tokens that clients must present, one \"ROLE TOKEN\" per line")
	f.StringVar(&d.cfg.TLSCert, "tls-cert", "", "PEM `FILE` of the server's certificate; with --tls-key, TLS only")
	f.StringVar(&d.cfg.TLSKey, "tls-key", "", "PEM `FILE` of the certificate's key")
	f.StringVar(&d.cfg.ClientCA, "client-ca", "", "PEM `FILE` of the authorities that must have signed the clients' certificates")
	f.StringArrayVar(&d.cfg.AllowOrigin, "allow-origin", nil, "`ORIGIN` of web pages that may connect, as https://example.org (repeatable)")
	f.Var(sizeFlag{&d.cfg.Memory}, "memory", "`SIZE` of the memory that clients can take together, as 4GiB; by default a share of what there is")
	f.BoolVar(&d.cfg.Insecure, "insecure", false, "listen beyond this machine without authenticating clients")
	f.StringVar(&d.logLevel, "log-level", d.logLevel, "lowest `LEVEL` that is logged to standard error: debug, info, warn or error")
	complete(c, "log-level", "debug", "info", "warn", "error")
}

// private returns why this is no server for its owner alone, or nil if it is.
func (d *door) private(traceRoot string) error {
	host, _, err := net.SplitHostPort(d.addr)
	ip := net.ParseIP(host)
	switch {
	case traceRoot != "":
		return fault.Mistakef("--own-files does not go with --trace-root: clients name files by absolute paths, or below one folder")
	case d.tokenFile == "":
		return fault.Mistakef("--own-files lets clients read every file of yours; want --token-file FILE with a token that only your program knows")
	case err != nil || host != "localhost" && !ip.IsLoopback():
		return fault.Mistakef("--own-files lets clients read every file of yours; want --addr 127.0.0.1:PORT, which other machines cannot reach")
	}
	return nil
}

// open creates the server and listens. The caller serves.
func (d *door) open(a *app, c *cobra.Command, f server.Factory) (*server.Server, net.Listener, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(d.logLevel)); err != nil {
		return nil, nil, fault.Mistakef("--log-level: got %q, want debug, info, warn or error%s", d.logLevel, nearest.Meant(d.logLevel, []string{"debug", "info", "warn", "error"}))
	}
	d.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	var err error
	if d.cfg.Tokens, err = d.tokens(); err != nil {
		return nil, nil, err
	}
	s, err := server.New(d.cfg, f, d.log)
	if err != nil {
		if len(fault.All(err)) == 0 {
			return nil, nil, &fault.Mistake{Err: err} // for example, a certificate that cannot be read
		}
		return nil, nil, flagFaults(c, err, nil)
	}
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		return nil, nil, notListening(d.addr, err)
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if ok && !tcp.IP.IsLoopback() && len(d.cfg.Tokens) == 0 && d.cfg.ClientCA == "" && !d.cfg.Insecure {
		_ = l.Close() // no client knows the address yet
		return nil, nil, fault.Mistakef("%s can be reached from other machines, and nothing is asked of clients; want --token-file FILE, --client-ca FILE, an address such as 127.0.0.1:8765, or --insecure where the network is trusted", d.addr)
	}
	return s, l, nil
}

// tokens reads the token file, if there is one.
func (d *door) tokens() ([]server.Token, error) {
	if d.tokenFile == "" {
		return nil, nil
	}
	tokens, warning, err := envs.ReadTokens(d.tokenFile)
	if warning != "" {
		d.log.Warn(warning)
	}
	return tokens, err
}

// reloads reads tokens and certificates again at every SIGHUP, until the function that it returns is called. Systems
// without that signal never send it.
func (d *door) reloads(s *server.Server) (stop func()) {
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

// notListening distinguishes an invalid address from one that is in use.
func notListening(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("address %s is in use by another program; port 0 picks a free one", addr)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return fault.Mistakef("address %q: %s; want HOST:PORT, as 127.0.0.1:8765", addr, strings.TrimPrefix(err.Error(), "listen tcp: "))
}

// untilEnd returns a copy of ctx that ends when r ends. The goroutine that reads r ends at the latest with the
// program, because a read of standard input cannot be cancelled.
func untilEnd(ctx context.Context, r io.Reader) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r) // an input that cannot be read counts as ended
		stop()
	}()
	return ctx, stop
}
