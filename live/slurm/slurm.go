package slurm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/live"
)

// Options are the settings of a Cluster. The zero value is right for most.
type Options struct {
	// Weight is the SiteFactor of live.MaxScore; 0 = live.MaxScore. It counts beside PriorityWeightAge and its siblings: a
	// weight far above their sum lets the score decide alone.
	Weight int64
	// MaxJobs is how many jobs may wait and run, each task of an array counted; 0 = a million.
	MaxJobs int
	// Text reads the queue and the nodes by scontrol show, although there may be JSON.
	Text bool
	// Now is the clock; nil = time.Now.
	Now func() time.Time
}

// Cluster is a Slurm cluster. It is not safe for concurrent use.
type Cluster struct {
	run      Runner
	o        Options
	text     bool            // there is no JSON
	admin    bool            // marks go into AdminComment
	operator bool            // others' jobs may have ranks
	asked    bool            // whether admin, operator and user are known
	user     string          // who we are
	lost     map[string]bool // machines whose GPUs Slurm did not count rightly at the last look
}

var _ live.Cluster = (*Cluster)(nil)

// New returns the cluster that the commands of run speak to.
func New(run Runner, o Options) *Cluster {
	if o.Weight == 0 {
		o.Weight = live.MaxScore
	}
	if o.MaxJobs == 0 {
		o.MaxJobs = 1e6
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cluster{run: run, o: o, text: o.Text}
}

// output runs a command that reads.
func (c *Cluster) output(ctx context.Context, read func(io.Reader) error, args ...string) error {
	return understood(c.run.Run(ctx, Call{Args: args, Out: read}))
}

// understood wraps what a command said with the error that it means.
func understood(err error) error {
	exit, ok := errors.AsType[*ExitError](err)
	// it is said already
	if !ok || errors.Is(err, live.ErrUnreachable) || errors.Is(err, live.ErrDenied) || errors.Is(err, exec.ErrNotFound) {
		return err
	}
	if kind := meaning(exit.Said); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// meaning returns the error of the contract that a message of Slurm means, nil if it is none of them.
func meaning(said string) error {
	said = strings.ToLower(said)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(said, w) })
	}
	switch {
	case has("unable to contact slurm controller", "timed out", "connection refused", "connect failure",
		"configuration source", "zero bytes were transmitted",
		"unexpected message received", "slurm backup controller in standby", "unable to connect", "not responding",
		"could not resolve",
		// it ends while it answers
		"missing socket", "message send failure", "message receive failure", "broken pipe", "connection reset",
		"insane message"):
		return live.ErrUnreachable
	case has("access/permission denied", "invalid user id", "permission denied", "authentication", "only slurm",
		"requires privilege", "munge", "must be a", "protocol authentication"):
		return live.ErrDenied
	case has("invalid job id", "already completing or completed", "no longer pending", "not pending",
		"job is pending execution", "job has already finished", "job not running", "already done"):
		return live.ErrGone
	case has("requested operation is presently disabled", "invalid job format", "not supported"):
		return live.ErrUnsupported
	}
	return nil
}

// Observe implements live.Cluster.
func (c *Cluster) Observe(ctx context.Context) (*live.Snapshot, error) {
	conf, err := c.config(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.who(ctx, conf); err != nil {
		return nil, err
	}
	s := &live.Snapshot{At: c.o.Now().Round(0), Cluster: conf.get("ClusterName"), Version: conf.get("SLURM_VERSION")}
	b := &builder{Snapshot: s, gpus: map[string][]gpus{}, arrays: map[int64]*array{}, hets: map[int64]int{},
		max: c.o.MaxJobs, owner: c.owner(), cleans: map[string]string{}, used: map[string]int{}, moving: map[string]bool{},
		divided: map[string]*divided{}, whole: map[string]int{}, shared: map[string]string{}, lists: map[string][]string{}}
	if err := c.nodes(ctx, conf, b.node); err != nil {
		return nil, err
	}
	if err := c.racks(ctx, conf, b); err != nil {
		return nil, err
	}
	if err := c.jobs(ctx, conf, b.job); err != nil {
		return nil, err
	}
	b.limits()
	b.shareOut()
	b.unclean()
	c.lost = b.lost(c.lost)
	if conf.get("PriorityType") == "priority/multifactor" {
		if err := c.ranks(ctx, b); err != nil {
			return nil, err
		}
	}
	s.Sort()
	s.Shorten()
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// config asks how the cluster is set up, and refuses what this package does not handle.
func (c *Cluster) config(ctx context.Context) (config, error) {
	var conf config
	err := c.output(ctx, func(r io.Reader) (err error) {
		conf, err = showConfig(r)
		return err
	}, "scontrol", "show", "config")
	if err != nil {
		return nil, err
	}
	if conf.get("ClusterName") == "" || conf.get("SLURM_VERSION") == "" {
		return nil, fmt.Errorf("%w: scontrol show config prints no ClusterName and SLURM_VERSION", live.ErrUnsupported)
	}
	if s := conf.get("SelectType"); s != "select/cons_tres" {
		return nil, fmt.Errorf("%w: slurm.conf has SelectType=%s, which does not place single GPUs; want select/cons_tres",
			live.ErrUnsupported, s)
	}
	return conf, nil
}

// noJSON reports that a command knows no JSON here.
func noJSON(err error) bool {
	exit, ok := errors.AsType[*ExitError](err)
	if !ok {
		return false
	}
	s := strings.ToLower(exit.Said)
	return strings.Contains(s,
		"--json") || strings.Contains(s, "unrecognized option") || strings.Contains(s, "serializer") || strings.Contains(s,
		"unable to find plugin") ||
		strings.Contains(s, "openapi") || strings.Contains(s, "data_parser")
}

// jobs reads the queue.
func (c *Cluster) jobs(ctx context.Context, conf config, each func(*record) error) error {
	if major, _ := release(conf.get("SLURM_VERSION")); !c.text && (major == 0 || major >= 21) {
		err := c.document(ctx, func(r io.Reader) (head, error) { return readJobs(r, each) }, "squeue", "--json")
		if !noJSON(err) {
			return err
		}
		c.text = true // nothing has been read
	}
	return c.output(ctx, func(r io.Reader) error { return showJobs(r, each) }, "scontrol", "-d", "show", "job")
}

// document runs a command that prints JSON. Slurm 22.05 ends with code 0 and an empty list where the controller does
// not answer.
func (c *Cluster) document(ctx context.Context, read func(io.Reader) (head, error), args ...string) error {
	var h head
	err := c.output(ctx, func(r io.Reader) (err error) {
		b := bufio.NewReaderSize(r, 1<<16) // as much as a pipe holds
		if _, err := b.Peek(1); err == io.EOF {
			return nil // the reason is on standard error
		}
		h, err = read(b)
		return err
	}, args...)
	if err != nil {
		return err
	}
	if len(h.faults) > 0 {
		kind := meaning(h.faults[0])
		if kind == nil {
			kind = live.ErrUnreachable
		}
		return fmt.Errorf("%w: %s: %s", kind, strings.Join(args, " "), h.faults[0])
	}
	if h.release == "" {
		return fmt.Errorf("%w: %s prints no document of Slurm", live.ErrUnsupported, strings.Join(args, " "))
	}
	return nil
}

// nodes reads the nodes, by what the release has.
func (c *Cluster) nodes(ctx context.Context, conf config, each func(*machine) error) error {
	major, _ := release(conf.get("SLURM_VERSION"))
	args := []string{"scontrol", "-a", "show", "nodes", "--json"}
	if major < 23 {
		args = []string{"sinfo", "-a", "--json"} // it tells of single nodes, as it does not later
	}
	if !c.text && major >= 21 {
		err := c.document(ctx, func(r io.Reader) (head, error) { return readNodes(r, each) }, args...)
		if !noJSON(err) {
			return err
		}
	}
	return c.output(ctx, func(r io.Reader) error { return showNodes(r, each) }, "scontrol", "-a", "show", "node")
}

// racks reads which switch each node hangs on, where Slurm knows it.
func (c *Cluster) racks(ctx context.Context, conf config, b *builder) error {
	if conf.get("TopologyPlugin") != "topology/tree" {
		return nil
	}
	racks := map[string]string{}
	err := c.output(ctx, func(r io.Reader) error {
		return eachLine(r, func(line string) error {
			k := map[string]string{}
			if split(line, k); k["Level"] != "0" {
				return nil
			}
			hosts, err := hostlist.Expand(k["Nodes"])
			if err != nil {
				return fmt.Errorf("%w: switch %s: %w", live.ErrUnsupported, k["SwitchName"], err)
			}
			for _, h := range hosts {
				racks[h] = k["SwitchName"]
			}
			return nil
		})
	}, "scontrol", "show", "topology")
	if err != nil {
		return err
	}
	for i := range b.Nodes {
		b.Nodes[i].Rack = racks[host(b.Nodes[i].Name)]
	}
	return nil
}

// ranks reads the SiteFactor of the jobs that wait and are not held.
func (c *Cluster) ranks(ctx context.Context, b *builder) error {
	site := map[string]int64{}
	err := c.output(ctx, func(r io.Reader) error {
		return eachLine(r, func(line string) error {
			id, value, _ := strings.Cut(line, "|")
			if v, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil && v != 0 {
				site[strings.TrimSpace(id)] = v
			}
			return nil
		})
	}, "sprio", "-h", "-o", "%i|%S")
	if _, failed := errors.AsType[*ExitError](err); errors.Is(err, exec.ErrNotFound) ||
		failed && !errors.Is(err, live.ErrUnreachable) || err == nil && len(site) == 0 {
		return nil // ranks are told where Slurm tells them
	}
	if err != nil {
		return err
	}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		v, there := site[j.ID]
		if !there {
			v = site[b.raw[i]]
		}
		j.Rank = c.score(v)
	}
	return nil
}

// site scales a score to a SiteFactor, and score a SiteFactor to a score.
func (c *Cluster) site(score int64) int64 {
	return (score*c.o.Weight + live.MaxScore/2) / live.MaxScore
}

func (c *Cluster) score(site int64) int64 {
	return min(live.MaxScore, max(0, (site*live.MaxScore+c.o.Weight/2)/c.o.Weight))
}
