// Package livetest has a cluster in memory that implements live.Cluster, for tests of what steers clusters, and the
// claims that every adapter must meet (Suite).
//
// The cluster's clock stands still until a test moves it, and nothing in it is random: the same calls give the same
// snapshots.
package livetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/live"
	"clustergym/traces"
)

// Epoch is when the clock of a new Cluster begins.
var Epoch = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

// Cluster is a cluster in memory. It starts jobs itself: those of higher priority first, of equal priority those of the
// higher rank, of equal rank those that came first; a job that does not fit is overtaken by later ones that are
// estimated to end before it could start. Holds, nodes that are down and the nodes of StartJob are respected. Jobs
// start and end in Advance alone. It is safe for concurrent use, so that a loop may run beside the test.
type Cluster struct {
	mu      sync.Mutex
	now     time.Time
	nodes   []*node
	jobs    map[string]*job
	future  []*job // not submitted yet, in order of submission
	arrived int
	log     []string
	faults  faults
	last    *live.Snapshot // the last one that Observe returned
	caps    live.Caps      // a reason makes the actions that it covers fail
}

var _ live.Cluster = (*Cluster)(nil)

type node struct {
	live.Node
	free   []bool // by GPU
	jammed bool   // nothing starts here, and the cluster does not say so
	hidden bool   // the cluster shows no GPUs of it
}

type job struct {
	live.Job
	work  time.Duration
	seq   int
	owner []string // the nodes that its owner asks for
	holds []hold
}

// hold is what a running job holds of a node.
type hold struct {
	on    *node
	index []int
}

type faults struct {
	unreachable int // calls and actions that nobody answers
	reachable   int // calls and actions before those
	stale       int // answers of Observe that are old
	denied      map[live.Op]bool
	refused     map[string]error // by job
}

// Machines returns n nodes of so many GPUs: g0, g1 and so on, four to a rack.
func Machines(n, gpus int) []live.Node {
	nodes := make([]live.Node, n)
	for i := range nodes {
		nodes[i] = live.Node{Name: fmt.Sprintf("g%d", i), Rack: fmt.Sprintf("r%d", i/4), GPUType: "A100", GPUs: gpus,
			CPUMilli: 64_000, MemBytes: 512 << 30}
	}
	return nodes
}

// New returns an empty cluster at Epoch.
func New(nodes ...live.Node) *Cluster {
	c := &Cluster{now: Epoch, jobs: map[string]*job{}}
	c.faults.denied, c.faults.refused = map[live.Op]bool{}, map[string]error{}
	for _, n := range nodes {
		c.nodes = append(c.nodes, &node{Node: n, free: slices.Repeat([]bool{true}, n.GPUs)})
	}
	slices.SortFunc(c.nodes, func(a, b *node) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// Submit adds a job. It arrives when the clock reaches Epoch + j.Submit, at the next Advance if that has passed; it
// runs for j.Work, and j.Estimate is its time limit as the cluster shows it. nodes are those that its owner asks for. A
// job without ID, or with one that has been there, is a fault of the test: Submit panics.
func (c *Cluster) Submit(j traces.Job, nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j.ID == "" || c.jobs[j.ID] != nil || slices.ContainsFunc(c.future, func(f *job) bool { return f.ID == j.ID }) {
		panic(fmt.Sprintf("livetest: a job with the ID %q has been there", j.ID))
	}
	f := &job{work: j.Work, seq: c.arrived, owner: slices.Clone(nodes)}
	c.arrived++
	at := Epoch.Add(j.Submit)
	if at.Before(c.now) {
		at = c.now
	}
	j.Submit, j.Work = 0, 0
	f.Job = live.Job{Job: j, Submit: at, Nodes: slices.Clone(nodes)}
	i, _ := slices.BinarySearchFunc(c.future, f, func(a, b *job) int {
		return cmp.Or(a.Submit.Compare(b.Submit), cmp.Compare(a.seq, b.seq))
	})
	c.future = slices.Insert(c.future, i, f)
}

// Now returns the cluster's clock.
func (c *Cluster) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d: jobs end, arrive and start on the way, each at its time.
func (c *Cluster) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.now.Add(d)
	c.due()
	for {
		next, found := c.nextEvent()
		if !found || next.After(to) {
			break
		}
		c.now = next
		c.due()
	}
	c.now = to
}

// due does what is due now.
func (c *Cluster) due() {
	for _, j := range c.byArrival() {
		if j.State == live.Running && !j.Start.Add(j.work).After(c.now) {
			c.end(j, j.Start.Add(j.work))
		}
	}
	for len(c.future) > 0 && !c.future[0].Submit.After(c.now) {
		j := c.future[0]
		c.jobs[j.ID], c.future = j, c.future[1:]
	}
	c.schedule()
}

func (c *Cluster) nextEvent() (next time.Time, found bool) {
	see := func(t time.Time) {
		if !found || t.Before(next) {
			next, found = t, true
		}
	}
	for _, j := range c.jobs {
		if j.State == live.Running {
			see(j.Start.Add(j.work))
		}
	}
	if len(c.future) > 0 {
		see(c.future[0].Submit)
	}
	return next, found
}

func (c *Cluster) byArrival() []*job {
	return slices.SortedFunc(maps.Values(c.jobs), func(a, b *job) int { return cmp.Compare(a.seq, b.seq) })
}

func (c *Cluster) end(j *job, at time.Time) {
	c.leave(j)
	j.State, j.End = live.Ended, at
}

// leave gives back what a job holds.
func (c *Cluster) leave(j *job) {
	for _, h := range j.holds {
		for _, i := range h.index {
			h.on.free[i] = true
		}
	}
	j.holds = nil
}

// schedule starts what can start now.
func (c *Cluster) schedule() {
	waiting := slices.DeleteFunc(c.byArrival(),
		func(j *job) bool { return j.State != live.Waiting || j.Ours || j.Blocked != "" })
	slices.SortStableFunc(waiting, func(a, b *job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Rank, a.Rank))
	})
	var until time.Time // later jobs must end by then; zero = there is no job before them that waits
	for _, j := range waiting {
		holds := place(j, c.nodes)
		switch {
		case holds == nil && until.IsZero():
			until = c.couldStart(j)
		case holds == nil:
		case until.IsZero() || j.Estimate > 0 && !c.now.Add(j.Estimate).After(until):
			c.start(j, holds)
		}
	}
}

// couldStart returns when a job fits if the running ones end as they are estimated to, and a time far away if it never
// does.
func (c *Cluster) couldStart(j *job) time.Time {
	copies := make([]*node, len(c.nodes))
	at := map[*node]*node{}
	for i, n := range c.nodes {
		copies[i] = &node{Node: n.Node, free: slices.Clone(n.free), jammed: n.jammed}
		at[n] = copies[i]
	}
	running := slices.DeleteFunc(c.byArrival(), func(r *job) bool { return r.State != live.Running || r.Estimate == 0 })
	ends := func(r *job) time.Time { return later(r.Start.Add(r.Estimate), c.now) }
	slices.SortStableFunc(running, func(a, b *job) int { return ends(a).Compare(ends(b)) })
	for _, r := range running {
		for _, h := range r.holds {
			for _, i := range h.index {
				at[h.on].free[i] = true
			}
		}
		if place(j, copies) != nil {
			return ends(r)
		}
	}
	return c.now.AddDate(100, 0, 0)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// place returns where a job would run, nil if nowhere: on the node that it fills most, else on as few nodes as it can.
func place(j *job, nodes []*node) []hold {
	may := slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool {
		return n.Down || n.jammed || n.VCs != nil && j.VC != "" && !slices.Contains(n.VCs,
			j.VC) || len(j.Nodes) > 0 && !slices.Contains(j.Nodes, n.Name) || len(j.GPUTypes) > 0 && !slices.Contains(j.GPUTypes,
			n.GPUType)
	})
	if len(may) == 0 {
		return nil
	}
	slices.SortStableFunc(may, func(a, b *node) int { return cmp.Compare(len(frees(a)), len(frees(b))) })
	for _, n := range may {
		if free := frees(n); len(free) >= j.GPUs {
			return []hold{{n, free[:j.GPUs]}}
		}
	}
	var holds []hold
	left := j.GPUs
	for _, n := range slices.Backward(may) {
		if free := frees(n); len(free) > 0 {
			k := min(left, len(free))
			holds = append(holds, hold{n, free[:k]})
			left -= k
		}
		if left == 0 {
			return holds
		}
	}
	return nil
}

func frees(n *node) (free []int) {
	for i, f := range n.free {
		if f {
			free = append(free, i)
		}
	}
	return free
}

func (c *Cluster) start(j *job, holds []hold) {
	for _, h := range holds {
		for _, i := range h.index {
			h.on.free[i] = false
		}
	}
	j.State, j.Start, j.holds = live.Running, c.now, holds
}

// wait stops a running job, which waits again and has everything to do once more.
func (c *Cluster) wait(j *job) {
	c.leave(j)
	j.State, j.Start = live.Waiting, time.Time{}
	j.Restarts++
}

// SetDown takes a node away, with the reason that the cluster gives; "" brings it back. Jobs that run there wait again.
func (c *Cluster) SetDown(name, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node(name)
	n.Down, n.Why = why != "", why
	for _, j := range c.byArrival() {
		if why != "" && slices.ContainsFunc(j.holds, func(h hold) bool { return h.on == n }) {
			c.wait(j)
		}
	}
}

// Jam has nothing start on a node from now on, without saying so, as Slurm does while a job's epilog runs there; false
// = jobs start there again.
func (c *Cluster) Jam(name string, jammed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node(name).jammed = jammed
	c.schedule()
}

// Hide has the cluster show no GPUs of a node, and start nothing there, as when what counts them has come back without
// them; jobs that run there go on. false = it shows them again.
func (c *Cluster) Hide(name string, hidden bool) {
	c.Jam(name, hidden)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node(name).hidden = hidden
}

func (c *Cluster) node(name string) *node {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("livetest: no node %q", name))
	}
	return c.nodes[i]
}

// Block gives the reason for which a waiting job could not start on an empty cluster, as a dependency; "" takes it
// away.
func (c *Cluster) Block(id, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.must(id).Blocked = why
}

// Finish ends a running job now.
func (c *Cluster) Finish(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.must(id)
	if j.State != live.Running {
		panic(fmt.Sprintf("livetest: job %s is %v", id, j.State))
	}
	c.end(j, c.now)
}

func (c *Cluster) must(id string) *job {
	j := c.jobs[id]
	if j == nil {
		panic(fmt.Sprintf("livetest: no job %q", id))
	}
	return j
}

// Unreachable makes the cluster answer nothing for the next calls, after it has answered the first ones. Observe and
// Can are one call, and so is every action, so that a cluster can go in the middle of Act.
func (c *Cluster) Unreachable(first, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.reachable, c.faults.unreachable = first, calls
}

// Stale makes the next answers of Observe those of its last one.
func (c *Cluster) Stale(answers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.stale = answers
}

// Deny makes the cluster refuse these actions from now on; none = it refuses nothing.
func (c *Cluster) Deny(ops ...live.Op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.faults.denied)
	for _, op := range ops {
		c.faults.denied[op] = true
	}
}

// Refuse makes every action on a job fail with err; nil takes that back.
func (c *Cluster) Refuse(id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.refused[id] = err
}

// Limit sets what Can says. Actions that it excludes fail with live.ErrUnsupported.
func (c *Cluster) Limit(caps live.Caps) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caps = caps
}

// Log returns every action that has been asked for, in order, each with what came of it if it failed: "hold a", "hold
// b: …".
func (c *Cluster) Log() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.log)
}

// History returns the jobs that have come, in order of ID, with their start, end and places.
func (c *Cluster) History() []live.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []live.Job
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		all = append(all, c.jobs[id].shown())
	}
	return all
}

// reach returns an error if this call finds nobody.
func (c *Cluster) reach(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch f := &c.faults; {
	case f.unreachable == 0:
	case f.reachable > 0:
		f.reachable--
	default:
		f.unreachable--
		return fmt.Errorf("%w: livetest: nobody answers", live.ErrUnreachable)
	}
	return nil
}

// Observe implements live.Cluster.
func (c *Cluster) Observe(ctx context.Context) (*live.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	if c.faults.stale > 0 && c.last != nil {
		c.faults.stale--
		return copied(c.last), nil
	}
	s := &live.Snapshot{At: c.now, Cluster: "livetest", Version: "1"}
	for _, n := range c.nodes {
		s.Nodes = append(s.Nodes, n.Node)
		if n.hidden {
			s.Nodes[len(s.Nodes)-1].GPUs = 0
		}
	}
	for _, j := range c.jobs {
		if j.State != live.Ended {
			s.Jobs = append(s.Jobs, j.shown())
		} else if c.now.Sub(j.End) <= KeepEnded {
			s.Ended = append(s.Ended, j.shown())
		}
	}
	s.Sort()
	s.Shorten()
	if err := s.Check(); err != nil {
		return nil, err
	}
	c.last = copied(s)
	return s, nil
}

// KeepEnded is how long Observe shows jobs that have ended.
const KeepEnded = 10 * time.Minute

func copied(s *live.Snapshot) *live.Snapshot {
	t := *s
	t.Nodes = slices.Clone(s.Nodes)
	for _, jobs := range []*[]live.Job{&t.Jobs, &t.Ended} {
		*jobs = slices.Clone(*jobs)
		for i := range *jobs {
			(*jobs)[i] = clone((*jobs)[i])
		}
	}
	return &t
}

func clone(j live.Job) live.Job {
	j.Nodes, j.GPUTypes, j.Places = slices.Clone(j.Nodes), slices.Clone(j.GPUTypes), slices.Clone(j.Places)
	for i := range j.Places {
		j.Places[i].Index = slices.Clone(j.Places[i].Index)
	}
	return j
}

// shown is what the cluster says of a job.
func (j *job) shown() live.Job {
	s := clone(j.Job)
	s.Places = nil
	for _, h := range j.holds {
		s.Places = append(s.Places, live.Place{Node: h.on.Name, GPUs: len(h.index), Index: slices.Clone(h.index)})
	}
	slices.SortFunc(s.Places, func(a, b live.Place) int { return strings.Compare(a.Node, b.Node) })
	return s
}

// Can implements live.Cluster.
func (c *Cluster) Can(ctx context.Context) (live.Caps, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.reach(ctx); err != nil {
		return live.Caps{}, err
	}
	caps := c.caps
	for op, denied := range c.faults.denied {
		if reason := excludes(&caps, op); denied && *reason == "" {
			*reason = "this user may not " + op.String() + " jobs"
		}
	}
	return caps, nil
}

// excludes returns the reason that covers an action.
func excludes(caps *live.Caps, op live.Op) *string {
	switch op {
	case live.RankJob:
		return &caps.Rank
	case live.RequeueJob:
		return &caps.Requeue
	}
	return &caps.Gate
}

// Act implements live.Cluster.
func (c *Cluster) Act(ctx context.Context, actions []live.Action) []live.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	results := make([]live.Result, len(actions))
	for i, a := range actions {
		err := c.reach(ctx)
		if err == nil {
			err = c.act(a)
		}
		if err != nil {
			results[i].Err = fmt.Errorf("%v: %w", a, err)
			c.log = append(c.log, results[i].Err.Error())
			continue
		}
		c.log = append(c.log, a.String())
	}
	return results
}

func (c *Cluster) act(a live.Action) error {
	j := c.jobs[a.Job]
	switch why := *excludes(&c.caps, a.Op); {
	case c.faults.denied[a.Op]:
		return live.ErrDenied
	case why != "":
		return fmt.Errorf("%w: %s", live.ErrUnsupported, why)
	case c.faults.refused[a.Job] != nil:
		return c.faults.refused[a.Job]
	case j == nil || j.State == live.Ended || j.State == live.Running && a.Op != live.RequeueJob:
		return live.ErrGone
	}
	switch a.Op {
	case live.RankJob:
		if a.Score < 0 || a.Score > live.MaxScore {
			return fmt.Errorf("%w: want a score from 0 to %d", live.ErrUnsupported, live.MaxScore)
		}
		j.Rank = a.Score
	case live.HoldJob:
		j.Ours, j.Freed = true, false
	case live.ReleaseJob:
		j.Ours, j.Freed, j.Nodes = false, false, slices.Clone(j.owner)
	case live.StartJob:
		for _, n := range a.Nodes {
			if !slices.ContainsFunc(c.nodes, func(m *node) bool { return m.Name == n }) {
				return fmt.Errorf("%w: there is no node %q", live.ErrUnsupported, n)
			}
			if len(j.owner) > 0 && !slices.Contains(j.owner, n) {
				return fmt.Errorf("%w: its owner asks for %s", live.ErrUnsupported, strings.Join(j.owner, ","))
			}
		}
		j.Ours, j.Freed, j.Nodes = false, true, slices.Clone(a.Nodes)
		if len(a.Nodes) == 0 {
			j.Nodes = slices.Clone(j.owner)
		}
	case live.RequeueJob:
		if j.State == live.Running {
			c.wait(j)
		}
	default:
		return live.ErrUnsupported
	}
	return nil
}
