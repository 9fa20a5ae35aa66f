package encode

import (
	"fmt"
	"math"
	"slices"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// wideCluster is the number of GPUs above which the cluster image has a column per node instead of per GPU.
const wideCluster = 512

// Image is the job-queue and cluster image of JobSelect-v1, together with scalars.
type Image struct {
	axis   *Axis
	c      *cluster.Cluster
	slots  int // K
	width  int // M, columns of a slot
	cols   int // of the cluster image
	perCol bool
	gpus   float64
	place  *Placements
	gangs  stints
	seen   *Forecasts // nil = they are not shown
	job    int        // numbers of a slot in field jobs
	plain  bool       // there are no images
	stops  bool       // jobs can be stopped: field jobs ends with the numbers that say so

	long   bars      // of both images, where they do not fit the stack
	height []float32 // for columns that are nodes: the highest bar of each GPU
	pool   []sim.Job // scratch: running jobs in order of start
}

var (
	_ sched.Encoder  = (*Image)(nil)
	_ sched.Follower = (*Image)(nil)
)

// NewImage returns an encoder for K slots of M columns. place computes where a slot's gang would be placed. seen are
// the forecasts to show, nil = none.
//
// c gives the cluster's shape; its use comes with each state.
func NewImage(axis *Axis, c *cluster.Cluster, k, m int, place *Placements, seen *Forecasts) (*Image, error) {
	im := &Image{axis: axis, c: c, slots: k, width: m, gpus: float64(c.GPUs()), place: place, seen: seen, cols: c.GPUs(),
		job: jobLen}
	if seen != nil {
		im.job += ForecastLen
	}
	if c.GPUs() > wideCluster {
		if c.Pool() {
			return nil,
				fmt.Errorf("encode: a counter of %d GPUs has no machines to draw; want at most %d GPUs, or a cluster of nodes",
					c.GPUs(), wideCluster)
		}
		im.cols, im.perCol = c.Nodes(), true
		im.height = make([]float32, c.GPUs())
	} else if !c.Pool() {
		im.gangs.owner = make([]int32, c.GPUs())
	}
	switch n := im.cols + k*m; {
	case n > longRow:
		im.long = bars{make([]int32, im.cols), make([]float32, im.cols)}
	case n > shortRow:
		im.long = bars{make([]int32, n), make([]float32, n)}
	}
	return im, nil
}

// NewTables is NewImage without the fields cluster and queue: the observation's size does not depend on the cluster,
// nor on the largest gang.
func NewTables(axis *Axis, c *cluster.Cluster, k int, place *Placements, seen *Forecasts) *Image {
	im := &Image{axis: axis, c: c, slots: k, gpus: float64(c.GPUs()), place: place, seen: seen, job: jobLen, plain: true}
	if seen != nil {
		im.job += ForecastLen
	}
	return im
}

// The columns of field jobs.
const (
	jobFilled = iota
	jobWait
	jobGPUs
	jobEstimate
	jobArea
	jobModel
	jobBatch
	jobBest
	jobNow
	jobFits
	jobLen
)

// The numbers kept in Known.Feature.
const (
	featEstimate = iota
	featArea
	featModel
	featBatch
	featBest
)

// Fields implements sched.Encoder.
func (im *Image) Fields() []env.Field {
	f := func(name, unit, doc string, shape ...int) env.Field {
		return env.Field{Name: name, Shape: shape, Low: 0, High: 1, Unit: unit, Doc: doc}
	}
	per := "GPU by rack, machine and index"
	if im.perCol {
		per = "machine (mean over its GPUs)"
	}
	fields := []env.Field{
		f("cluster", "bar", "remaining time of the job on each "+per, rowCount, im.cols),
		f("global", "fraction",
			"free share; C(running, G); C(backlog, 1024); min(1, backlog GPUs/4G); L(backlog e·n/G); L(since last arrival); "+
				"L(since last finish); mean rate of running jobs", 8),
		f("jobs", "fraction",
			"by slot: filled; L(wait); n/G; L(e); L(e·n/G); C(model MB, 1e6); log2(batch)/16; best/worst cost for n; cost "+
				"now/worst (1: does not fit); fits", im.slots, im.job),
		f("queue", "bar", "estimated run time of each slot's job, in as many of the slot's columns as it wants GPUs",
			rowCount, im.slots*im.width),
	}
	fields[0].Group, fields[3].Group, fields[2].Filled = im.machine(), im.width, 1+jobFilled
	if im.seen != nil {
		fields[2].Doc += "; " + ForecastDoc
	}
	if im.stops {
		fields[2].Doc += "; " + stopDoc
	}
	if im.seen != nil {
		fields = slices.Insert(fields, 2, f("held", "fraction", HeldDoc, HeldLen))
	}
	if im.plain {
		fields = fields[1 : len(fields)-1]
	}
	return fields
}

// machine returns how many columns of the cluster image are one machine's. Where machines differ in size it is the
// largest number of columns that divides all of them, so that no group spans two machines. A column that is a whole
// machine, or a GPU of a counter, which has no machines, is a group by itself.
func (im *Image) machine() int {
	if im.perCol || im.c.Pool() {
		return 1
	}
	group := 0
	for n := range im.c.Nodes() {
		from, to := im.c.NodeGPUs(n)
		for a, b := group, int(to-from); ; a, b = b, a%b {
			if b == 0 {
				group = a
				break
			}
		}
	}
	return max(1, group)
}

// Reset implements sched.Encoder.
func (im *Image) Reset(*sched.State) {
	im.place.Forget()
	im.gangs.reset()
	im.seen.Reset()
}

// Follow implements sched.Follower.
func (im *Image) Follow(s *sched.State, events []sim.Event) { im.gangs.follow(s.View, events) }

// Rejoin implements sched.Follower.
func (im *Image) Rejoin(s *sched.State) { im.gangs.rejoin(s.View) }

// Learn implements sched.Encoder.
func (im *Image) Learn(s *sched.State, j sim.Job) {
	k := &s.Known[j]
	if k.Counted { // others are never in a slot
		im.Renew(s, j)
		k.Feature[featModel] = C(s.ModelMB, 1e6)
		k.Feature[featBatch] = float32(min(1, max(0, math.Log2(max(1, float64(s.Batch)))/16)))
		n := s.View.Request(j).GPUs
		k.Feature[featBest] = float32(im.c.BestCost(n) / im.c.WorstCost(n))
	}
	im.seen.Learn(s.View, j, k.Estimate)
}

// Renew implements sched.Renewer.
func (im *Image) Renew(s *sched.State, j sim.Job) {
	k := &s.Known[j]
	k.Feature[featEstimate] = L(float64(k.Rest))
	k.Feature[featArea] = L(float64(k.Rest) * k.GPUs / im.gpus)
}

// Encode implements sched.Encoder.
func (im *Image) Encode(dst []float32, s *sched.State) {
	rate, followed := im.gangs.update(s, im.axis)
	if !followed {
		rate = meanRate(s.View)
	}
	n := 0
	if !im.plain {
		n = rowCount * im.cols
		im.images(dst[:n], dst[len(dst)-rowCount*im.slots*im.width:], s, followed)
	}
	global(dst[n:n+8], s, rate)
	n += 8
	if im.seen != nil {
		im.seen.Count(s.View)
		im.seen.Held(dst[n:n+HeldLen], s.View, im.axis)
		n += HeldLen
	}
	im.jobs(dst[n:n+im.slots*im.job], s)
}

// images writes the fields cluster and queue.
func (im *Image) images(cluster, queue []float32, s *sched.State, followed bool) {
	var short struct {
		full [shortRow]int32
		part [shortRow]float32
	}
	all := bars{short.full[:], short.part[:]} // empty
	if im.long.full != nil {
		all = im.long
		all.clear()
	}
	b := bars{all.full[:im.cols], all.part[:im.cols]}
	if !followed || !im.gangs.draw(b) {
		im.clusterImage(b, s)
	}
	b.write(cluster)
	to := im.cols + im.slots*im.width
	if to > longRow {
		clear(queue)
		im.queue(bars{}, queue, s)
		return
	}
	b = bars{all.full[im.cols:to], all.part[im.cols:to]}
	im.queue(b, nil, s)
	b.write(queue)
}

// known returns the expected remaining time of j: estimate − time run, or the time run if there are no estimates.
func known(s *sched.State, j sim.Job) float64 {
	if s.Blind {
		return float64(s.View.Ran(j))
	}
	return float64(s.Left(j))
}

func (im *Image) clusterImage(b bars, s *sched.State) {
	v := s.View
	switch {
	case im.c.Pool():
		// GPUs have no identity here: the running jobs are side by side in order of start.
		im.pool = append(im.pool[:0], v.Running()...)
		slices.SortFunc(im.pool, func(a, b sim.Job) int {
			if d := v.Started(a) - v.Started(b); d != 0 {
				return int(max(-1, min(1, d)))
			}
			return v.Pos(a) - v.Pos(b)
		})
		col := 0
		for _, j := range im.pool {
			full, part := im.axis.Bar(known(s, j))
			for range int(math.Ceil(s.Known[j].GPUs)) {
				if col < im.cols {
					b.raise(col, full, part)
					col++
				}
			}
		}
	case im.perCol:
		clear(im.height)
		for _, j := range v.Running() {
			full, part := im.axis.Bar(known(s, j))
			for _, g := range v.GPUs(j) {
				im.height[g] = max(im.height[g], float32(full)+part)
			}
		}
		for n := range im.cols {
			from, to := im.c.NodeGPUs(n)
			sum := float32(0)
			for _, h := range im.height[from:to] {
				sum += h
			}
			if sum > 0 {
				h := min(rowCount, sum/float32(to-from))
				b.raise(n, int(h), h-float32(int(h)))
			}
		}
	default:
		for _, j := range v.Running() {
			full, part := im.axis.Bar(known(s, j))
			for _, g := range v.GPUs(j) { // a shared GPU shows its longest job
				b.raise(int(g), full, part)
			}
		}
	}
}

// GlobalLen is the number of values that Global writes.
const GlobalLen = 8

// Global writes the scalars that describe the whole system: free share; C(running, G); C(backlog, 1024); min(1,
// backlog GPUs/4G); L(backlog e·n/G); L(since last arrival); L(since last finish); mean rate of running jobs. The
// backlog is the waiting jobs that are in no slot.
func Global(dst []float32, s *sched.State) { global(dst, s, meanRate(s.View)) }

// meanRate returns the mean rate of the running jobs, 1 if there are none.
func meanRate(v *sim.View) float64 {
	rate := 0.0
	for _, j := range v.Running() {
		rate += v.Rate(j)
	}
	if n := len(v.Running()); n > 0 {
		return rate / float64(n)
	}
	return 1
}

func global(dst []float32, s *sched.State, rate float64) {
	v := s.View
	now := v.Now()
	all := float64(v.Cluster().GPUs())
	backlog, gpus, work := s.Waiting, s.WaitingGPUs, s.WaitingWork
	if s.Blind {
		work = float64(now)*gpus - s.WaitingSince
	}
	for _, j := range s.Slots {
		k := &s.Known[j]
		backlog--
		gpus -= k.GPUs
		e := k.Rest
		if s.Blind {
			e = now - k.Submit
		}
		work -= float64(e) * k.GPUs
	}
	if backlog == 0 {
		gpus, work = 0, 0
	}
	dst[0] = float32(float64(v.Cluster().FreeMilli()) / (1000 * all))
	dst[1] = logCount(len(v.Running()), v.Cluster().GPUs())
	dst[2] = logCount(backlog, 1024)
	dst[3] = float32(min(1, max(0, gpus)/(4*all)))
	dst[4] = L(work / all)
	dst[5] = L(float64(now - s.LastArrival))
	dst[6] = L(float64(now - s.LastFinish))
	dst[7] = float32(min(1, rate))
}

func (im *Image) jobs(dst []float32, s *sched.State) {
	now := s.View.Now()
	clear(dst)
	for i, j := range s.Slots {
		k := &s.Known[j]
		d := dst[i*im.job : (i+1)*im.job]
		waited := now - k.Submit
		d[jobFilled] = 1
		d[jobWait] = L(float64(waited))
		d[jobGPUs] = float32(min(1, k.GPUs/im.gpus))
		if s.Blind {
			d[jobEstimate] = d[jobWait]
			d[jobArea] = L(float64(waited) * k.GPUs / im.gpus)
		} else {
			d[jobEstimate], d[jobArea] = k.Feature[featEstimate], k.Feature[featArea]
		}
		d[jobModel], d[jobBatch] = k.Feature[featModel], k.Feature[featBatch]
		d[jobBest] = k.Feature[featBest]
		d[jobNow] = 1
		if s.Fits[i] {
			d[jobFits] = 1
			d[jobNow] = float32(min(1, im.cost(s, j)))
		}
		if im.seen != nil {
			im.seen.Encode(d[jobLen:], s.View, j)
		}
		if im.stops {
			past := d[im.job-stopLen:]
			past[stopRan], past[stopCount] = L(float64(s.View.Ran(j))), C(float64(s.View.Preemptions(j)), mostStops)
		}
	}
}

// cost returns the cost of the place that j, which fits, would get now over that of the worst one.
func (im *Image) cost(s *sched.State, j sim.Job) float64 {
	if k := &s.Known[j]; k.Plain && k.GPUs < mostPlain {
		n := int(k.GPUs)
		_, cost := im.place.plainOf(s.View, j, n)
		x := &im.place.plain[n]
		if x.worst == 0 {
			x.worst = im.c.WorstCost(n)
		}
		return cost / x.worst
	}
	_, cost := im.place.Of(s.View, j)
	return cost / im.c.WorstCost(s.View.Request(j).GPUs)
}

// queue draws the bars of the slots into b, or into the empty image dst if that is not nil.
func (im *Image) queue(b bars, dst []float32, s *sched.State) {
	cols := im.slots * im.width
	now := s.View.Now()
	for i, j := range s.Slots {
		k := &s.Known[j]
		x := float64(k.Rest)
		if s.Blind {
			x = float64(now - k.Submit)
		}
		full, part := im.axis.bar(x)
		for c := i * im.width; c < i*im.width+min(im.width, int(math.Ceil(k.GPUs))); c++ {
			if dst != nil {
				paint(dst, cols, c, full, part)
			} else {
				b.full[c], b.part[c] = full, part
			}
		}
	}
}

// Placements computes where a gang would be placed now and its cost, once for each gang size while the cluster is
// unchanged. It belongs to one environment.
type Placements struct {
	rule  cluster.Placement
	plain []placed // by GPUs
	other placed   // requests for shares, types, cores or memory
}

type placed struct {
	version uint64 // of the cluster, 0 = not computed
	cost    float64
	worst   float64 // of this many GPUs anywhere, 0 = not known
	gpus    []cluster.GPU
	ok      bool
}

// NewPlacements returns Placements that use rule.
func NewPlacements(rule cluster.Placement) *Placements { return &Placements{rule: rule} }

// Forget discards the computed placements.
func (p *Placements) Forget() {
	for i := range p.plain {
		p.plain[i].version = 0
	}
}

// Of returns where j's gang would be placed now, and its tree cost; nil if it does not fit. The list is valid until
// the cluster changes or Of is called for another job.
func (p *Placements) Of(v *sim.View, j sim.Job) (gpus []cluster.GPU, cost float64) {
	r := v.Request(j)
	if r.Plain() && r.GPUs < mostPlain {
		return p.plainOf(v, j, r.GPUs)
	}
	return p.other.find(p.rule, v.Cluster(), r)
}

// mostPlain limits the table of plain gangs.
const mostPlain = 4096

// plainOf is Of for a plain request (cluster.Request.Plain) for n GPUs, fewer than mostPlain.
func (p *Placements) plainOf(v *sim.View, j sim.Job, n int) (gpus []cluster.GPU, cost float64) {
	c := v.Cluster()
	for n >= len(p.plain) {
		p.plain = append(p.plain, placed{})
	}
	x := &p.plain[n]
	if x.version != c.Version() {
		x.version = c.Version()
		return x.find(p.rule, c, v.Request(j))
	}
	if !x.ok {
		return nil, 0
	}
	return x.gpus, x.cost
}

func (x *placed) find(rule cluster.Placement, c *cluster.Cluster,
	r *cluster.Request) (gpus []cluster.GPU, cost float64) {
	x.gpus, x.ok = rule.Place(c, r, x.gpus)
	x.cost = c.Cost(x.gpus)
	if !x.ok {
		return nil, 0
	}
	return x.gpus, x.cost
}
