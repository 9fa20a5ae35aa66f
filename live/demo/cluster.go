package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/live"
	"clustergym/traces"
)

// Config says what a demo replays, and how.
type Config struct {
	Jobs     []traces.Job // the history, in order of submit
	Nodes    []live.Node  // with names
	Speed    float64      // seconds of the demo in a second
	Begin    float64      // the demo begins after this share of the jobs, from 0 to 1
	Backfill string
	Epoch    time.Time // when the clock of the history shows 0
	// Journal is what this process shares with others; nil = nothing.
	Journal *Journal
	Now     func() time.Time // the wall clock
}

// Cluster is a demo. It is safe for concurrent use.
type Cluster struct {
	cfg      Config
	past     *past
	ended    []traces.Job
	unseated int

	mu      sync.Mutex
	machine *machine
	began   time.Time // by the wall clock; zero = nobody has looked yet
	entries []entry   // of the journal, so far
}

var _ live.Cluster = (*Cluster)(nil)

// New returns a demo at its beginning, or where the journal has brought it.
func New(cfg Config) (*Cluster, error) {
	p, err := newPast(cfg.Jobs, cfg.Nodes, cfg.Backfill, cfg.Begin)
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, past: p}
	c.machine, c.ended, c.unseated = p.machine()
	return c, c.catchUp()
}

// Close says that this process does not look any more.
func (c *Cluster) Close() error { return c.cfg.Journal.Close() }

// Past returns the jobs that had ended when the demo began: what predictors of run times may know.
func (c *Cluster) Past() []traces.Job { return slices.Clone(c.ended) }

// Epoch returns when the clock of the history showed 0, by the demo's clock.
func (c *Cluster) Epoch() time.Time { return c.cfg.Epoch }

// Begins returns when the demo begins, on the clock of the history.
func (c *Cluster) Begins() time.Duration { return c.past.begin }

// Speed returns how many seconds of the demo pass in a second.
func (c *Cluster) Speed() float64 { return c.cfg.Speed }

// Backfill returns how the demo's own scheduler goes about jobs behind one that does not fit.
func (c *Cluster) Backfill() string { return c.cfg.Backfill }

// Unseated returns how many jobs ran by the history when the demo began, and wait, because the nodes have no room.
func (c *Cluster) Unseated() int { return c.unseated }

// LeftOut counts the jobs of the history that have no place in the demo.
func (c *Cluster) LeftOut() LeftOut { return c.past.leftOut }

// String says in a few words what the demo is.
func (c *Cluster) String() string {
	gpus := 0
	for i := range c.cfg.Nodes {
		gpus += c.cfg.Nodes[i].GPUs
	}
	from, to := c.time(c.past.begin), c.time(c.past.end)
	lasts := time.Duration(float64(c.past.end-c.past.begin) / c.cfg.Speed)
	return fmt.Sprintf("%d GPUs on %d nodes, from %s to %s, %g times as fast: %v in all", gpus, len(c.cfg.Nodes),
		from.Format("2006-01-02 15:04"), to.Format("2006-01-02 15:04"), c.cfg.Speed, lasts.Round(time.Second))
}

func (c *Cluster) time(at time.Duration) time.Time { return c.cfg.Epoch.Add(at) }

// clock returns what the clock of the history shows. It never goes back.
func (c *Cluster) clock() time.Duration {
	at := c.past.begin
	if !c.began.IsZero() {
		passed := float64(c.cfg.Now().Round(0).Sub(c.began)) * c.cfg.Speed
		at += time.Duration(min(max(0, passed), float64(c.past.end-at)))
	}
	return max(at, c.machine.now)
}

// Now returns the demo's clock.
func (c *Cluster) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time(c.clock())
}

// Sleep waits for d by the demo's clock, or until ctx ends, whose error it returns.
func (c *Cluster) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(time.Duration(float64(d) / c.cfg.Speed))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return ctx.Err()
	}
}

// catchUp does what the journal has that is not done yet.
func (c *Cluster) catchUp() error {
	list, err := c.cfg.Journal.read()
	for i := range list {
		c.follow(&list[i])
	}
	return err
}

// follow does what an entry says. What comes too late, because another process was faster, is done in a cluster that
// begins once more.
func (c *Cluster) follow(e *entry) []live.Result {
	c.entries = append(c.entries, *e)
	if e.Began != 0 {
		c.began = time.Unix(0, e.Began)
		return nil
	}
	if e.At >= c.machine.now {
		return c.machine.act(e.At, e.Actions)
	}
	c.machine, _, _ = c.past.machine()
	var last []live.Result
	for i := range c.entries {
		if c.entries[i].Began == 0 {
			last = c.machine.act(max(c.entries[i].At, c.machine.now), c.entries[i].Actions)
		}
	}
	return last
}

// Observe implements live.Cluster. After the last submit it fails with live.ErrOver.
func (c *Cluster) Observe(ctx context.Context) (*live.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.catchUp(); err != nil {
		return nil, err
	}
	at := c.clock() // the first look is at the beginning, to the nanosecond
	if c.began.IsZero() {
		err := c.cfg.Journal.locked(ctx, func() error {
			err := c.catchUp()
			if err != nil || !c.began.IsZero() {
				at = c.clock()
				return err
			}
			e := entry{Began: c.cfg.Now().UnixNano()}
			c.follow(&e)
			return c.cfg.Journal.add(&e)
		})
		if err != nil {
			return nil, err
		}
	}
	if at >= c.past.end {
		return nil, fmt.Errorf("%w: its last job was submitted at %s", live.ErrOver,
			c.time(c.past.end).Format("2006-01-02 15:04"))
	}
	c.machine.advance(at)
	s := c.snapshot()
	return s, s.Check()
}

func (c *Cluster) snapshot() *live.Snapshot {
	m := c.machine
	s := &live.Snapshot{At: c.time(m.now), Cluster: "demo", Version: "ClusterGym demo"}
	for _, n := range m.nodes {
		s.Nodes = append(s.Nodes, n.Node)
	}
	for _, list := range [][]*job{m.queue, m.running} {
		for _, j := range list {
			s.Jobs = append(s.Jobs, c.shown(j))
		}
	}
	for _, j := range m.ended {
		s.Ended = append(s.Ended, c.shown(j))
	}
	s.Sort()
	return s
}

// shown is what the demo says of a job.
func (c *Cluster) shown(j *job) live.Job {
	x := j.Job
	x.GPUTypes, x.Nodes = slices.Clone(x.GPUTypes), slices.Clone(x.Nodes)
	x.Submit = c.time(j.submit)
	if x.State != live.Waiting {
		x.Start = c.time(j.start)
	}
	if x.State == live.Ended {
		x.End = c.time(j.end)
	}
	for _, h := range j.held {
		x.Places = append(x.Places, live.Place{Node: h.on.Name, GPUs: len(h.index), Index: slices.Clone(h.index)})
	}
	if m := c.machine; m.head == j && m.until < never {
		x.Planned = c.time(max(m.until, m.now))
	}
	return x
}

// Can implements live.Cluster: a demo takes everything.
func (c *Cluster) Can(ctx context.Context) (live.Caps, error) { return live.Caps{}, ctx.Err() }

// Act implements live.Cluster.
func (c *Cluster) Act(ctx context.Context, actions []live.Action) []live.Result {
	results := make([]live.Result, len(actions))
	if len(actions) == 0 {
		return results
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := ctx.Err()
	if err == nil {
		err = c.cfg.Journal.locked(ctx, func() error {
			if err := c.catchUp(); err != nil {
				return err
			}
			e := entry{At: c.clock(), Actions: actions}
			if err := c.cfg.Journal.add(&e); err != nil {
				return err
			}
			results = c.follow(&e)
			return nil
		})
	}
	for i := range results {
		if err != nil {
			results[i].Err = err
		}
		if results[i].Err != nil {
			results[i].Err = fmt.Errorf("%v: %w", actions[i], results[i].Err)
		}
	}
	return results
}

// act does actions at a time.
func (m *machine) act(at time.Duration, actions []live.Action) []live.Result {
	m.advance(at)
	results := make([]live.Result, len(actions))
	for i := range actions {
		results[i].Err = m.do(&actions[i])
	}
	slices.SortFunc(m.queue, before)
	m.schedule()
	return results
}

func (m *machine) do(a *live.Action) error {
	j := m.jobs[a.Job]
	if j == nil || j.State == live.Ended || j.State == live.Running && a.Op != live.RequeueJob {
		return live.ErrGone
	}
	switch a.Op {
	case live.RankJob:
		if a.Score < 0 || a.Score > live.MaxScore {
			return fmt.Errorf("%w: want a score from 0 to %d", live.ErrUnsupported, live.MaxScore)
		}
		j.Rank = a.Score
	case live.HoldJob:
		j.Ours, j.Freed, j.Nodes = true, false, nil
	case live.ReleaseJob:
		j.Ours, j.Freed, j.Nodes = false, false, nil
	case live.StartJob:
		if err := m.may(j, a.Nodes); err != nil {
			return err
		}
		j.Ours, j.Freed, j.Nodes = false, true, slices.Clone(a.Nodes)
	case live.RequeueJob:
		if j.State == live.Running { // it is held, as it would start again at once
			m.leave(j)
			j.Restarts++
			j.Ours, j.Freed, j.Nodes = true, false, nil
			m.wait(j)
		}
	default:
		return live.ErrUnsupported
	}
	return nil
}

// may returns why a job cannot run on nodes.
func (m *machine) may(j *job, nodes []string) error {
	gpus := 0
	for _, name := range nodes {
		i := slices.IndexFunc(m.nodes, func(n *node) bool { return n.Name == name })
		if i < 0 {
			return fmt.Errorf("%w: there is no node %q", live.ErrUnsupported, name)
		}
		if fits(j, m.nodes[i]) {
			gpus += m.nodes[i].GPUs
		}
	}
	if len(nodes) > 0 && gpus < j.GPUs {
		return fmt.Errorf("%w: it asks for %d GPUs, and %s have %d that it can use", live.ErrUnsupported, j.GPUs,
			strings.Join(nodes, ","), gpus)
	}
	return nil
}
