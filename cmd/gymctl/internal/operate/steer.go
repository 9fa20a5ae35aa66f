package operate

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/internal/fault"
	"clustergym/lab/config"
	"clustergym/live"
	"clustergym/live/demo"
	"clustergym/live/kube"
	"clustergym/live/slurm"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/sim"
)

// The kinds of clusters.
const (
	SlurmCluster = "slurm"
	KubeCluster  = "kubernetes"
	DemoCluster  = "demo"
)

// SlurmSteerFlags also say what a rank weighs.
type SlurmSteerFlags struct {
	options.SlurmAccess
	weight int64
}

func (s *SlurmSteerFlags) add(f *pflag.FlagSet) {
	s.SlurmAccess.Add(f)
	f.Int64Var(&s.weight, "site-factor", 0, "`N` is the SiteFactor of the highest score (default 1048576)")
}

func (s *SlurmSteerFlags) open() live.Cluster {
	return slurm.New(s.Through(slurm.Exec{}), slurm.Options{Weight: s.weight})
}

// ClusterFlags say which cluster is meant.
type ClusterFlags struct {
	Kind  string
	Slurm SlurmSteerFlags
	Kube  options.KubeFlags
	Demo  options.DemoFlags
}

func (k *ClusterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&k.Kind, "cluster", "", "`KIND` of the cluster: slurm, kubernetes, or demo, which replays a history")
	k.Slurm.add(c.Flags())
	k.Kube.Add(c.Flags())
	c.Flags().StringArrayVar(&k.Kube.Tolerated, "tolerated-taint", nil,
		"take nodes with a taint of this `KEY` for usable, since all jobs tolerate it, can be repeated (default the GPU "+
			"resources)")
	k.Demo.Add(c)
	cli.Complete(c, "cluster", SlurmCluster, KubeCluster, DemoCluster)
}

// Steered opens a cluster; tests replace it.
var Steered = (*ClusterFlags).open

func (k *ClusterFlags) open() (live.Cluster, error) {
	if k.Kind == DemoCluster {
		return k.Demo.Open()
	}
	if err := k.Demo.Stray(); err != nil {
		return nil, err
	}
	switch k.Kind {
	case SlurmCluster:
		return k.Slurm.open(), nil
	case KubeCluster:
		cfg, err := k.Kube.Find()
		if err != nil {
			return nil, err
		}
		c, err := kube.Open(cfg)
		if err != nil {
			return nil, fault.Mistakef("%w", err)
		}
		return c, nil
	}
	return nil, fault.Mistakef("--cluster: got %q, want %s, %s or %s", k.Kind, SlurmCluster, KubeCluster, DemoCluster)
}

// SteerFlags are the flags of steer.
type SteerFlags struct {
	ClusterFlags
	policy             string
	estimates          sim.Estimates
	budget             rollout.Budget
	past               PastFlags
	LogFile, leaseFile string
	metrics            options.UIFlags
	leaseObject        string
	logMax             int64
	logKeep            int
	lease              time.Duration
	models             options.ModelFlags
	loop               steer.Config
	limit              time.Duration
}

func steerVerb(a *cli.App) *cobra.Command {
	c := steerMode(a, "")
	c.AddCommand(steerMode(a, steer.Shadow), steerMode(a, steer.Rank), steerMode(a, steer.Gate), steerReleaseAll(a),
		steerReport(a), steerGuard(a))
	return c
}

// Of each mode: what it does in one line, in a paragraph, and examples.
var steerTexts = map[string][3]string{
	"": {
		"Let a policy look at a real cluster, order its queue or start its jobs",
		`steer shows a real cluster to a policy, again and again, and does what its verb allows (docs/guides/real-clusters.md):

  shadow  nothing is written; the log says what the policy would do
  rank    the policy's order of the waiting jobs is written as their ranks; the cluster schedules as before
  gate    jobs are held back, and started when and where the policy says

Of programs that rank or gate a cluster, one has a lease, and others are refused. If steer has died for longer than --lease,
a guard, which is a process of its own, releases all jobs and takes ranks back; steer starts it, except with --lease-object.
What it has to say stands in the file of the lease with .log.`,
		`  gymctl steer shadow --cluster slurm --policy runs/mine --history slurm-jobs.txt.gz --log steer.jsonl
  gymctl steer release-all --cluster slurm`,
	},
	steer.Shadow: {
		"Log what a policy would do on a real cluster, and write nothing",
		`shadow shows a real cluster to a policy, again and again, and logs what the policy would do. It writes nothing into the
cluster. gymctl steer report says from the log whether the policy would help.`,
		`  gymctl steer shadow --cluster slurm --policy runs/mine --history slurm-jobs.txt.gz --log steer.jsonl
  gymctl steer shadow --cluster kubernetes --policy rollout:sjf+skip --log steer.jsonl
  gymctl steer shadow --cluster demo --from slurm-jobs.txt.gz --policy sjf+skip --log steer.jsonl`,
	},
	steer.Rank: {
		"Write a policy's order of the waiting jobs as their ranks",
		`rank writes the policy's order of the waiting jobs as their ranks, again and again; the cluster schedules as before. If it
dies for longer than --lease, its guard takes the ranks back.`,
		`  gymctl steer rank --cluster slurm --policy sjf+skip --clear
  gymctl steer rank --cluster kubernetes --policy sjf+skip --dry-run`,
	},
	steer.Gate: {
		"Hold jobs back, and start them when and where a policy says",
		`gate holds jobs back, and starts them when and where the policy says. If it dies for longer than --lease, its guard releases
all jobs.`,
		`  gymctl steer gate --cluster kubernetes --policy rollout:sjf+skip --dry-run
  gymctl steer gate --cluster slurm --policy runs/mine --history slurm-jobs.txt.gz --log steer.jsonl`,
	},
}

const steerPolicies = `

--policy is a run folder or checkpoint, a heuristic over the whole queue (sjf+skip), RULE@slots, or rollout:RULE.
--policy-onnx plays an ONNX model. A checkpoint whose observations show single nodes must have been trained on a cluster with
the same nodes. Policies that stop running jobs are refused.

Run times are forecast by a predictor from --history, which gymctl trace get writes, and from what ends meanwhile. Jobs
that ask for no time limit count as --limit.

--cluster demo is no cluster: it replays the jobs of --from, --speed times as fast, from the middle of the file on, with a
scheduler of its own, and ends with the file. The predictor knows what had ended by then. Several programs that name one
file see one demo. --every and --grace go by its clock, all other times by ours.`

const steerWrites = `

Nothing is written on observations older than --max-age, and no more than --max-writes and --max-writes-per-minute. With
--dry-run nothing is written at all, and steer says what it would write.`

// steerMode is the verb of a mode. Without a mode it is steer itself: it lists the verbs, and does what --mode says,
// which was its form before there were verbs.
func steerMode(a *cli.App, mode string) *cobra.Command {
	g := SteerFlags{loop: steer.DefaultConfig()}
	text := steerTexts[mode]
	c := &cobra.Command{
		Use: mode, Short: text[0], Long: text[1], Example: text[2],
		RunE: func(c *cobra.Command, _ []string) error { return runSteer(a, c, &g) },
	}
	writes := mode != steer.Shadow
	g.flags(c, mode)
	if mode != "" {
		g.loop.Mode = mode
		c.Long += steerPolicies
		if writes {
			c.Long += steerWrites
		}
		return c
	}
	cli.Choice(c, &g.loop.Mode, "mode", "what is written: shadow, rank or gate", steer.Modes()...)
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	c.Use = "steer"
	run := c.RunE
	cli.Parent(c)
	help := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().NFlag() == 0 {
			return help(c, args)
		}
		return run(c, args)
	}
	return c
}

// flags adds the flags of a mode, those of all modes for "".
func (g *SteerFlags) flags(c *cobra.Command, mode string) {
	f := c.Flags()
	g.add(c)
	g.past.add(f)
	g.choiceFlags(c, "that looks: a run or checkpoint, RULE, RULE@slots, rollout:RULE", "")
	f.DurationVar(&g.loop.Every, "every", g.loop.Every, "time between two looks")
	f.DurationVar(&g.loop.Timeout, "timeout", g.loop.Timeout, "how long the cluster may take for an answer")
	f.DurationVar(&g.loop.Think, "think", 0,
		"how long the policy may choose starts after each look, and as long again order the queue (default half of --every)")
	f.DurationVar(&g.loop.MaxAge, "max-age", g.loop.MaxAge,
		"write nothing on observations that are older, by the cluster's clock")
	f.IntVar(&g.loop.Cycles, "cycles", 0, "end after `N` looks, 0 = never")
	f.IntVar(&g.loop.PerCycle, "max-writes", g.loop.PerCycle, "at most `N` writes after each look, 0 = any number")
	f.IntVar(&g.loop.PerMinute, "max-writes-per-minute", g.loop.PerMinute,
		"at most `N` writes in a minute, 0 = any number")
	f.IntVar(&g.loop.Top, "top", g.loop.Top, "rank the first `N` jobs; the rest stays in the cluster's order")
	f.BoolVar(&g.loop.DryRun, "dry-run", false, "write nothing, and say what would be written")
	if mode == steer.Gate || mode == "" {
		f.DurationVar(&g.loop.Grace, "grace", g.loop.Grace,
			"take a start back that the cluster has not carried out for this long")
		cli.Least(c, time.Second, "grace")
	}
	if mode == steer.Rank || mode == "" {
		f.BoolVar(&g.loop.Clear, "clear", false, "take the ranks back at the end")
	}
	g.lease = time.Minute
	if mode != steer.Shadow {
		f.DurationVar(&g.lease, "lease", g.lease, "how long steer may be silent before the guard takes back what it did")
		f.StringVar(&g.leaseFile, "lease-file", "",
			"the lease, a `FILE` (default gymctl-steer-CLUSTER.lease in a folder that takes no files of others: "+
				"$RUNTIME_DIRECTORY, /run/user/UID, that of --log)")
		f.StringVar(&g.leaseObject, "lease-object", "", leaseObjectHelp)
		c.MarkFlagsMutuallyExclusive("lease-file", "lease-object")
		cli.Least(c, 2*time.Second, "lease")
	}
	f.StringVar(&g.LogFile, "log", "", "add a line of JSON for every look to `FILE`")
	g.logMax = 100 << 20
	f.Var(options.SizeFlag{Bytes: &g.logMax}, "log-max", "`SIZE` at which the log becomes FILE.1, and that one FILE.2")
	f.IntVar(&g.logKeep, "log-keep", 9, "keep `N` full logs")
	f.StringVar(&g.metrics.Addr, "metrics", "",
		"serve figures for Prometheus at `HOST:PORT`/metrics; :PORT is this machine alone")
	f.StringVar(&g.metrics.TokenFile, "metrics-token-file", "",
		"`FILE` of the tokens that readers of --metrics present, one \"ROLE TOKEN\" per line; those of role read or admin "+
			"count")
	cli.Needs(c, []string{"metrics"}, "metrics-token-file")
	cli.Least(c, time.Second, "every", "timeout", "max-age")
	cli.Least(c, 0, "max-writes", "max-writes-per-minute", "cycles", "log-keep")
	cli.Least(c, time.Millisecond, "think")
	cli.Section(c, "Policy", "policy", "policy-onnx", "name", "budget", "estimates", "limit", "history", "history-end")
	cli.Section(c, "Cluster", "cluster", "slurm-conf", "ssh", "site-factor", "kubeconfig", "context", "namespace",
		"gpu-resource", "tolerated-taint")
	options.DemoSection(c)
	cli.Section(c, "Writes", "dry-run", "clear", "grace", "top", "max-age", "max-writes", "max-writes-per-minute")
	cli.Section(c, "Lease", "lease", "lease-file", "lease-object")
	cli.Section(c, "Looks and logs", "every", "timeout", "think", "cycles", "log", "log-max", "log-keep", "metrics",
		"metrics-token-file")
}

// choiceFlags adds the flags that say what the policy is; of are ends of helps.
func (g *SteerFlags) choiceFlags(c *cobra.Command, ofPolicy, ofOthers string) {
	f := c.Flags()
	f.StringVar(&g.policy, "policy", "", "`POLICY` "+ofPolicy)
	g.models.Flags(c)
	f.TextVar(&g.estimates, "estimates", sim.Estimates{Mode: sim.EstimateHistory},
		"`ESTIMATES` of rules: history, gbdt, gbdt:FILE, trace (time limits) or none"+ofOthers)
	f.DurationVar(&g.limit, "limit", 24*time.Hour, "stands for the time limit of jobs that have none"+ofOthers)
	options.BudgetFlag(f, &g.budget)
	cli.Least(c, time.Second, "limit")
	c.MarkFlagsMutuallyExclusive("policy", "policy-onnx")
	cli.Complete(c, "estimates", "history", "gbdt", "trace", "none")
	cli.CompleteDir(c, "policy")
}

func runSteer(a *cli.App, c *cobra.Command, g *SteerFlags) (err error) {
	cfg := &g.loop
	if err := g.check(c); err != nil {
		return err
	}
	choice, err := g.choice(c)
	if err != nil {
		return err
	}
	cfg.Mirror = mirror.Config{Limit: g.limit}
	if cfg.Mirror.Epoch, err = g.past.Epoch(choice.History, a.Now()); err != nil {
		return err
	}
	cfg.Open = func(l mirror.Layout, _ *live.Snapshot) (*steer.Policy, error) { return steer.Open(choice, l) }
	if cfg.Cluster, err = Steered(&g.ClusterFlags); err != nil {
		return err
	}
	if cfg.Mode == steer.Rank {
		noteWeights(c.Context(), a, cfg.Cluster)
	}
	cfg.Now, cfg.Note = a.Now, func(text string) { a.Notef("%s", text) }
	cfg.Begun = steer.Begun{Policy: g.policy, History: g.past.File}
	if d, ok := cfg.Cluster.(*demo.Cluster); ok {
		defer func() { err = errors.Join(err, d.Close()) }()
		if err := g.onDemo(a, d, choice); err != nil {
			return err
		}
	}
	if choice.Model != nil {
		cfg.Begun.Model = g.models.Files[0]
	} else {
		cfg.Begun.Estimates = g.estimates.String()
	}
	if c.Flags().Changed("budget") {
		cfg.Begun.Budget = g.budget.String()
	}
	if g.LogFile != "" {
		if cfg.Log, err = steer.OpenLog(g.LogFile, g.logMax, g.logKeep); err != nil {
			return fault.Mistakef("--log: %w", err)
		}
		cfg.Log.Note = cfg.Note
	}
	defer func() { err = errors.Join(err, cfg.Log.Close()) }()
	if g.metrics.Addr != "" {
		stop, err := g.serve(a, cfg)
		if err != nil {
			return err
		}
		defer stop()
	}
	if cfg.Mode != steer.Shadow && !cfg.DryRun {
		err := g.lead(c, a)
		if c.Context().Err() != nil { // it was still waiting for its turn
			return nil
		}
		if err != nil {
			return err
		}
	}
	return steer.Run(c.Context(), *cfg)
}

// noteWeights says if ranks can change little, because a cluster orders jobs by other things that weigh more. A cluster
// that does not answer says so again when steering begins.
func noteWeights(ctx context.Context, a *cli.App, c live.Cluster) {
	w, ok := c.(interface {
		Weights(ctx context.Context) (score, others int64, err error)
	})
	if !ok {
		return
	}
	if score, others, err := w.Weights(ctx); err == nil && score < others {
		a.Notef("the highest rank is a SiteFactor of %d, and slurm.conf gives all other factors of a priority up to %d: "+
			"ranks change little where those differ; want a higher --site-factor", score, others)
	}
}

// check reports mistakes in flags.
func (g *SteerFlags) check(c *cobra.Command) error {
	cfg := &g.loop
	switch {
	case g.policy == "" && len(g.models.Files) == 0:
		return fault.Mistakef("want either --policy POLICY or --policy-onnx FILE")
	case cfg.Think > cfg.Every:
		return fault.Mistakef("--think: got %v, want 1ms to --every (%v)", cfg.Think, cfg.Every)
	case cfg.Top < 1 || cfg.Top > live.MaxScore/2:
		return fault.Mistakef("--top: got %d, want 1 to %d", cfg.Top, live.MaxScore/2)
	case cfg.Mode == steer.Gate && g.Kind != DemoCluster && g.lease < cfg.Every: // a demo's clock is another one
		return fault.Mistakef("--lease: got %v, want 2s or more, and no less than --every (%v)", g.lease, cfg.Every)
	}
	both := []string{steer.Rank, steer.Gate}
	ofModes := map[string][]string{"clear": both[:1], "grace": both[1:], "lease": both, "lease-file": both,
		"lease-object": both}
	for _, flag := range slices.Sorted(maps.Keys(ofModes)) {
		if modes := ofModes[flag]; c.Flags().Changed(flag) && !slices.Contains(modes, cfg.Mode) {
			return fault.Mistakef("--%s goes with --mode %s", flag, strings.Join(modes, " and "))
		}
	}
	if g.leaseObject == "" && g.Kind == KubeCluster && cfg.Mode == steer.Gate && !cfg.DryRun && inPod() {
		return fault.Mistakef(
			"--mode gate in a pod: a guard that steer starts would die with its container; want --lease-object " +
				"NAMESPACE/NAME, and gymctl steer guard in a Deployment of its own, as deploy/kubernetes/gate.yaml has it")
	}
	return g.keeps(g.leaseObject)
}

// keeps returns a mistake if the cluster has no API server that keeps a lease object.
func (k *ClusterFlags) keeps(object string) error {
	if object != "" && k.Kind != KubeCluster {
		return fault.Mistakef("--lease-object: want --cluster %s, whose API server keeps it", KubeCluster)
	}
	return nil
}

// choice reads the policy's files.
func (g *SteerFlags) choice(c *cobra.Command) (*steer.Choice, error) {
	if len(g.models.Files) > 1 {
		return nil, fault.Mistakef("--policy-onnx: got %d models, want one", len(g.models.Files))
	}
	ch := &steer.Choice{Policy: g.policy, Config: config.For(jobselect.ID), Budget: g.budget}
	list, err := g.models.Read()
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		ch.Model = new(list[0])
		if ch.Config, err = options.PlayedConfig(ch.Model, nil); err != nil {
			return nil, err
		}
	} else {
		if g.estimates.Rung() >= sim.RungNoisy {
			return nil,
				fault.Mistakef(
					"--estimates: got %q, and nobody knows the run times of a real cluster; want history, gbdt, gbdt:FILE, trace "+
						"(time limits) or none", g.estimates)
		}
		if err := ch.Config.Set("env.estimates=" + g.estimates.String()); err != nil {
			return nil, cli.FlagFaults(c, err, map[string]string{"env.estimates": "estimates"})
		}
	}
	ch.History, err = g.past.read(c.Context())
	return ch, err
}

func steerGuard(a *cli.App) *cobra.Command {
	var k ClusterFlags
	var object string
	l := &steer.Lease{Now: a.Now}
	c := &cobra.Command{
		Use:   "guard",
		Short: "Release all jobs when steer has died",
		Long: `guard watches the lease that steer renews, and releases all jobs when nobody has renewed it for longer than --lease, by the
guard's own clock; with --ranks it takes ranks back, too. With a --lease-file it is started by steer, and ends after that.

With --lease-object it stays, in a Deployment of its own (deploy/kubernetes/gate.yaml): whenever nobody has had the lease for
a quarter longer than --lease, all that is held back, or handed over, is released. NAME-guard, a second Lease object, says
that it watches; steer does not begin without, and ends when it has not been seen for twice as long as --lease.`,
		Example: `  gymctl steer guard --cluster kubernetes --lease-object clustergym/steer-gate`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := k.keeps(object); err != nil {
				return err
			}
			l.Note = func(text string) { a.Notef("%s %s", a.Now().Format(time.RFC3339), text) } // for a file
			cluster, err := Steered(&k)
			if err != nil {
				return err
			}
			if object == "" {
				return steer.Guard(c.Context(), l, cluster, steer.Sleep)
			}
			lease, own, err := k.leases(object)
			if err != nil {
				return err
			}
			l.Store = lease
			beat := func() error {
				if _, _, _, err := own.Read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				return own.Write("guard " + strconv.Itoa(os.Getpid()))
			}
			return steer.Watch(c.Context(), l, cluster, beat, steer.Sleep, func(text string) { a.Notef("%s", text) })
		},
	}
	k.add(c)
	c.Flags().StringVar(&l.File, "lease-file", "", "the lease, a `FILE`")
	c.Flags().StringVar(&object, "lease-object", "",
		"the lease, `NAMESPACE/NAME` of a Lease object in Kubernetes; NAME-guard must be there, too")
	c.Flags().DurationVar(&l.Term, "lease", time.Minute, "how old the lease may be")
	c.Flags().BoolVar(&l.Ranks, "ranks", false, "take ranks back, too")
	cli.One(c, "lease-file", "lease-object")
	cli.Least(c, 2*time.Second, "lease")
	return c
}

func steerReleaseAll(a *cli.App) *cobra.Command {
	var k ClusterFlags
	var keep bool
	c := &cobra.Command{
		Use:   "release-all",
		Short: "Take back everything that steer has done to waiting jobs",
		Long: `release-all lets go all jobs that steer holds back or has tied to nodes, and takes its ranks back. It does so whether steer
runs or has died, and may be called any number of times; systemd does so with ExecStopPost. Jobs that their owners or
administrators hold stay held.`,
		Example: `  gymctl steer release-all --cluster slurm
  gymctl steer release-all --cluster kubernetes --keep-ranks`,
		RunE: func(c *cobra.Command, _ []string) error {
			cluster, err := Steered(&k)
			if err != nil {
				return err
			}
			err = steer.ReleaseAll(c.Context(), cluster,
				steer.Releasing{Ranks: !keep, Wait: steer.Sleep, Note: func(text string) { a.Notef("%s", text) }})
			if c.Context().Err() != nil {
				a.Notef("not all jobs may have been released; call gymctl steer release-all again")
			}
			if err != nil {
				return err
			}
			a.Notef("nothing is held back")
			return nil
		},
	}
	k.add(c)
	c.Flags().BoolVar(&keep, "keep-ranks", false, "leave ranks as they are")
	return c
}
