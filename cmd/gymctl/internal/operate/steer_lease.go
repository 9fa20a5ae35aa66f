package operate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/live"
	"clustergym/live/kube"
	"clustergym/ops/steer"
)

// inPod reports whether this runs in a pod of Kubernetes.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// lead takes the lease, and has it watched.
func (g *SteerFlags) lead(c *cobra.Command, a *cli.App) error {
	cfg := &g.loop
	host, err := os.Hostname() // a pod's is its name
	if err != nil {
		return err
	}
	cfg.Token = fmt.Sprintf("process %d on %s, mode %s, since %s", os.Getpid(), host, cfg.Mode,
		a.Now().UTC().Format(time.RFC3339Nano))
	cfg.Lease = &steer.Lease{Term: g.lease, Now: a.Now}
	if g.leaseObject != "" {
		return g.shared(c.Context(), a)
	}
	if g.leaseFile == "" && g.Kind == KubeCluster && inPod() { // of rank; files and guard would end with the container
		cfg.Lease, cfg.Unleased = nil,
			"in a pod nothing takes the ranks back if steer is killed, and a second program that ranks goes unnoticed; want --lease-object"
		return nil
	}
	if g.leaseFile == "" {
		dir, err := g.LeaseFolder()
		switch {
		case err != nil && cfg.Mode == steer.Rank:
			cfg.Lease, cfg.Unleased = nil,
				err.Error()+": nothing takes the ranks back if steer is killed, and a second program that ranks goes unnoticed"
			return nil
		case err != nil:
			return fault.Mistakef("%w", err)
		}
		g.leaseFile = filepath.Join(dir, g.LeaseName())
	}
	cfg.Lease.File = g.leaseFile
	if err := cfg.Lease.Take(cfg.Token); err != nil {
		return err
	}
	if cfg.Guarded, err = Guarded(g, c); err != nil {
		return errors.Join(err, cfg.Lease.End())
	}
	return nil
}

// LeaseFolder returns the folder for a lease that everybody finds under the same name: where services and users have
// the files of programs that run, else that of the log, else the user's own. Folders that take files of others are
// passed over, because a file in the place of the lease keeps steer from starting.
func (g *SteerFlags) LeaseFolder() (string, error) {
	service, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":")
	list := []string{service, os.Getenv("XDG_RUNTIME_DIR")}
	if uid := os.Geteuid(); uid >= 0 {
		list = append(list, fmt.Sprintf("/run/user/%d", uid))
		if uid == 0 {
			list = append(list, "/run")
		}
	}
	if g.LogFile != "" {
		list = append(list, filepath.Dir(g.LogFile))
	}
	if dir, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(dir, "clustergym")
		if os.MkdirAll(dir, 0o700) == nil {
			list = append(list, dir)
		}
	}
	var why error
	for _, dir := range list {
		if dir == "" {
			continue
		}
		err := steer.Private(dir)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			why = err
		}
	}
	if why != nil {
		return "", fmt.Errorf("there is no folder of ours for the lease (%w); want --lease-file FILE", why)
	}
	return "", errors.New("there is no folder of ours for the lease; want --lease-file FILE")
}

// LeaseName names the lease of a cluster. Clusters that flags or variables tell apart have leases of their own.
func (g *SteerFlags) LeaseName() string {
	var of []string
	switch g.Kind {
	case SlurmCluster:
		of = []string{g.Slurm.Conf, g.Slurm.Ssh}
		if g.Slurm.Conf == "" {
			of[0] = os.Getenv("SLURM_CONF")
		}
	case KubeCluster:
		of = append([]string{g.Kube.Config, g.Kube.Context}, g.Kube.Namespaces...)
		if g.Kube.Config == "" {
			of[0] = os.Getenv("KUBECONFIG")
		}
	}
	if g.Kind == DemoCluster {
		of = []string{g.Demo.From}
		if full, err := filepath.Abs(g.Demo.From); err == nil {
			of[0] = full
		}
	}
	which := strings.Join(of, "\x00")
	if strings.Trim(which, "\x00") == "" {
		return "gymctl-steer-" + g.Kind + ".lease"
	}
	sum := sha256.Sum256([]byte(which))
	return "gymctl-steer-" + g.Kind + "-" + hex.EncodeToString(sum[:4]) + ".lease"
}

// Guarded starts a guard, and returns what says that it is alive; tests replace it.
var Guarded = (*SteerFlags).guard

// guard starts the guard in a process group of its own, so that it outlives what ends this process. It holds neither
// output of this process, because a reader of a pipe would wait for its end: what it says goes into a file.
func (g *SteerFlags) guard(c *cobra.Command) (alive func() error, err error) {
	list := []string{"steer", "guard", "--lease", g.lease.String(), "--lease-file", g.leaseFile}
	if g.loop.Mode == steer.Rank {
		list = append(list, "--ranks")
	}
	var of cobra.Command
	new(ClusterFlags).add(&of)
	c.Flags().Visit(func(f *pflag.Flag) {
		if of.Flags().Lookup(f.Name) == nil {
			return
		}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range many.GetSlice() {
				list = append(list, "--"+f.Name+"="+v)
			}
			return
		}
		list = append(list, "--"+f.Name+"="+f.Value.String())
	})
	cmd := exec.Command(cli.Self(), list...) //nolint:gosec // this program
	said, err := steer.OpenNotes(g.leaseFile + ".log")
	if err != nil {
		return nil, fmt.Errorf("the guard has nowhere to say what it does: %w", err)
	}
	cmd.Stderr = said
	apart(cmd)
	err = cmd.Start()
	_ = said.Close() // the guard has its own
	if err != nil {
		return nil, fmt.Errorf("the guard cannot be started: %w", err)
	}
	var gone atomic.Bool
	go func() {
		_ = cmd.Wait() // whatever it returns, the guard has ended
		gone.Store(true)
	}()
	return func() error {
		if gone.Load() {
			return fmt.Errorf("the guard has ended; what it said is in %s.log", g.leaseFile)
		}
		return nil
	}, nil
}

const leaseObjectHelp = "in Kubernetes: the lease, `NAMESPACE/NAME` of a Lease object; a gymctl steer guard of its " +
	"own watches it, by NAME-guard"

// leases opens two leases: steer renews the first, and its guard renews the second to show that it is alive.
func (k *ClusterFlags) leases(object string) (lease, guard *kube.Lease, err error) {
	cfg, err := k.Kube.Find()
	if err != nil {
		return nil, nil, err
	}
	if lease, err = kube.OpenLease(cfg, object); err != nil {
		return nil, nil, fault.Mistakef("--lease-object: %w", err)
	}
	guard, err = kube.OpenLease(cfg, object+"-guard")
	return lease, guard, err
}

// shared takes a lease that the cluster keeps, as soon as it is free and a guard watches.
func (g *SteerFlags) shared(ctx context.Context, a *cli.App) error {
	cfg := &g.loop
	lease, guard, err := g.leases(g.leaseObject)
	if err != nil {
		return err
	}
	cfg.Lease.Store = lease
	watched := &steer.Lease{Term: g.lease, Now: a.Now, Store: guard}
	cfg.Guarded = func() error {
		age, _, err := watched.Age()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("no gymctl steer guard has been seen that watches the lease %s", g.leaseObject)
		case err == nil && age > 2*g.lease:
			return fmt.Errorf("the gymctl steer guard that watches the lease %s was last seen %v ago", g.leaseObject,
				age.Round(time.Second))
		}
		return err
	}
	caps, err := cfg.Cluster.Can(ctx) // who may not do it need not wait for its turn
	if err != nil {
		return err
	}
	if why := map[string]string{steer.Rank: caps.Rank, steer.Gate: caps.Gate}[cfg.Mode]; why != "" {
		return fmt.Errorf("%w: --mode %s: %s", live.ErrUnsupported, cfg.Mode, why)
	}
	for begun, waits := a.Now(), false; ; {
		unwatched := cfg.Guarded()
		err := unwatched
		if err == nil {
			err = cfg.Lease.Take(cfg.Token)
		}
		switch {
		case err == nil:
			return nil
		case unwatched != nil && (a.Now().Sub(begun) > 2*g.lease || errors.Is(err, live.ErrDenied) ||
			errors.Is(err, live.ErrUnsupported)):
			return err
		case unwatched == nil && !errors.Is(err, steer.ErrLease):
			return err
		case unwatched == nil:
			begun = a.Now()
		}
		if !waits {
			a.Notef("%v; steer waits for its turn", err)
			waits = true
		}
		if err := steer.Sleep(ctx, min(g.lease/8, 5*time.Second)); err != nil {
			return err
		}
	}
}
