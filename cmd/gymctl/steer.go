package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/env/sim"
	"clustergym/experiments/config"
	"clustergym/experiments/models"
	"clustergym/experiments/steer"
	"clustergym/experiments/steer/mirror"
	"clustergym/internal/fault"
	"clustergym/live"
	"clustergym/live/kube"
	"clustergym/live/slurm"
)

// The kinds of clusters.
const (
	slurmCluster = "slurm"
	kubeCluster  = "kubernetes"
)

// slurmAccess are the flags that say which Slurm is meant.
type slurmAccess struct{ conf, ssh string }

func (s *slurmAccess) add(f *pflag.FlagSet) {
	f.StringVar(&s.conf, "slurm-conf", "", "read this slurm.conf, a `FILE` (default where Slurm's commands look)")
	f.StringVar(&s.ssh, "ssh", "", "run Slurm's commands on `HOST`, over ssh")
}

// through makes run use that Slurm.
func (s *slurmAccess) through(run slurm.Exec) slurm.Exec {
	if s.conf != "" {
		run.Env = []string{"SLURM_CONF=" + s.conf}
	}
	if s.ssh != "" {
		run.Prefix, run.Shell = slurm.SSH(s.ssh), true
	}
	return run
}

// slurmSteerFlags also say what a rank weighs.
type slurmSteerFlags struct {
	slurmAccess
	weight int64
}

func (s *slurmSteerFlags) add(f *pflag.FlagSet) {
	s.slurmAccess.add(f)
	f.Int64Var(&s.weight, "site-factor", 0, "`N` is the SiteFactor of the highest score (default 1048576)")
}

func (s *slurmSteerFlags) open() live.Cluster {
	return slurm.New(s.through(slurm.Exec{}), slurm.Options{Weight: s.weight})
}

// clusterFlags say which cluster is meant.
type clusterFlags struct {
	kind  string
	slurm slurmSteerFlags
	kube  kubeFlags
}

func (k *clusterFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&k.kind, "cluster", "", "`KIND` of the cluster: slurm or kubernetes")
	k.slurm.add(c.Flags())
	k.kube.add(c.Flags())
	c.Flags().StringArrayVar(&k.kube.tolerated, "tolerated-taint", nil, "take nodes with a taint of this `KEY` for usable, since all jobs tolerate it, can be repeated (default the GPU resources)")
	complete(c, "cluster", slurmCluster, kubeCluster)
}

// steered opens a cluster; tests replace it.
var steered = (*clusterFlags).open

func (k *clusterFlags) open() (live.Cluster, error) {
	switch k.kind {
	case slurmCluster:
		return k.slurm.open(), nil
	case kubeCluster:
		cfg, err := k.kube.find()
		if err != nil {
			return nil, err
		}
		c, err := kube.Open(cfg)
		if err != nil {
			return nil, fault.Mistakef("%w", err)
		}
		return c, nil
	}
	return nil, fault.Mistakef("--cluster: got %q, want %s or %s", k.kind, slurmCluster, kubeCluster)
}

// steerFlags are the flags of steer.
type steerFlags struct {
	clusterFlags
	policy, estimates, budget string
	past                      pastFlags
	logFile, leaseFile        string
	metrics                   uiFlags
	leaseObject               string
	logMax                    int64
	logKeep                   int
	lease                     time.Duration
	models                    modelFlags
	loop                      steer.Config
	limit                     time.Duration
}

func steerVerb(a *app) *cobra.Command {
	g := steerFlags{loop: steer.DefaultConfig()}
	c := &cobra.Command{
		Use:   "steer",
		Short: "Let a policy look at a real cluster, order its queue or start its jobs",
		Long: `steer shows a real cluster to a policy, again and again, and does what the mode allows (docs/live-clusters.md):

  shadow  nothing is written; the log says what the policy would do
  rank    the policy's order of the waiting jobs is written as their ranks; the cluster schedules as before
  gate    jobs are held back, and started when and where the policy says

Of programs that rank or gate a cluster, one has a lease, and others are refused. If steer has died for longer than --lease,
a guard, which is a process of its own, releases all jobs and takes ranks back; steer starts it, except with --lease-object.
What it has to say stands in the file of the lease with .log.

--policy is a run folder or checkpoint, a heuristic over the whole queue (sjf+skip), RULE@slots, or rollout:RULE.
--policy-onnx plays an ONNX model. A checkpoint must have been trained on a cluster with the same nodes. Policies that stop
running jobs are refused.

Run times are forecast by a predictor from --history, which gymctl trace get writes, and from what ends meanwhile. Jobs
that ask for no time limit count as --limit.

Nothing is written on observations older than --max-age, and no more than --max-writes and --max-writes-per-minute. With
--dry-run nothing is written at all, and steer says what it would write.`,
		Example: `  gymctl steer --cluster slurm --policy runs/mine --history slurm-jobs.txt.gz --log steer.jsonl
  gymctl steer --cluster slurm --policy sjf+skip --mode rank --clear
  gymctl steer --cluster kubernetes --policy rollout:sjf+skip --mode gate --dry-run
  gymctl steer release-all --cluster slurm`,
		Args: args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error { return a.steer(c, &g) },
	}
	f := c.Flags()
	g.add(c)
	f.StringVar(&g.policy, "policy", "", "`POLICY` that looks: a run or checkpoint, RULE, RULE@slots, rollout:RULE")
	g.models.flags(c)
	f.StringVar(&g.loop.Mode, "mode", g.loop.Mode, "what is written: shadow, rank or gate")
	g.past.add(f)
	f.StringVar(&g.estimates, "estimates", "history", "of rules: history, gbdt, gbdt:FILE, trace (time limits) or none")
	f.DurationVar(&g.limit, "limit", 24*time.Hour, "stands for the time limit of jobs that have none")
	budgetFlag(f, &g.budget)
	f.DurationVar(&g.loop.Every, "every", g.loop.Every, "time between two looks")
	f.DurationVar(&g.loop.Timeout, "timeout", g.loop.Timeout, "how long the cluster may take for an answer")
	f.DurationVar(&g.loop.Think, "think", 0, "how long the policy may choose starts after each look, and as long again order the queue (default half of --every)")
	f.DurationVar(&g.loop.MaxAge, "max-age", g.loop.MaxAge, "write nothing on observations that are older, by the cluster's clock")
	f.IntVar(&g.loop.PerCycle, "max-writes", g.loop.PerCycle, "at most `N` writes after each look, 0 = any number")
	f.IntVar(&g.loop.PerMinute, "max-writes-per-minute", g.loop.PerMinute, "at most `N` writes in a minute, 0 = any number")
	f.IntVar(&g.loop.Top, "top", g.loop.Top, "rank the first `N` jobs; the rest stays in the cluster's order")
	f.DurationVar(&g.loop.Grace, "grace", g.loop.Grace, "of gate: take a start back that the cluster has not carried out for this long")
	f.BoolVar(&g.loop.DryRun, "dry-run", false, "write nothing, and say what would be written")
	f.BoolVar(&g.loop.Clear, "clear", false, "of rank: take the ranks back at the end")
	f.IntVar(&g.loop.Cycles, "cycles", 0, "end after `N` looks, 0 = never")
	f.DurationVar(&g.lease, "lease", time.Minute, "of rank and gate: how long steer may be silent before the guard takes back what it did")
	f.StringVar(&g.leaseFile, "lease-file", "", "of rank and gate: the lease, a `FILE` (default gymctl-steer-CLUSTER.lease in a folder that takes no files of others: $RUNTIME_DIRECTORY, /run/user/UID, that of --log)")
	f.StringVar(&g.leaseObject, "lease-object", "", leaseObjectHelp)
	f.StringVar(&g.logFile, "log", "", "add a line of JSON for every look to `FILE`")
	g.logMax = 100 << 20
	f.Var(sizeFlag{&g.logMax}, "log-max", "`SIZE` at which the log becomes FILE.1, and that one FILE.2")
	f.IntVar(&g.logKeep, "log-keep", 9, "keep `N` full logs")
	f.StringVar(&g.metrics.addr, "metrics", "", "serve figures for Prometheus at `HOST:PORT`/metrics; :PORT is this machine alone")
	f.StringVar(&g.metrics.tokenFile, "metrics-token-file", "", "`FILE` of the tokens that readers of --metrics present, one \"ROLE TOKEN\" per line; those of role read or admin count")
	complete(c, "mode", steer.Modes()...)
	complete(c, "estimates", "history", "gbdt", "trace", "none")
	completeDir(c, "policy")
	c.AddCommand(steerReleaseAll(a), steerReport(a), steerGuard(a))
	return c
}

func (a *app) steer(c *cobra.Command, g *steerFlags) error {
	cfg := &g.loop
	if err := g.check(c); err != nil {
		return err
	}
	choice, err := g.choice(c.Context(), c, a.now())
	if err != nil {
		return err
	}
	cfg.Mirror = mirror.Config{Limit: g.limit}
	if cfg.Mirror.Epoch, err = g.past.epoch(choice.History, a.now()); err != nil {
		return err
	}
	cfg.Open = func(l mirror.Layout, _ *live.Snapshot) (*steer.Policy, error) { return steer.Open(choice, l) }
	if cfg.Cluster, err = steered(&g.clusterFlags); err != nil {
		return err
	}
	if cfg.Mode == steer.Rank {
		a.weighs(c.Context(), cfg.Cluster)
	}
	cfg.Begun = steer.Begun{Policy: g.policy, History: g.past.file}
	switch {
	case choice.Model != nil:
		cfg.Begun.Model = g.models.files[0]
	default:
		cfg.Begun.Estimates = g.estimates
	}
	if c.Flags().Changed("budget") {
		cfg.Begun.Budget = g.budget
	}
	cfg.Now, cfg.Note = a.now, func(text string) { a.notef("%s", text) }
	if g.logFile != "" {
		if cfg.Log, err = steer.OpenLog(g.logFile, g.logMax, g.logKeep); err != nil {
			return fault.Mistakef("--log: %w", err)
		}
		cfg.Log.Note = cfg.Note
	}
	if g.metrics.addr != "" {
		stop, err := g.serve(a, cfg)
		if err != nil {
			return errors.Join(err, cfg.Log.Close())
		}
		defer stop()
	}
	if cfg.Mode != steer.Shadow && !cfg.DryRun {
		err := g.lead(c, a)
		if c.Context().Err() != nil { // it was still waiting for its turn
			return cfg.Log.Close()
		}
		if err != nil {
			return errors.Join(err, cfg.Log.Close())
		}
	}
	err = steer.Run(c.Context(), *cfg)
	return errors.Join(err, cfg.Log.Close())
}

// weighs says if ranks can change little, because a cluster orders jobs by other things that weigh more. A cluster that does not answer says
// so again when steering begins.
func (a *app) weighs(ctx context.Context, c live.Cluster) {
	w, ok := c.(interface {
		Weights(ctx context.Context) (score, others int64, err error)
	})
	if !ok {
		return
	}
	if score, others, err := w.Weights(ctx); err == nil && score < others {
		a.notef("the highest rank is a SiteFactor of %d, and slurm.conf gives all other factors of a priority up to %d: ranks change little where those differ; want a higher --site-factor", score, others)
	}
}

// check reports mistakes in flags.
func (g *steerFlags) check(c *cobra.Command) error {
	cfg := &g.loop
	switch {
	case !slices.Contains(steer.Modes(), cfg.Mode):
		return fault.Mistakef("--mode: got %q, want %s", cfg.Mode, strings.Join(steer.Modes(), ", "))
	case (g.policy == "") == (len(g.models.files) == 0):
		return fault.Mistakef("want either --policy POLICY or --policy-onnx FILE")
	case g.metrics.addr == "" && g.metrics.tokenFile != "":
		return fault.Mistakef("--metrics-token-file goes with --metrics")
	case len(g.models.files) > 1:
		return fault.Mistakef("--policy-onnx: got %d models, want one", len(g.models.files))
	case cfg.Every < time.Second:
		return fault.Mistakef("--every: got %v, want 1s or more", cfg.Every)
	case cfg.Think < 0 || cfg.Think > cfg.Every || c.Flags().Changed("think") && cfg.Think < time.Millisecond:
		return fault.Mistakef("--think: got %v, want 1ms to --every (%v)", cfg.Think, cfg.Every)
	case cfg.Timeout < time.Second || cfg.MaxAge < time.Second || cfg.Grace < time.Second || g.limit < time.Second:
		return fault.Mistakef("--timeout %v, --max-age %v, --grace %v, --limit %v: want 1s or more of each", cfg.Timeout, cfg.MaxAge, cfg.Grace, g.limit)
	case cfg.PerCycle < 0 || cfg.PerMinute < 0 || cfg.Cycles < 0 || g.logKeep < 0:
		return fault.Mistakef("--max-writes %d, --max-writes-per-minute %d, --cycles %d, --log-keep %d: want 0 or more of each", cfg.PerCycle, cfg.PerMinute, cfg.Cycles, g.logKeep)
	case cfg.Top < 1 || cfg.Top > live.MaxScore/2:
		return fault.Mistakef("--top: got %d, want 1 to %d", cfg.Top, live.MaxScore/2)
	case cfg.Mode == steer.Gate && g.lease < max(2*time.Second, cfg.Every):
		return fault.Mistakef("--lease: got %v, want 2s or more, and no less than --every (%v)", g.lease, cfg.Every)
	case cfg.Mode == steer.Rank && g.lease < 2*time.Second:
		return fault.Mistakef("--lease: got %v, want 2s or more", g.lease)
	}
	for _, only := range []struct{ flag, mode string }{{"clear", steer.Rank}, {"grace", steer.Gate}} {
		if c.Flags().Changed(only.flag) && cfg.Mode != only.mode {
			return fault.Mistakef("--%s goes with --mode %s", only.flag, only.mode)
		}
	}
	for _, flag := range []string{"lease", "lease-file", "lease-object"} {
		if c.Flags().Changed(flag) && cfg.Mode == steer.Shadow {
			return fault.Mistakef("--%s goes with --mode %s and %s", flag, steer.Rank, steer.Gate)
		}
	}
	switch {
	case g.leaseObject != "" && g.kind != kubeCluster:
		return fault.Mistakef("--lease-object: want --cluster %s, whose API server keeps it", kubeCluster)
	case g.leaseObject != "" && g.leaseFile != "":
		return fault.Mistakef("want one of --lease-object and --lease-file")
	case g.leaseObject == "" && g.kind == kubeCluster && cfg.Mode == steer.Gate && !cfg.DryRun && inPod():
		return fault.Mistakef("--mode gate in a pod: a guard that steer starts would die with its container; want --lease-object NAMESPACE/NAME, and gymctl steer guard in a Deployment of its own, as deploy/kubernetes/gate.yaml has it")
	}
	return nil
}

// choice reads the policy's files.
func (g *steerFlags) choice(ctx context.Context, c *cobra.Command, _ time.Time) (*steer.Choice, error) {
	ch := &steer.Choice{Policy: g.policy, Config: config.For(jobselect.ID), Budget: rollout.DefaultConfig().Budget}
	if c.Flags().Changed("budget") {
		b, err := rollout.ParseBudget(g.budget)
		if err != nil {
			return nil, fault.Mistakef("--budget: got %q, want %s", g.budget, rollout.BudgetWanted)
		}
		ch.Budget = b
	}
	list, err := g.models.read()
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		ch.Model = new(models.Model)
		*ch.Model = list[0]
		if ch.Config, err = playedConfig(ch.Model, nil); err != nil {
			return nil, err
		}
	} else {
		if est, err := sim.ParseEstimates(g.estimates); err == nil && est.Rung() >= sim.RungNoisy {
			return nil, fault.Mistakef("--estimates: got %q, and nobody knows the run times of a real cluster; want history, gbdt, gbdt:FILE, trace (time limits) or none", g.estimates)
		}
		if err := ch.Config.Set("env.estimates=" + g.estimates); err != nil {
			return nil, flagFaults(c, err, map[string]string{"env.estimates": "estimates"})
		}
	}
	ch.History, err = g.past.read(ctx)
	return ch, err
}

func steerGuard(a *app) *cobra.Command {
	var k clusterFlags
	var object string
	l := &steer.Lease{Now: a.now}
	c := &cobra.Command{
		Use:   "guard",
		Short: "Release all jobs when steer has died",
		Long: `guard watches the lease that steer renews, and releases all jobs when nobody has renewed it for longer than --lease, by the
guard's own clock; with --ranks it takes ranks back, too. With a --lease-file it is started by steer, and ends after that.

With --lease-object it stays, in a Deployment of its own (deploy/kubernetes/gate.yaml): whenever nobody has had the lease for
a quarter longer than --lease, all that is held back, or handed over, is released. NAME-guard, a second Lease object, says
that it watches; steer does not begin without, and ends when it has not been seen for twice as long as --lease.`,
		Example: `  gymctl steer guard --cluster kubernetes --lease-object clustergym/steer-gate`,
		Args:    args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case (l.File == "") == (object == ""):
				return fault.Mistakef("want either --lease-file FILE or --lease-object NAMESPACE/NAME")
			case object != "" && k.kind != kubeCluster:
				return fault.Mistakef("--lease-object: want --cluster %s, whose API server keeps it", kubeCluster)
			case l.Term < 2*time.Second:
				return fault.Mistakef("--lease: got %v, want 2s or more", l.Term)
			}
			l.Note = func(text string) { a.notef("%s %s", a.now().Format(time.RFC3339), text) } // for a file
			cluster, err := steered(&k)
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
			return steer.Watch(c.Context(), l, cluster, beat, steer.Sleep, func(text string) { a.notef("%s", text) })
		},
	}
	k.add(c)
	c.Flags().StringVar(&l.File, "lease-file", "", "the lease, a `FILE`")
	c.Flags().StringVar(&object, "lease-object", "", "the lease, `NAMESPACE/NAME` of a Lease object in Kubernetes; NAME-guard must be there, too")
	c.Flags().DurationVar(&l.Term, "lease", time.Minute, "how old the lease may be")
	c.Flags().BoolVar(&l.Ranks, "ranks", false, "take ranks back, too")
	return c
}

func steerReleaseAll(a *app) *cobra.Command {
	var k clusterFlags
	var keep bool
	c := &cobra.Command{
		Use:   "release-all",
		Short: "Take back everything that steer has done to waiting jobs",
		Long: `release-all lets go all jobs that steer holds back or has tied to nodes, and takes its ranks back. It does so whether steer
runs or has died, and may be called any number of times; systemd does so with ExecStopPost. Jobs that their owners or
administrators hold stay held.`,
		Example: `  gymctl steer release-all --cluster slurm
  gymctl steer release-all --cluster kubernetes --keep-ranks`,
		Args: args(0, 0, "flags only"),
		RunE: func(c *cobra.Command, _ []string) error {
			cluster, err := steered(&k)
			if err != nil {
				return err
			}
			err = steer.ReleaseAll(c.Context(), cluster, steer.Releasing{Ranks: !keep, Wait: steer.Sleep, Note: func(text string) { a.notef("%s", text) }})
			if c.Context().Err() != nil {
				a.notef("not all jobs may have been released; call gymctl steer release-all again")
			}
			if err != nil {
				return err
			}
			a.notef("nothing is held back")
			return nil
		},
	}
	k.add(c)
	c.Flags().BoolVar(&keep, "keep-ranks", false, "leave ranks as they are")
	return c
}
