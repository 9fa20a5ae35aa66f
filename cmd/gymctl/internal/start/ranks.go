package start

import (
	"context"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/distributed/ranks"
	"clustergym/internal/fault"
)

// rankFlags are the flags of a training in several processes.
type rankFlags struct {
	rank, world    int
	rendezvous     string
	from           string
	nats           string // --queue
	timeout, waits time.Duration
}

// rankSources are the values of --ranks.
var rankSources = []string{"slurm", "env", "nats"}

func (r *rankFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&r.rank, "rank", 0,
		"this process is rank `R`, from 0, of a training in --world processes, one for each of ppo.replicas")
	f.IntVar(&r.world, "world", 0, "`N` ranks train together")
	f.StringVar(&r.rendezvous, "rendezvous", "", "`HOST:PORT` of rank 0, where the ranks meet; at rank 0 port 0 picks one")
	cli.Choice(c, &r.from, "ranks",
		"take rank, world and rendezvous from the environment instead: slurm (srun), "+
			"env (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; JOB_COMPLETION_INDEX) or nats (--queue)", rankSources...)
	f.DurationVar(&r.timeout, "rank-timeout", 30*time.Second, "`TIME` of silence after which a rank is lost and all end")
	f.DurationVar(&r.waits, "rank-wait", 5*time.Minute, "`TIME` that the ranks wait for each other at the beginning")
	options.Once(f, "token-file", "`FILE` with the token that the ranks share: one line of 16 characters or more")
	options.Once(f, "tls-cert",
		"PEM `FILE` of the certificate that every rank shows, made out to the host of --rendezvous; with --tls-key, TLS only")
	options.Once(f, "tls-key", "PEM `FILE` of the certificate's key")
	options.Once(f, "tls-ca",
		"PEM `FILE` of the authorities that sign the ranks' certificates (default those of the system)")
	options.Once(f, "queue", "`URL` of a NATS with JetStream, for --ranks nats")
	options.Once(f, "job", "`NAME` of the group of ranks on that NATS (default train)")
	cli.Least(c, time.Millisecond, "rank-wait")
	cli.Least(c, 100*time.Millisecond, "rank-timeout")
}

// ranksOnly are the flags that only a training in ranks has.
var ranksOnly = []string{"rank", "world", "rendezvous", "ranks", "rank-timeout", "rank-wait"}

// read returns the group that the flags name, nil if they name none, without meeting it. get returns a variable of the
// environment.
func (r *rankFlags) read(c *cobra.Command, a *cli.App, get func(string) string) (*ranks.Config, error) {
	if options.Changed(c, ranksOnly...) == "" {
		n := options.Changed(c, "token-file", "tls-cert", "tls-key", "tls-ca", "job")
		if n != "" && options.Changed(c, "listen", "queue") == "" {
			return nil,
				fault.Mistakef(
					"--%s goes with --rank, --world and --rendezvous or with --ranks, or with --seeds and --listen or --queue", n)
		}
		return nil, nil
	}
	cfg := ranks.DefaultConfig()
	cfg.Timeout, cfg.Patience, cfg.Build = r.timeout, r.waits, options.BuildIdentity()
	cfg.Say = a.Say
	text := func(name string) string { return c.Flag(name).Value.String() }
	if err := options.ReadToken(text("token-file"), &cfg.Token); err != nil {
		return nil, err
	}
	cert, key, ca := text("tls-cert"), text("tls-key"), text("tls-ca")
	if (cert == "") != (key == "") || ca != "" && cert == "" {
		return nil,
			fault.Mistakef("--tls-cert and --tls-key go together, and --tls-ca with them: every rank shows a certificate")
	}
	if cert != "" {
		var err error
		if cfg.Server, cfg.Client, err = ranks.ReadTLS(cert, key, ca); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	if err := r.place(c, &cfg, get); err != nil {
		return nil, err
	}
	// a rank of a NATS looks for its own address
	if r.knows() && cfg.Token == "" && !ranks.Loopback(cfg.Rendezvous) && cfg.World > 1 {
		return nil,
			fault.Mistakef(
				"%s can be reached from other machines, and nothing is asked of ranks; want --token-file FILE, the same at all "+
					"ranks", cfg.Rendezvous)
	}
	if cfg.World == 1 {
		return nil, nil // as without flags
	}
	return &cfg, nil
}

// knows reports whether a process knows which rank it is before it has met the others.
func (r *rankFlags) knows() bool { return r.from != "nats" }

// join meets the other ranks.
func (r *rankFlags) join(c *cobra.Command, a *cli.App, cfg ranks.Config) (*ranks.Group, error) {
	if r.from == "nats" {
		return r.overNATS(c.Context(), a, cfg, r.nats, c.Flags().Lookup("job").Value.String())
	}
	if cfg.Rank == 0 {
		cfg.Listening = func(addr string) error {
			a.Say("ranks     rank 0 of %d at %s, waiting for the others", cfg.World, addr)
			return nil
		}
	}
	return joined(c.Context())(ranks.Join(c.Context(), cfg))
}

// joined returns a group, or an error. If the group refuses this process, the error is a user's mistake.
func joined(ctx context.Context) func(*ranks.Group, error) (*ranks.Group, error) {
	return func(g *ranks.Group, err error) (*ranks.Group, error) {
		if err != nil && ctx.Err() == nil && ranks.Refused(err) {
			return nil, &fault.Mistake{Err: err}
		}
		return g, err
	}
}

// place sets rank, world and rendezvous from flags and the environment. Flags win.
func (r *rankFlags) place(c *cobra.Command, cfg *ranks.Config, get func(string) string) error {
	f := c.Flags()
	var found Placed
	var err error
	switch r.from {
	case "slurm":
		if found, err = SlurmPlace(get); err != nil {
			return err
		}
	case "env":
		found = EnvPlace(get)
	case "nats":
		if r.nats == "" {
			return fault.Mistakef("--ranks nats: want --queue URL, a NATS with JetStream")
		}
		if f.Changed("rank") || f.Changed("rendezvous") {
			return fault.Mistakef("--ranks nats gives out the ranks itself: --rank and --rendezvous do not go with it")
		}
		found.Rank, found.Rendezvous = "0", "nats:0"
	}
	for _, v := range []struct {
		flag string
		text *string
	}{{"rank", &found.Rank}, {"world", &found.World}, {"rendezvous", &found.Rendezvous}} {
		if f.Changed(v.flag) {
			*v.text = f.Lookup(v.flag).Value.String()
		}
		if *v.text == "" {
			if r.from == "" {
				return fault.Mistakef("--%s is missing: a training in ranks wants --rank, --world and --rendezvous, or --ranks",
					v.flag)
			}
			return fault.Mistakef("--ranks %s: the environment does not say the %s (%s), and there is no --%s", r.from, v.flag,
				variables[r.from][v.flag], v.flag)
		}
	}
	if cfg.World, err = strconv.Atoi(found.World); err != nil || cfg.World < 1 || cfg.World > 1024 {
		return fault.Mistakef("--world: got %q ranks, want 1 to 1024", found.World)
	}
	if cfg.Rank, err = strconv.Atoi(found.Rank); err != nil || cfg.Rank < 0 || cfg.Rank >= cfg.World {
		return fault.Mistakef("--rank: got %q, want a number from 0 to %d", found.Rank, cfg.World-1)
	}
	cfg.Rendezvous = found.Rendezvous
	host, port, err := net.SplitHostPort(cfg.Rendezvous)
	n, portErr := strconv.Atoi(port)
	if err != nil || host == "" || portErr != nil || n < 0 || n > 65535 || n == 0 && cfg.Rank > 0 {
		return fault.Mistakef("--rendezvous: got %q, want HOST:PORT of rank 0", cfg.Rendezvous)
	}
	return nil
}

// Placed are rank, world and rendezvous as texts, "" = not known.
type Placed struct{ Rank, World, Rendezvous string }

// variables are the names of what --ranks looks for, for errors.
var variables = map[string]map[string]string{
	"slurm": {"rank": "SLURM_PROCID", "world": "SLURM_NTASKS",
		"rendezvous": "SLURM_STEP_NODELIST or SLURM_JOB_NODELIST, and SLURM_JOB_ID"},
	"env":  {"rank": "RANK or JOB_COMPLETION_INDEX", "world": "WORLD_SIZE", "rendezvous": "MASTER_ADDR and MASTER_PORT"},
	"nats": {"world": "none of them"},
}

// EnvPlace reads the variables of PyTorch's launchers, or the index of a Kubernetes Indexed Job.
func EnvPlace(get func(string) string) Placed {
	p := Placed{Rank: get("RANK"), World: get("WORLD_SIZE")}
	if p.Rank == "" {
		p.Rank = get("JOB_COMPLETION_INDEX")
	}
	if host, port := get("MASTER_ADDR"), get("MASTER_PORT"); host != "" && port != "" {
		p.Rendezvous = net.JoinHostPort(host, port)
	}
	return p
}

// SlurmPlace reads what srun sets for each task. Rank 0 runs on the first node of the step. The port follows from the
// job, so that two jobs on a node have different ones.
func SlurmPlace(get func(string) string) (Placed, error) {
	p := Placed{Rank: get("SLURM_PROCID"), World: get("SLURM_NTASKS")}
	nodes := get("SLURM_STEP_NODELIST")
	if nodes == "" {
		nodes = get("SLURM_JOB_NODELIST")
	}
	job := get("SLURM_JOB_ID")
	if nodes == "" || job == "" {
		return p, nil // who asks finds that something is missing
	}
	id, err := strconv.ParseUint(job, 10, 64)
	if err != nil {
		return p, fault.Mistakef("--ranks slurm: SLURM_JOB_ID is %q, want a number", job)
	}
	host, err := FirstHost(nodes)
	if err != nil {
		return p, err
	}
	step, _ := strconv.ParseUint(get("SLURM_STEP_ID"), 10, 32) // 0 without steps
	p.Rendezvous = net.JoinHostPort(host, strconv.FormatUint(16384+(id*16+step)%16384, 10))
	return p, nil
}

// FirstHost returns the first host of a list as Slurm writes it, such as gpu[01-04,7],x3.
func FirstHost(list string) (string, error) {
	host := hostRange.ReplaceAllString(firstHost.FindString(list), "$1")
	if host == "" {
		return "", fault.Mistakef("--ranks slurm: the list of nodes %q is none, want one such as gpu[01-04],x3", list)
	}
	return host, nil
}

var (
	firstHost = regexp.MustCompile(`^(?:[^\[,]|\[[^],-][^]]*])*(?:$|,)`)
	hostRange = regexp.MustCompile(`\[([^],-]+)[^]]*]|,$`) // the first of a range or list; the end of the first host
)

// overNATS joins a group whose ranks a NATS gives out.
func (r *rankFlags) overNATS(ctx context.Context, a *cli.App, cfg ranks.Config, url, job string) (*ranks.Group, error) {
	if job == "" {
		job = "train"
	}
	g, err := joined(ctx)(ranks.JoinNATS(ctx, cfg, ranks.NATS{URL: url, Job: job}))
	if err == nil {
		a.Say("ranks     rank %d of %d of %s", g.Rank(), g.World(), job)
	}
	return g, err
}
