package options

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/fault"
	"clustergym/internal/lock"
	"clustergym/lab/workload"
	"clustergym/live"
	"clustergym/live/demo"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// DemoFlags are the flags that say what a demo replays, and how.
type DemoFlags struct {
	From  string
	asked demo.Settings
	verb  *cobra.Command

	// Of Open:
	Why    string // the nodes are what they are; "" = they were given
	Joined bool   // another process has begun the demo
	Apart  string // why other processes see a demo of their own; "" = they see this one
}

// demoFlags are the names of these flags.
var demoFlags = []string{"from", "speed", "nodes", "begin", "backfill"}

// Add adds the flags.
func (d *DemoFlags) Add(c *cobra.Command) {
	d.verb, d.asked = c, demo.Defaults()
	f := c.Flags()
	f.StringVar(&d.From, "from", "", "of a demo: replay the jobs of `FILE`, which gymctl trace formats says how to write")
	f.Float64Var(&d.asked.Speed, "speed", d.asked.Speed, "of a demo: its clock runs `N` times as fast")
	f.StringVar(&d.asked.Nodes, "nodes", "",
		"of a demo: the nodes, as a `CLUSTER` of gymctl sim: 16x8, a preset or a file (default guessed from the jobs)")
	f.Float64Var(&d.asked.Begin, "begin", d.asked.Begin, "of a demo: it begins after this `SHARE` of the jobs")
	cli.Choice(c, &d.asked.Backfill, "backfill",
		"`HOW` a demo schedules: which jobs pass the first one that does not fit: those that do not delay it by time limits (easy), none, "+
			"or any", demo.Backfills()...)
	cli.Filled(c, "from", "nodes")
}

// DemoSection puts these flags into a section of a verb's help.
func DemoSection(c *cobra.Command) { cli.Section(c, "Demo", demoFlags...) }

// settings returns what was chosen.
func (d *DemoFlags) settings() (demo.Settings, error) {
	s, given := demo.Unset(), d.verb.Flags().Changed
	if given("speed") {
		if s.Speed = d.asked.Speed; !(s.Speed > 0 && s.Speed <= 1e6) {
			return s, fault.Mistakef("--speed: got %v, want a number above 0, up to 1000000; 60 lets an hour pass in a minute",
				s.Speed)
		}
	}
	if given("nodes") {
		s.Nodes = d.asked.Nodes
	}
	if given("begin") {
		if s.Begin = d.asked.Begin; !(s.Begin >= 0 && s.Begin < 1) {
			return s, fault.Mistakef("--begin: got %v, want a share of the jobs from 0 to less than 1", s.Begin)
		}
	}
	if given("backfill") {
		s.Backfill = d.asked.Backfill
	}
	return s, nil
}

// Stray returns the mistake that a flag of demos is given for another kind of cluster.
func (d *DemoFlags) Stray() error {
	for _, name := range demoFlags {
		if d.verb != nil && d.verb.Flags().Changed(name) {
			return fault.Mistakef("--%s goes with --cluster demo", name)
		}
	}
	return nil
}

// Open joins the demo of the file if another process looks at it, and begins one otherwise.
func (d *DemoFlags) Open() (*demo.Cluster, error) {
	ctx := d.verb.Context()
	if d.From == "" {
		return nil, fault.Mistakef("--cluster demo: want --from FILE, the history that it replays: what sacct -P or gymctl " +
			"trace get slurm writes, or another file of jobs; gymctl trace account writes a made-up one")
	}
	s, err := d.settings()
	if err != nil {
		return nil, err
	}
	t := workload.DefaultTraceConfig()
	t.File, t.Sort = d.From, true
	jobs, _, err := workload.LoadTraceContext(ctx, t)
	if err != nil {
		return nil, err
	}
	cfg := demo.Config{Jobs: jobs, Now: time.Now, Epoch: demoEpoch(d.From, jobs)}
	if cfg.Journal, err = d.journal(ctx, s); err != nil {
		return nil, err
	}
	if s = s.Or(demo.Defaults()); cfg.Journal != nil {
		s, d.Joined = cfg.Journal.Settings, cfg.Journal.Joined
	}
	cfg.Speed, cfg.Begin, cfg.Backfill = s.Speed, s.Begin, s.Backfill
	if s.Nodes == "" {
		cfg.Nodes, d.Why = demo.Guess(jobs)
	} else if cfg.Nodes, err = DemoNodes("nodes", s.Nodes); err != nil {
		_ = cfg.Journal.Close() // the mistake matters more
		return nil, err
	}
	c, err := demo.New(cfg)
	if err != nil {
		_ = cfg.Journal.Close() // likewise
		return nil, fault.Mistakef("%s: %w", d.From, err)
	}
	return c, nil
}

// journal opens what processes share. Without a folder or locks they share nothing.
func (d *DemoFlags) journal(ctx context.Context, s demo.Settings) (*demo.Journal, error) {
	dir, err := os.UserCacheDir()
	switch {
	case !lock.Supported:
		d.Apart = "this system has no locks"
		return nil, nil //nolint:nilnil // a nil journal is shared with nobody
	case err != nil:
		d.Apart = err.Error()
		return nil, nil //nolint:nilnil,nilerr // likewise
	}
	file, err := workload.Located(d.From)
	if err != nil {
		return nil, err
	}
	return demo.OpenJournal(ctx, filepath.Join(dir, "clustergym", "demo"), file, s)
}

// DemoEnd returns when a job had ended, on the clock of its history.
func DemoEnd(j *traces.Job) time.Duration { return j.Submit + j.Waited + j.Work }

// demoEpoch returns when the clock of a file shows 0. A file that does not say it gets a Monday, so that the same file
// gives the same times.
func demoEpoch(file string, jobs []traces.Job) time.Time {
	end, found := LastEnd(file, time.UTC)
	if !found {
		return time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	}
	last := time.Duration(0)
	for i := range jobs {
		last = max(last, DemoEnd(&jobs[i]))
	}
	return end.Add(-last).UTC()
}

// DemoNodes returns the nodes of a cluster that a user names with a flag.
func DemoNodes(flag, name string) ([]live.Node, error) {
	spec, err := workload.ClusterSpec(name)
	if err != nil {
		return nil, fault.Errorf("--%s: %w", flag, err)
	}
	if len(spec.VCs) > 0 {
		return nil, fault.Mistakef("--%s: %s has virtual clusters, which a demo does not have; want a cluster without", flag,
			name)
	}
	if spec.Pool > 0 {
		return demo.Named([]live.Node{{GPUs: spec.Pool}}), nil
	}
	return demo.Named(rackNodes(&spec)), nil
}

func rackNodes(spec *cluster.Spec) (nodes []live.Node) {
	racks := 0
	for i := range spec.Racks {
		racks += spec.Racks[i].Count.N()
	}
	width, rack := len(fmt.Sprint(racks)), 0
	for i := range spec.Racks {
		r := &spec.Racks[i]
		for range r.Count.N() {
			rack++
			for k := range r.Nodes {
				n := live.Node{GPUs: r.Nodes[k].GPUs, GPUType: strings.TrimSpace(r.Nodes[k].GPUType)}
				if racks > 1 {
					n.Rack = fmt.Sprintf("r%0*d", width, rack)
				}
				for range r.Nodes[k].Count.N() {
					nodes = append(nodes, n)
				}
			}
		}
	}
	return nodes
}
