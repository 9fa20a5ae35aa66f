package queuerank

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/heuristic"
	peer "clustergym/env/peer/rltune"
	"clustergym/env/sim"
	"clustergym/traces"
)

// tuned is what Config.RLTune adds: the machine of RLTune's program on the simulator's cluster. A job's pool are the nodes of its
// virtual cluster and its types of GPU. Nodes smaller than the largest of the pool take jobs of up to twice their size, as those of 2
// GPUs on Philly do.
type tuned struct {
	e         *Env
	queue     tunedQueue
	finder    peer.Finder
	planner   peer.Planner
	programme bool
	divided   bool // the cluster has virtual clusters: observations count no ways on one node more, and the programme is over whole pools
	single    bool // all jobs have one pool: the share of partial nodes is of all nodes, not of those with a free GPU
	base      *Env // plays the base order; nil = it is not needed

	pools map[poolKey]*pool
	held  sim.Job
	parts []peer.Part
	list  []sim.Job
	ends  []finish
	row   [peer.Features]float64
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
	*peer.Pool
	nodes []int32    // of the cluster, in ascending order
	free  []int32    // GPUs, by position in nodes
	of    uint64     // version of the cluster that free is of, 0 = none
	state peer.State // of the last observation
	used  int        // visible jobs that encode has added to state
	ways  []counted  // by GPUs of a request
}

// counted is the ways of requests in one version of the cluster.
type counted struct {
	of   uint64
	ways int
	fits bool
}

// tunedDoc describes the rows.
const tunedDoc = "by slot, of the jobs in the order of base: wait/12 h; n/largest node; n/free GPUs/capacity; (free − demand of the visible jobs + capacity)/(2 capacity); " +
	"partial nodes/nodes with a free GPU; ways/3; can start: 1e-5 no, 1 − 1e-5 in one way, half as much again in several; an empty slot is 0, 1, 1, 1, 1, 1, 0"

func newTuned(e *Env) (*tuned, error) {
	c := e.view.Cluster()
	t := &tuned{e: e, programme: e.cfg.RLTune == "programme", pools: map[poolKey]*pool{}}
	t.divided, t.single = len(c.VCs()) > 0, len(c.VCs()) == 0 && len(c.Types()) < 2
	rank, err := heuristic.NewRanker(e.cfg.Base, e.cfg.Estimates)
	if err != nil {
		return nil, err
	}
	n := e.cfg.Window
	t.queue = tunedQueue{e: e, rank: rank, sized: e.cfg.Base == "sjf", list: make([]sim.Job, 0, n), keys: make([]tunedKey, 0, n)}
	e.dec.GPUs = make([]cluster.GPU, 0, c.GPUs())
	t.list, t.ends, t.parts = make([]sim.Job, 0, n), make([]finish, 0, n), make([]peer.Part, 0, c.Nodes())
	return t, nil
}

// pool returns the pool of requests like r.
func (t *tuned) pool(r *cluster.Request) *pool {
	key := poolKey{r.VC, r.Types}
	if p := t.pools[key]; p != nil {
		return p
	}
	c := t.e.view.Cluster()
	p := new(pool)
	var blocks []peer.Block
	largest := 0
	from, to := 0, c.Nodes()
	if r.VC != 0 {
		from, to = c.VCNodes(r.VC)
	}
	for n := from; n < to; n++ {
		if r.Types != 0 && r.Types>>c.TypeOf(n)&1 == 0 {
			continue
		}
		a, b := c.NodeGPUs(n)
		each := int(b - a)
		p.nodes = append(p.nodes, int32(n))
		if k := len(blocks) - 1; k >= 0 && blocks[k].Each == each {
			blocks[k].Nodes++
		} else {
			blocks = append(blocks, peer.Block{Nodes: 1, Each: each})
		}
		largest = max(largest, each)
	}
	for i := range blocks {
		if b := &blocks[i]; b.Each < largest {
			b.Most = 2 * b.Each
		}
	}
	p.Pool, p.free = peer.NewPool("", 0, blocks...), make([]int32, len(p.nodes))
	p.ways = make([]counted, p.GPUs()+1)
	t.pools[key] = p
	return p
}

// count returns the free GPUs of p's nodes.
func (t *tuned) count(p *pool) []int32 {
	c := t.e.view.Cluster()
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
	c := t.e.view.Cluster()
	for i := range jobs {
		j := &jobs[i]
		r, ok := c.Request(j)
		if !ok {
			continue // the workload leaves it out
		}
		if j.GPUs < 1 || j.GPUMilli != 1000 {
			return fmt.Errorf("%s: job %s asks for %d × %d thousandths of a GPU; rltune places whole GPUs", ID, j.ID, j.GPUs, j.GPUMilli)
		}
		p := t.pool(&r)
		most := 0
		for k := range p.Blocks {
			if b := &p.Blocks[k]; b.Most == 0 {
				most = max(most, b.Nodes*b.Each)
			}
		}
		if j.GPUs > most {
			return fmt.Errorf("%s: job %s asks for %d GPUs; rltune places it on equal nodes only, which have %d: set env.max_gpus=%d", ID, j.ID, j.GPUs, most, most)
		}
	}
	return nil
}

// place appends the GPUs that j gets to dst[:0], and reports whether it fits now.
func (t *tuned) place(j sim.Job, dst []cluster.GPU) ([]cluster.GPU, bool) {
	r := t.e.view.Request(j)
	p := t.pool(r)
	free := t.count(p)
	var ok bool
	if t.programme && j == t.held {
		t.planner.Next(t.queue.second(j))
		t.parts, ok = t.planner.Choose(p.Pool, free, r.GPUs, t.divided, t.parts)
	} else {
		t.parts, ok = t.finder.First(p.Pool, free, r.GPUs, t.parts)
	}
	dst = dst[:0]
	if !ok {
		return dst, false
	}
	c := t.e.view.Cluster()
	for _, part := range t.parts {
		left := part.GPUs
		for g, to := c.NodeGPUs(int(p.nodes[part.Node])); g < to && left > 0; g++ {
			if c.GPUFree(g) == 1000 {
				dst = append(dst, g)
				left--
			}
		}
		if left > 0 {
			panic(fmt.Sprintf("queuerank: a way takes %d GPUs of node %d, which has %d fewer", part.GPUs, p.nodes[part.Node], left))
		}
	}
	return dst, true
}

// early returns when j will fit if the running jobs of its pool end as estimated.
func (t *tuned) early(j sim.Job) int64 {
	v := t.e.view
	r := v.Request(j)
	p := t.pool(r)
	t.ends = t.ends[:0]
	for _, o := range v.Running() {
		if t.pool(v.Request(o)) == p {
			t.ends = append(t.ends, finish{int64(v.Started(o)) + t.e.known[o].e, o})
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

// backfill starts, in order of submit, the jobs of the held one's pool that fit and end before early as estimated.
func (t *tuned) backfill(early int64) error {
	v := t.e.view
	p := t.pool(v.Request(t.held))
	t.list = t.list[:0]
	for _, j := range t.queue.list {
		if t.pool(v.Request(j)) == p {
			t.list = append(t.list, j)
		}
	}
	slices.SortStableFunc(t.list, func(a, b sim.Job) int { return cmp.Compare(v.Trace(a).Submit, v.Trace(b).Submit) })
	for _, j := range t.list {
		if int64(v.Now())+t.e.known[j].e >= early {
			continue
		}
		ok, err := t.e.tryStart(j)
		if err != nil {
			return err
		}
		if ok {
			t.e.leave(j)
		}
	}
	return nil
}

// encode fills the observation.
func (t *tuned) encode(dst []float32) {
	e, v := t.e, t.e.view
	c := v.Cluster()
	for _, p := range t.pools {
		p.used = 0
	}
	for _, j := range e.queue.slots {
		r := v.Request(j)
		p := t.pool(r)
		if p.used == 0 {
			p.state = peer.State{PerNode: float64(c.MaxNode())}
			p.state.Count(p.Pool, t.count(p), t.single)
		}
		p.used++
		p.state.Demand += float64(r.GPUs)
	}
	for i := range e.cfg.Visible {
		d := dst[i*peer.Features : (i+1)*peer.Features]
		row := peer.Padding
		if i < len(e.queue.slots) {
			j := e.queue.slots[i]
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
	e     *Env
	rank  *heuristic.Ranker
	sized bool // equal keys go by GPUs, as sjf has it
	list  []sim.Job
	keys  []tunedKey
}

type tunedKey struct {
	key  float64
	gpus int
	job  sim.Job
}

func (a *tunedKey) compare(b *tunedKey) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.gpus, b.gpus))
}

func (q *tunedQueue) key(j sim.Job) tunedKey {
	k := tunedKey{key: q.rank.Key(q.e.view, j), job: j}
	if q.sized {
		k.gpus = q.e.view.Request(j).GPUs
	}
	return k
}

// sort sorts the queue, stably.
func (q *tunedQueue) sort() {
	q.rank.Reseed(q.e.est.Seed)
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
	return q.e.view.Request(next.job).GPUs
}

// playBase plays ep by the base order and returns its score.
func (e *Env) playBase(ctx context.Context, ep env.Episode) (float64, error) {
	if _, err := e.draw(ctx, ep); err != nil {
		return 0, err
	}
	if err := e.begin(ctx, ep.Seed); err != nil {
		return 0, err
	}
	for e.started < e.session.Len() && !e.view.Over() {
		if err := e.step(ctx, e.queue.slots[0]); err != nil {
			return 0, err
		}
	}
	return e.sum.score(&e.cfg, e.session.GPUs()), nil
}
