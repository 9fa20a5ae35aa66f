package rltune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// tuned is the machine of RLTune's program on the simulator's cluster. A job's pool are the nodes of its virtual
// cluster and its types of GPU. Nodes smaller than the largest of the pool take jobs of up to twice their size, as
// those of 2 GPUs on Philly do.
type tuned struct {
	id        string // of the environment
	cfg       Config
	c         *cluster.Cluster
	s         *sched.State
	queue     tunedQueue
	finder    Finder
	planner   Planner
	programme bool
	// the cluster has virtual clusters: observations count no ways on one node more, and the programme is over whole pools
	divided bool
	single  bool // all jobs have one pool: the share of partial nodes is of all nodes, not of those with a free GPU

	pools map[poolKey]*pool
	parts []Part
	ends  []finish
	row   [Features]float64
}

// finish is when a running job ends as estimated.
type finish struct {
	at  int64
	job sim.Job
}

// poolKey is what jobs of one pool ask for.
type poolKey struct {
	vc    int32
	types uint64
}

// pool is a pool's nodes, and what is counted of them.
type pool struct {
	*Pool
	nodes []int32   // of the cluster, in ascending order
	free  []int32   // GPUs, by position in nodes
	of    uint64    // version of the cluster that free is of, 0 = none
	state State     // of the last observation
	used  int       // visible jobs that encode has added to state
	ways  []counted // by GPUs of a request
}

// counted is the ways of requests in one version of the cluster.
type counted struct {
	of   uint64
	ways int
	fits bool
}

// tunedDoc describes the rows.
const tunedDoc = "by slot, of the jobs in the order of base: wait/12 h; n/largest node; n/free GPUs/capacity; (free " +
	"− demand of the visible jobs + capacity)/(2 capacity); " +
	"partial nodes/nodes with a free GPU; ways/3; can start: 1e-5 no, 1 − 1e-5 in one way, half as much again in several; an empty slot is 0, 1, 1, 1, 1, 1, 0"

// New returns an environment over the windows w. id is its name: ID, or queuerank.V1 for runs that have the older keys.
func New(id string, cfg Config, spec cluster.Spec, w sched.Windows, part traces.Part) (*queuerank.Env, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := cluster.New(spec)
	if err != nil {
		return nil, err
	}
	if c.Pool() {
		return nil, fmt.Errorf("%s: rltune %s places jobs on nodes, and cluster %s is a counter",
			id, cfg.Placement, spec.Name)
	}
	t := &tuned{id: id, cfg: cfg, c: c, programme: cfg.Placement == "programme", pools: map[poolKey]*pool{}}
	t.divided, t.single = len(c.VCs()) > 0, len(c.VCs()) == 0 && len(c.Types()) < 2
	rank, err := schedulers.NewRanker(cfg.Base, cfg.Estimates)
	if err != nil {
		return nil, err
	}
	n := cfg.Window
	t.queue = tunedQueue{t: t, rank: rank, sized: cfg.Base == "sjf", list: make([]sim.Job, 0, n),
		keys: make([]tunedKey, 0, n)}
	t.ends, t.parts = make([]finish, 0, n), make([]Part, 0, c.Nodes())
	own := queuerank.Program{
		ID: id, Eager: true, Queue: &t.queue, Machine: t, Encoder: tunedRows{t}, Suits: t.check,
		NoStreams: fmt.Sprintf("rltune %s plays windows, not streams", cfg.Placement),
	}
	if cfg.Reward == "relative" {
		first := cfg
		first.Reward, first.Placement = "minus", "first" // base policies take the first placement
		base, err := New(id, first, spec, w, part)
		if err != nil {
			return nil, err
		}
		own.Base = base.Head
	}
	e, err := queuerank.Assemble(cfg.Older(), own, spec, w, nil, part)
	if err == nil {
		t.s, t.c = e.State(), e.View().Cluster()
	}
	return e, err
}

// pool returns the pool of requests like r.
func (t *tuned) pool(r *cluster.Request) *pool {
	key := poolKey{r.VC, r.Types}
	if p := t.pools[key]; p != nil {
		return p
	}
	c := t.c
	p := new(pool)
	var blocks []Block
	largest := 0
	from, to := 0, c.Nodes()
	if r.VC != 0 {
		from, to = c.VCNodes(r.VC)
	}
	for n := from; n < to; n++ {
		if r.Types != 0 && r.Types>>c.TypeOf(n)&1 == 0 || !c.Serves(n, r.VC) {
			continue
		}
		a, b := c.NodeGPUs(n)
		each := int(b - a)
		p.nodes = append(p.nodes, int32(n))
		if k := len(blocks) - 1; k >= 0 && blocks[k].Each == each {
			blocks[k].Nodes++
		} else {
			blocks = append(blocks, Block{Nodes: 1, Each: each})
		}
		largest = max(largest, each)
	}
	for i := range blocks {
		if b := &blocks[i]; b.Each < largest {
			b.Most = 2 * b.Each
		}
	}
	p.Pool, p.free = NewPool(blocks...), make([]int32, len(p.nodes))
	p.ways = make([]counted, p.GPUs()+1)
	t.pools[key] = p
	return p
}

// count returns the free GPUs of p's nodes.
func (t *tuned) count(p *pool) []int32 {
	c := t.c
	if p.of != c.Version() || p.of == 0 {
		for i, n := range p.nodes {
			p.free[i] = int32(c.NodeFree(int(n)))
		}
		p.of = c.Version()
	}
	return p.free
}

// check returns an error if a job of a window can never start.
func (t *tuned) check(jobs []traces.Job) error {
	c := t.c
	for i := range jobs {
		j := &jobs[i]
		r, ok := c.Request(j)
		if !ok {
			continue // the workload leaves it out
		}
		if j.GPUs < 1 || j.GPUMilli != 1000 {
			return fmt.Errorf("%s: job %s asks for %d × %d thousandths of a GPU; rltune places whole GPUs",
				t.id, j.ID, j.GPUs, j.GPUMilli)
		}
		p := t.pool(&r)
		most := 0
		for k := range p.Blocks {
			if b := &p.Blocks[k]; b.Most == 0 {
				most = max(most, b.Nodes*b.Each)
			}
		}
		if j.GPUs > most {
			return fmt.Errorf("%s: job %s asks for %d GPUs; rltune places it on equal nodes only, "+
				"which have %d: set env.max_gpus=%d",
				t.id, j.ID, j.GPUs, most, most)
		}
	}
	return nil
}

// Place implements queuerank.Machine.
func (t *tuned) Place(j sim.Job, held bool, dst []cluster.GPU) ([]cluster.GPU, bool) {
	r := t.s.View.Request(j)
	p := t.pool(r)
	free := t.count(p)
	var ok bool
	if t.programme && held {
		t.parts, ok = t.planner.Choose(p.Pool, free, r.GPUs, t.queue.second(j), t.divided, t.parts)
	} else {
		t.parts, ok = t.finder.First(p.Pool, free, r.GPUs, t.parts)
	}
	dst = dst[:0]
	if !ok {
		return dst, false
	}
	c := t.c
	for _, part := range t.parts {
		left := part.GPUs
		for g, to := c.NodeGPUs(int(p.nodes[part.Node])); g < to && left > 0; g++ {
			if c.GPUFree(g) == 1000 {
				dst = append(dst, g)
				left--
			}
		}
		if left > 0 {
			panic(fmt.Sprintf("rltune: a way takes %d GPUs of node %d, which has %d fewer", part.GPUs, p.nodes[part.Node], left))
		}
	}
	return dst, true
}

// Early implements queuerank.Machine: by the running jobs of its pool.
func (t *tuned) Early(j sim.Job) int64 {
	v := t.s.View
	r := v.Request(j)
	p := t.pool(r)
	t.ends = t.ends[:0]
	for _, o := range v.Running() {
		if t.pool(v.Request(o)) == p {
			t.ends = append(t.ends, finish{int64(v.Started(o)) + int64(t.s.Known[o].Estimate), o})
		}
	}
	slices.SortStableFunc(t.ends, func(a, b finish) int { return cmp.Compare(a.at, b.at) })
	free := t.count(p)
	p.of = 0 // free is changed below
	c := v.Cluster()
	now := int64(v.Now())
	for _, o := range t.ends {
		for _, g := range v.GPUs(o.job) {
			n, _ := slices.BinarySearch(p.nodes, int32(c.NodeOf(g)))
			free[n]++
		}
		if t.finder.Fits(p.Pool, free, r.GPUs) {
			return max(now, o.at)
		}
	}
	return math.MaxInt64 // jobs of other pools are on its nodes, and RLTune's program does not look at when they end
}

// InOrder implements queuerank.Queue: in order of submit, the jobs of the held one's pool.
func (q *tunedQueue) InOrder(dst []sim.Job, held sim.Job) []sim.Job {
	v := q.t.s.View
	p := q.t.pool(v.Request(held))
	for _, j := range q.list {
		if q.t.pool(v.Request(j)) == p {
			dst = append(dst, j)
		}
	}
	slices.SortStableFunc(dst, func(a, b sim.Job) int { return cmp.Compare(v.Trace(a).Submit, v.Trace(b).Submit) })
	return dst
}

// tunedRows is the encoder.
type tunedRows struct{ *tuned }

// Fields implements sched.Encoder.
func (t tunedRows) Fields() []env.Field {
	return []env.Field{{
		Name: "jobs", Shape: []int{t.cfg.Visible, Features}, High: 1.5, Unit: "fraction", Doc: tunedDoc, Filled: Features,
	}}
}

// Reset implements sched.Encoder.
func (tunedRows) Reset(*sched.State) {}

// Learn implements sched.Encoder.
func (tunedRows) Learn(*sched.State, sim.Job) {}

// Encode implements sched.Encoder.
func (t tunedRows) Encode(dst []float32, s *sched.State) {
	v, c := s.View, t.c
	for _, p := range t.pools {
		p.used = 0
	}
	for _, j := range s.Slots {
		r := v.Request(j)
		p := t.pool(r)
		if p.used == 0 {
			p.state = State{PerNode: float64(c.MaxNode())}
			p.state.Count(p.Pool, t.count(p), t.single)
		}
		p.used++
		p.state.Demand += float64(r.GPUs)
	}
	for i := range t.cfg.Visible {
		d := dst[i*Features : (i+1)*Features]
		row := Padding
		if i < len(s.Slots) {
			j := s.Slots[i]
			r := v.Request(j)
			p := t.pool(r)
			n := &p.ways[r.GPUs]
			if n.of != c.Version() {
				n.of = c.Version()
				n.ways, n.fits = t.finder.Ways(p.Pool, t.count(p), r.GPUs, !t.divided)
			}
			p.state.Row((v.Now() - v.Trace(j).Submit).Seconds(), float64(r.GPUs), n.ways, n.fits, t.row[:])
			row = t.row
		}
		for k, x := range row {
			d[k] = float32(x)
		}
	}
}

// tunedQueue is the queue in the order of the base.
type tunedQueue struct {
	t     *tuned
	rank  *schedulers.Ranker
	sized bool // equal keys go by GPUs, as sjf has it
	list  []sim.Job
	saved []sim.Job
	keys  []tunedKey
}

var _ queuerank.Queue = (*tunedQueue)(nil)

type tunedKey struct {
	key  float64
	gpus int
	job  sim.Job
}

func (a *tunedKey) compare(b *tunedKey) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.gpus, b.gpus))
}

func (q *tunedQueue) key(j sim.Job) tunedKey {
	k := tunedKey{key: q.rank.Key(q.t.s.View, j), job: j}
	if q.sized {
		k.gpus = q.t.s.View.Request(j).GPUs
	}
	return k
}

// sort sorts the queue, stably.
func (q *tunedQueue) sort() {
	q.rank.Reseed(q.t.s.Seed)
	q.keys = q.keys[:0]
	for _, j := range q.list {
		q.keys = append(q.keys, q.key(j))
	}
	slices.SortStableFunc(q.keys, func(a, b tunedKey) int { return a.compare(&b) })
	for i := range q.keys {
		q.list[i] = q.keys[i].job
	}
}

// second returns how many GPUs the second of held and the queue by the base order asks for, 0 if the queue is empty.
func (q *tunedQueue) second(held sim.Job) int {
	if len(q.list) == 0 {
		return 0
	}
	first, next := q.key(held), tunedKey{job: -1}
	for _, j := range q.list {
		k := q.key(j)
		switch {
		case k.compare(&first) < 0:
			first, next = k, first
		case next.job < 0 || k.compare(&next) < 0:
			next = k
		}
	}
	return q.t.s.View.Request(next.job).GPUs
}

// Reset implements queuerank.Queue.
func (q *tunedQueue) Reset() { q.list = q.list[:0] }

// Len implements queuerank.Queue.
func (q *tunedQueue) Len() int { return len(q.list) }

// Add implements queuerank.Queue.
func (q *tunedQueue) Add(w queuerank.Waiting) { q.list = append(q.list, w.Job) }

// Drop implements queuerank.Queue.
func (q *tunedQueue) Drop(w queuerank.Waiting) {
	i := slices.Index(q.list, w.Job)
	q.list = slices.Delete(q.list, i, i+1)
}

// Fill implements queuerank.Queue.
func (q *tunedQueue) Fill(dst []sim.Job, k int) []sim.Job {
	q.sort()
	return append(dst, q.list[:min(k, len(q.list))]...)
}

// Save implements queuerank.Queue.
func (q *tunedQueue) Save() { q.saved = append(q.saved[:0], q.list...) }

// Restore implements queuerank.Queue.
func (q *tunedQueue) Restore() { q.list = append(q.list[:0], q.saved...) }
