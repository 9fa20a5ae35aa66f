package operate

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"clustergym/bridge/budget"
	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/lab/envs"
	"clustergym/lab/external"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	door   *options.Door
	reg    envs.RegistryConfig
	atEOF  bool
	onnx   options.ModelFlags
	checks check
}

// ServeVerb is gymctl serve.
func ServeVerb(a *cli.App) *cobra.Command {
	o := &serveOptions{door: options.NewDoor("127.0.0.1:8765"), reg: envs.DefaultRegistryConfig()}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the environments to other languages and other machines",
		Long: `serve listens for clients of the bridge: websockets at /v1/ws, with the protocol of docs/reference/wire.md. The first line on
standard output is the address in use. Other pages are /healthz and /readyz for probes, /metrics for Prometheus,
/v1/envs and /v1/version.

Without --token-file everyone who can reach the address may play; serve refuses that for addresses beyond this machine
unless --client-ca or --insecure is given. A token file has one "ROLE TOKEN" per line: env may play, read may see
metrics, admin may do everything. A token has at least 16 characters. The file must not be writable for everybody.

Clients use generated workloads by default. --trace-root lets them name files below one folder, and no others; public
traces that gymctl trace get has fetched can always be named, as get:NAME. A link is followed if it is relative and
stays below the folder; pipes and devices are refused. Clients are told where a file has a fault, but not what is there.
A client without files of its own on the server can describe its cluster instead, with the keys of a cluster file.

Clients can also be the scheduler of a simulation, over the whole queue, as clustergym.simulate of the Python package is
(docs/guides/python-scheduler.md).

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
With --policy-onnx clients can also ask an ONNX model, by its --name, wherever it fits the environment (docs/reference/onnx.md).

SIGTERM or Ctrl-C drains: clients are notified, /readyz reports not ready, and the program ends with exit code 0 when
the last one has left, or after --drain-timeout. A second signal, a second later or more, ends it at once. SIGHUP reads
the token file and the certificates again, for new connections; if one of them is bad, all stays as it was. Logs go to
standard error, and the server never waits for them to be read.

With --check URL it serves nothing. It plays the environment of --check-env on the server at URL, which may be written
in any language, and prints for each claim of the protocol whether the server keeps it: pass, fail or skip with the
reason, and a summary. The exit code is 0 if no claim fails, else 1. --token-file then holds the token to show,
--tls-cert and --tls-key the certificate to show, and --hello-timeout is the server's own, checked only if given.
The check fills the server with sessions for a moment: do not run it against one that others are using.`,
		Example: `  gymctl serve
  gymctl serve --addr 127.0.0.1:0 --json
  gymctl serve --addr 0.0.0.0:8765 --token-file tokens --tls-cert cert.pem --tls-key key.pem
  gymctl serve --trace-root /srv/traces --max-sessions 16 --memory 4GiB
  gymctl serve --check ws://127.0.0.1:8765`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(a, c) },
	}
	o.flags(c)
	return c
}

func (o *serveOptions) flags(c *cobra.Command) {
	f, door, reg := c.Flags(), o.door, &o.reg
	door.Flags(c)
	f.StringVar(&reg.TraceRoot, "trace-root", "",
		"clients may name the trace files below `DIR`, by their paths relative to it")
	f.BoolVar(&reg.OwnFiles, "own-files", false,
		"clients may name every file that you can read, by absolute paths; goes with --token-file")
	f.StringSliceVar(&reg.Advice.Policies, "advise", []string{envs.AllPolicies},
		"`POLICIES` that clients may ask for an action, as sjf@slots,rollout:sjf@slots; all = every one, \"\" = none")
	o.onnx.Flags(c)
	f.IntVar(&reg.Advice.Budget, "budget", reg.Advice.Budget,
		"at most `N` rollouts for one action of a policy that looks ahead")
	f.DurationVar(&reg.Advice.Time, "budget-time", reg.Advice.Time,
		"time limit of one such action, for clients that give a budget of time")
	f.BoolVar(&o.atEOF, "until-eof", false,
		"drain and end when standard input ends, for a program that starts this one and may be killed")
	f.Bool("json", false, `print the address as {"addr":"…"}, or the outcome of --check as one document`)
	f.IntVar(&door.Cfg.MaxSessions, "max-sessions", door.Cfg.MaxSessions,
		"at most `N` clients at once, including lost ones that may reconnect")
	f.IntVar(&door.Cfg.MaxHandles, "max-handles", door.Cfg.MaxHandles, "at most `N` sets of environments per client")
	f.IntVar(&door.Cfg.MaxEnvs, "max-envs", door.Cfg.MaxEnvs, "at most `N` environments per set")
	f.IntVar(&door.Cfg.MaxInflight, "max-inflight", door.Cfg.MaxInflight, "at most `N` unanswered requests per set")
	f.IntVar(&door.Cfg.MaxFrameIn, "max-frame-in", door.Cfg.MaxFrameIn, "at most `BYTES` per message received")
	f.IntVar(&door.Cfg.MaxFrameOut, "max-frame-out", door.Cfg.MaxFrameOut, "at most `BYTES` per message sent")
	f.DurationVar(&door.Cfg.HelloTimeout, "hello-timeout", door.Cfg.HelloTimeout,
		"time limit from a connection to its first message")
	f.DurationVar(&door.Cfg.IdleTimeout, "idle-timeout", door.Cfg.IdleTimeout,
		"time without a byte from a client after which its session ends")
	f.DurationVar(&door.Cfg.ResumeWindow, "resume-window", door.Cfg.ResumeWindow,
		"how long a lost client's environments are kept for it; 0s = not at all")
	f.DurationVar(&door.Cfg.StepTimeout, "step-timeout", door.Cfg.StepTimeout, "time limit of one request")
	f.DurationVar(&door.Cfg.DrainTimeout, "drain-timeout", door.Cfg.DrainTimeout,
		"time for clients to leave when the server is told to end")
	f.DurationVar(&door.Cfg.PingInterval, "ping-interval", door.Cfg.PingInterval,
		"interval of pings to clients; 0s = none")
	f.IntVar(&door.Cfg.Workers, "workers", door.Cfg.Workers,
		"`N` goroutines per set of environments, 0 = chosen by the server; affects only speed")
	f.BoolVar(&door.Cfg.SharedMemory, "shared-memory", door.Cfg.SharedMemory,
		"let clients on this machine that run as the same user read large observations from memory (Linux)")
	c.MarkFlagsMutuallyExclusive("own-files", "trace-root")
	o.checks.flags(c, door)
	options.Sections(c)
}

func (o *serveOptions) run(a *cli.App, c *cobra.Command) (err error) {
	if c.Flags().Changed("check") {
		return o.checks.run(a, c)
	}
	if o.reg.OwnFiles {
		if err := o.door.Private(); err != nil {
			return err
		}
		o.reg.MaxJobs = envs.OwnMaxJobs
	}
	if o.reg.Advice.Models, err = o.onnx.Read(); err != nil {
		return err
	}
	r, err := envs.NewRegistry(o.reg)
	if err != nil {
		return cli.FlagFaults(c, err, nil)
	}
	a.Unblock()
	begun := a.Now()
	s, l, err := o.door.Open(a, c, external.NewFactory(r, func() time.Duration { return a.Now().Sub(begun) }))
	if err != nil {
		return err
	}
	defer o.door.Reloads(s)()
	defer budget.Limit(s.Memory())()
	ctx, stop := options.UntilEnd(c.Context(), o.atEOF)
	defer stop()
	err = a.Announce(ctx, func(a *cli.App) error {
		return a.Show(c, cli.Keyed{"addr": l.Addr().String()}, func(io.Writer) error {
			_, err := fmt.Fprintln(a.Stdout, l.Addr())
			return err
		})
	})
	if err == nil {
		return s.Serve(ctx, l)
	}
	_ = l.Close() // no client knows the address yet
	if ctx.Err() != nil {
		return nil // told to end before the address was read
	}
	return err
}
