// Package mirror turns what a real cluster says of itself, one snapshot after the other, into facts for a simulator
// that follows (simulator/sim). A snapshot says what is, not what has happened: a Mirror compares it with the one
// before, and where the cluster does not tell when something has happened, or on which GPUs, it chooses something that
// is possible.
package mirror

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"clustergym/env/sched"
	"clustergym/live"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// ErrLayout is returned when the cluster has other nodes than it had: an environment cannot follow it any more, and
// another is to be made.
var ErrLayout = errors.New("the cluster has changed")

// Layout is a cluster as a simulator has it, with the names of its nodes.
type Layout struct {
	Spec  cluster.Spec
	Nodes []string // by number
}

// LayoutOf returns the layout of the nodes with GPUs in s: racks in order of name, and in each the nodes in order of
// name.
func LayoutOf(s *live.Snapshot) Layout {
	var nodes []*live.Node
	for i := range s.Nodes {
		if s.Nodes[i].GPUs > 0 {
			nodes = append(nodes, &s.Nodes[i])
		}
	}
	slices.SortStableFunc(nodes,
		func(a, b *live.Node) int { return cmp.Or(cmp.Compare(a.Rack, b.Rack), cmp.Compare(a.Name, b.Name)) })
	l := Layout{Spec: cluster.Spec{Name: s.Cluster}}
	for i, n := range nodes {
		if i == 0 || nodes[i-1].Rack != n.Rack {
			l.Spec.Racks = append(l.Spec.Racks, cluster.RackSpec{})
		}
		r := &l.Spec.Racks[len(l.Spec.Racks)-1]
		r.Nodes = append(r.Nodes, cluster.NodeSpec{GPUs: n.GPUs, GPUType: n.GPUType})
		l.Nodes = append(l.Nodes, n.Name)
	}
	return l
}

// Config says what a mirror adds to what the cluster says.
type Config struct {
	// Epoch is when the clock of the history shows 0 from which run times are predicted; zero = there is none.
	Epoch time.Time
	// Limit stands for the time limit of a job that has none; 0 = nothing does.
	Limit time.Duration
}

// Mirror follows one cluster. Not safe for concurrent use.
type Mirror struct {
	cfg    Config
	layout Layout
	nodes  map[string]int // numbers by name
	gpus   []cluster.GPU  // by node: its first; one more at the end
	first  []live.Node    // by number, as they were at first

	begun bool
	zero  time.Time // when the clock of the facts shows 0
	last  time.Time // of the last snapshot
	jobs  map[string]*job
	down  []bool
	owner []*job // by GPU, nil = free

	facts   []sim.Fact
	changes []change
}

// job is what the facts so far say of a job.
type job struct {
	id    string
	gpus  int
	types []string
	runs  bool
	start time.Time
	held  []cluster.GPU
	seen  bool // in the current snapshot
}

// change is something that has happened between two snapshots.
type change struct {
	at   time.Duration
	kind sim.EventKind
	job  *job
	told *live.Job // of Submit and Start
	node int
	done bool
}

// order is that of changes of one time: what frees GPUs comes first.
func (c *change) order() int {
	switch c.kind {
	case sim.Finish, sim.Preempt, sim.Fail, sim.Drop:
		return 0
	case sim.NodeRecover:
		return 1
	case sim.Submit:
		return 2
	case sim.Start:
		return 3
	}
	return 4
}

// New returns a mirror of a cluster with the nodes of s.
func New(cfg Config, l Layout, s *live.Snapshot) (*Mirror, error) {
	m := &Mirror{cfg: cfg, layout: l, nodes: map[string]int{}, gpus: []cluster.GPU{0}}
	for i, name := range l.Nodes {
		k := slices.IndexFunc(s.Nodes, func(n live.Node) bool { return n.Name == name })
		if k < 0 {
			return nil, fmt.Errorf("%w: it has no node %s", ErrLayout, name)
		}
		m.nodes[name] = i
		m.first = append(m.first, s.Nodes[k])
		m.gpus = append(m.gpus, m.gpus[i]+cluster.GPU(s.Nodes[k].GPUs))
	}
	c, err := cluster.New(l.Spec)
	if err != nil {
		return nil, err
	}
	if c.GPUs() != int(m.gpus[len(l.Nodes)]) || c.Nodes() != len(l.Nodes) {
		return nil, fmt.Errorf("%w: it has %d GPUs on %d nodes, and the layout has %d on %d", ErrLayout, m.gpus[len(l.Nodes)],
			len(l.Nodes), c.GPUs(), c.Nodes())
	}
	for i := range l.Nodes {
		if from, _ := c.NodeGPUs(i); from != m.gpus[i] {
			return nil, fmt.Errorf("%w: node %s has %d GPUs, and the layout says otherwise", ErrLayout, l.Nodes[i],
				m.first[i].GPUs)
		}
	}
	m.Forget()
	return m, nil
}

// Forget makes the next snapshot the first: all that is there has come since the cluster was empty.
func (m *Mirror) Forget() {
	m.begun = false
	m.jobs = map[string]*job{}
	m.down, m.owner = make([]bool, len(m.layout.Nodes)), make([]*job, m.gpus[len(m.gpus)-1])
}

// clock returns what the clock of the facts shows at t.
func (m *Mirror) clock(t time.Time) time.Duration { return max(0, t.Sub(m.zero)) }

// Now returns what the clock of the facts shows at the last snapshot.
func (m *Mirror) Now() time.Duration { return m.clock(m.last) }

// GPUs returns where a job runs, as the facts have it; nil if it does not.
func (m *Mirror) GPUs(id string) []cluster.GPU {
	if j := m.jobs[id]; j != nil {
		return j.held
	}
	return nil
}

// Node returns the name of the node of a GPU.
func (m *Mirror) Node(g cluster.GPU) string {
	i, found := slices.BinarySearch(m.gpus, g)
	if !found {
		i--
	}
	return m.layout.Nodes[i]
}

// Show tells e what has happened up to s, and looks. At the first snapshot, and if what s says contradicts what was
// before, e follows anew from what s says, as f says but for Origin; why is then the contradiction.
func (m *Mirror) Show(e sched.Facts, f sched.Following, s *live.Snapshot) (why, err error) {
	if m.begun {
		if why = m.tell(e, s); why == nil || errors.Is(why, ErrLayout) || errors.Is(why, live.ErrUnsupported) {
			return nil, why
		}
	}
	m.Forget()
	if !m.cfg.Epoch.IsZero() {
		f.Origin = zeroOf(s).Sub(m.cfg.Epoch)
	}
	if err := e.Follow(f); err != nil {
		return why, err
	}
	return why, m.tell(e, s)
}

func (m *Mirror) tell(e sched.Facts, s *live.Snapshot) error {
	facts, err := m.Read(s)
	if err != nil {
		return err
	}
	for i := range facts {
		if err := e.Tell(&facts[i]); err != nil {
			return err
		}
	}
	return e.Look(m.Now())
}

// Read returns the facts that lead from the last snapshot to s. They are valid until the next call. After an error
// Forget is to be called.
func (m *Mirror) Read(s *live.Snapshot) ([]sim.Fact, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m.facts, m.changes = m.facts[:0], m.changes[:0]
	from := time.Duration(0)
	if m.begun {
		if s.At.Before(m.last) {
			return nil, fmt.Errorf("a snapshot of %v comes after one of %v", s.At.Format(time.RFC3339),
				m.last.Format(time.RFC3339))
		}
		from = m.Now()
	} else {
		m.begun, m.zero = true, zeroOf(s)
	}
	before := m.last
	m.last = s.At
	if err := m.compareNodes(s); err != nil {
		return nil, err
	}
	m.compareJobs(s, before, from)
	to := m.Now()
	for i := range m.changes {
		c := &m.changes[i]
		c.at = min(max(c.at, from), to)
	}
	slices.SortStableFunc(m.changes,
		func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order(), b.order())) })
	for i := range m.changes {
		if err := m.carry(i); err != nil {
			return nil, err
		}
	}
	return m.facts, nil
}

// zeroOf returns the earliest time that s knows of.
func zeroOf(s *live.Snapshot) time.Time {
	t := s.At
	for i := range s.Jobs {
		if at := s.Jobs[i].Submit; !at.IsZero() && at.Before(t) {
			t = at
		}
	}
	return t
}

func (m *Mirror) compareNodes(s *live.Snapshot) error {
	here := make([]bool, len(m.layout.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.GPUs == 0 {
			continue
		}
		k, known := m.nodes[n.Name]
		switch {
		case !known:
			return fmt.Errorf("%w: node %s is new", ErrLayout, n.Name)
		case n.Short && n.GPUs <= m.first[k].GPUs: // what it has is not known; it is down
		case n.GPUs != m.first[k].GPUs || n.GPUType != m.first[k].GPUType:
			return fmt.Errorf("%w: node %s has %d GPUs of type %q, and had %d of type %q", ErrLayout, n.Name, n.GPUs, n.GPUType,
				m.first[k].GPUs, m.first[k].GPUType)
		}
		here[k] = !n.Down
	}
	now := m.Now()
	for k, up := range here { // a node that is not there any more is down
		switch {
		case up && m.down[k]:
			// at once, as jobs may have started there since
			m.changes = append(m.changes, change{kind: sim.NodeRecover, node: k})
		case !up && !m.down[k]:
			m.changes = append(m.changes, change{at: now, kind: sim.NodeFail, node: k})
		}
		m.down[k] = !up
	}
	return nil
}

// compareJobs lists what has happened to jobs since the snapshot at before. Changes whose time nobody tells are at the
// time of the current one, which is also the latest.
func (m *Mirror) compareJobs(s *live.Snapshot, before time.Time, from time.Duration) {
	for _, j := range m.jobs {
		j.seen = false
	}
	for i := range s.Jobs {
		t := &s.Jobs[i]
		if t.GPUs < 1 || t.State == live.Waiting && t.Blocked != "" {
			continue
		}
		m.compareJob(t)
	}
	ended := make(map[string]*live.Job, len(s.Ended))
	for i := range s.Ended {
		ended[s.Ended[i].ID] = &s.Ended[i]
	}
	var gone []*job // in order of ID, so that the same snapshots give the same facts
	for _, j := range m.jobs {
		if !j.seen {
			gone = append(gone, j)
		}
	}
	slices.SortFunc(gone, func(a, b *job) int { return cmp.Compare(a.id, b.id) })
	for _, j := range gone {
		t := ended[j.id]
		delete(m.jobs, j.id)
		switch {
		case j.runs && t != nil && !t.End.IsZero():
			m.add(change{at: m.clock(t.End), kind: sim.Finish, job: j})
		case j.runs:
			m.add(change{at: m.Now(), kind: sim.Finish, job: j})
		case m.ran(t):
			m.add(change{at: m.clock(t.Start), kind: sim.Start, job: j, told: t})
			m.add(change{at: m.clock(t.End), kind: sim.Finish, job: j})
		default:
			m.add(change{at: m.Now(), kind: sim.Drop, job: j})
		}
	}
	if before.IsZero() || from == 0 {
		return
	}
	for i := range s.Ended { // those that came and went in between are of use to predictors
		t := &s.Ended[i]
		if t.GPUs < 1 || !m.ran(t) || !t.Submit.After(before) || m.jobs[t.ID] != nil {
			continue
		}
		j := newJob(t)
		m.add(change{at: m.clock(t.Submit), kind: sim.Submit, job: j, told: t})
		m.add(change{at: m.clock(t.Start), kind: sim.Start, job: j, told: t})
		m.add(change{at: m.clock(t.End), kind: sim.Finish, job: j})
	}
}

// ran reports whether a job that has ended is known to have run, and where.
func (m *Mirror) ran(t *live.Job) bool {
	if t == nil || t.Start.IsZero() || t.End.Before(t.Start) {
		return false
	}
	held := 0
	for _, p := range t.Places {
		if k, known := m.nodes[p.Node]; !known || m.down[k] {
			return false
		}
		held += p.GPUs
	}
	return held == t.GPUs
}

func (m *Mirror) add(c change) { m.changes = append(m.changes, c) }

func newJob(t *live.Job) *job {
	return &job{id: t.ID, gpus: t.GPUs, types: t.GPUTypes, seen: true}
}

// compareJob lists what has happened to a job that waits or runs.
func (m *Mirror) compareJob(t *live.Job) {
	now := m.Now()
	j := m.jobs[t.ID]
	if j != nil && (j.gpus != t.GPUs || !slices.Equal(j.types, t.GPUTypes)) { // its owner has changed it
		kind := sim.Drop
		if j.runs {
			kind = sim.Finish
		}
		m.add(change{kind: kind, job: j}) // at once, as the other one may have come long before now
		j = nil
	}
	if j == nil {
		j = newJob(t)
		m.jobs[t.ID] = j
		at := m.clock(t.Submit)
		if t.State == live.Running {
			at = min(at, m.clock(t.Start))
		}
		m.add(change{at: at, kind: sim.Submit, job: j, told: t})
	}
	j.seen = true
	again := j.runs && t.State == live.Running && !j.start.Equal(t.Start)
	if j.runs && t.State == live.Waiting || again {
		kind, at := sim.Preempt, now
		if again {
			at = min(at, m.clock(t.Start))
		}
		for _, g := range j.held {
			if m.down[m.nodes[m.Node(g)]] {
				kind = sim.Fail
			}
		}
		m.add(change{at: at, kind: kind, job: j})
		j.runs = false
	}
	if t.State == live.Running && !j.runs {
		m.add(change{at: m.clock(t.Start), kind: sim.Start, job: j, told: t})
		j.runs, j.start = true, t.Start
	}
}

// carry makes change number i a fact.
func (m *Mirror) carry(i int) error {
	c := &m.changes[i]
	if c.done {
		return nil
	}
	c.done = true
	f := sim.Fact{At: c.at, Kind: c.kind, Node: c.node}
	switch c.kind {
	case sim.NodeFail, sim.NodeRecover:
	case sim.Submit:
		t := c.told.Job // a copy
		t.Submit, t.Work, t.Profile, t.Graph = min(m.clock(c.told.Submit), c.at), 0, nil, nil
		t.MinGPUs, t.MaxGPUs, t.GPUMilli = 0, 0, 1000
		t.CPUMilli, t.MemBytes = 0, 0 // the cluster has seen to it that there are enough where the job runs
		t.Iterations, t.Deadline, t.SLO = 0, 0, 0
		if t.Estimate <= 0 {
			t.Estimate, t.Assumed = m.cfg.Limit, true
		}
		f.Job = &t
	case sim.Start:
		f.ID = c.job.id
		if err := m.seat(i); err != nil {
			return err
		}
		f.GPUs = c.job.held
	default:
		f.ID = c.job.id
		m.leave(c.job)
	}
	m.facts = append(m.facts, f)
	return nil
}

// leave frees j's GPUs.
func (m *Mirror) leave(j *job) {
	for _, g := range j.held {
		m.owner[g] = nil
	}
	j.held = nil
}

// seat chooses the GPUs of the job that change i starts. If others hold them that end later in this snapshot, nobody
// has told when, and they end now.
func (m *Mirror) seat(i int) error {
	c := &m.changes[i]
	for _, p := range c.told.Places {
		node, known := m.nodes[p.Node]
		if !known {
			return fmt.Errorf("%w: job %s runs on node %s, which has no GPUs", ErrLayout, c.job.id, p.Node)
		}
		for k := i + 1; k < len(m.changes) && !m.fits(node, &p); k++ {
			if o := &m.changes[k]; !o.done && o.order() == 0 && m.holds(o.job, node) {
				o.at = c.at
				if err := m.carry(k); err != nil {
					return err
				}
			}
		}
		if free := m.room(node); free < p.GPUs {
			return fmt.Errorf("job %s runs on %d GPUs of node %s, which has %d that no other job holds", c.job.id, p.GPUs,
				p.Node, free)
		}
		m.take(c.job, node, &p)
	}
	return nil
}

// fits reports whether there is room on a node, and on the GPUs that the cluster names.
func (m *Mirror) fits(node int, p *live.Place) bool {
	for _, k := range p.Index {
		if k >= 0 && k < int(m.gpus[node+1]-m.gpus[node]) && m.owner[int(m.gpus[node])+k] != nil {
			return false
		}
	}
	return m.room(node) >= p.GPUs
}

// room returns how many GPUs of a node nobody holds.
func (m *Mirror) room(node int) (n int) {
	for g := m.gpus[node]; g < m.gpus[node+1]; g++ {
		if m.owner[g] == nil {
			n++
		}
	}
	return n
}

// holds reports whether j holds GPUs of node.
func (m *Mirror) holds(j *job, node int) bool {
	return slices.ContainsFunc(j.held, func(g cluster.GPU) bool { return g >= m.gpus[node] && g < m.gpus[node+1] })
}

// take gives j the GPUs of a node that the cluster names, or the first that are free.
func (m *Mirror) take(j *job, node int, p *live.Place) {
	left := p.GPUs
	give := func(g cluster.GPU) {
		if left > 0 && g >= m.gpus[node] && g < m.gpus[node+1] && m.owner[g] == nil {
			m.owner[g], j.held = j, append(j.held, g)
			left--
		}
	}
	for _, k := range p.Index {
		give(m.gpus[node] + cluster.GPU(k))
	}
	for g := m.gpus[node]; g < m.gpus[node+1]; g++ {
		give(g)
	}
}
