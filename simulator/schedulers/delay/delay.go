// Package delay implements delay scheduling with leases: the policies dally, delay-las and tiresias-lease.
package delay

import (
	"cmp"
	"math"
	"slices"
	"time"

	"clustergym/internal/grow"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Offer is an offer of GPUs to a job at the nearest tier that holds the gang now.
type Offer struct {
	Job    sim.Job
	Tier   place.Tier
	GPUs   []cluster.GPU // owned by the policy; valid until the offer is answered
	Waited time.Duration // since the job was submitted or lost its GPUs
	Place  int           // position in the pass, from 0
	Behind int           // number of jobs asked after it
}

// Delay is delay scheduling with leases (Dally: Sharma et al., arXiv 2401.16492) in this simulator's terms: the
// policies dally, delay-las and tiresias-lease. Gangs hold their GPUs for a lease. At every point the free GPUs, and
// those whose leases have run out, are offered to the waiting jobs and the jobs whose leases have run out. The jobs are
// asked one after the other, and each is offered the nearest tier that holds it: the fullest node, else the fullest
// rack, else few racks (placement rack). A gang whose lease has run out stays where it is if it is offered nothing
// nearer. A node is always taken.
//
// dally asks in the network-sensitive order: the job with the least progress for its time on GPUs, that is the lowest
// mean rate so far, goes first; the rate is 0 for a job that has not run. With Leases.Ask las the job with the least
// attained GPU-time goes first. Ties go to the job that has waited longest, then to the earlier position in the trace.
// A rack is declined until the job has waited rack_wait leases, the network until it has waited nw_wait leases, both
// counted from its submit or from when it lost its GPUs. If no smaller tier could ever hold the gang, the job does not
// wait. If nothing runs and no timer will run out, no offer is declined, because nothing nearer would come.
//
// With auto, the timers for each gang size follow the delays (of a lease or more) after which gangs of that size took
// a node or a rack, within the last h = history leases: rack_wait = min(⌈0.8h⌉, max(6, ⌈μ+2σ⌉)) over the delays
// before a node, nw_wait = min(h, max(12, ⌈μ+2σ⌉)) over those before a rack. μ+2σ is 1 if there are none.
//
// delay-las is ours. It asks in the order of attained GPU-time, least first, and a job looks at rates, not at timers.
// It declines a rack or the network if it would progress there slower than Leases.Accept times as fast as at its place
// on the empty cluster. This share halves with every Leases.Patience leases that the job has waited, so no job waits
// for ever, unless Patience is 0. A gang whose lease has run out moves only to a faster place. It is asked about its
// own place like any other, with a wait of 0: a gang that took a slow place gives it up when its lease runs out, and
// waits anew. If nothing runs, no offer is declined.
//
// tiresias-lease asks in the order of attained GPU-time (Tiresias: Gu et al., NSDI 2019, without its queues), under
// the same leases. Models with a skewed gradient wait for the smallest tier that could ever hold them; others take
// what they are offered. If nothing runs, all do.
//
// With Leases.Together the leases of all jobs end at whole multiples of the lease, so that everything is offered at
// once.
//
// Differences from the program of Dally's authors (peer/dally): times are exact, jobs do not run in blocks, and
// leases are kept. Machines are chosen by room, not by hash, and nodes have no slots. Passes happen at events and
// when a timer has run out, not every minute. A job whose lease runs out need not stop to stay where it is. All old
// delays are forgotten.
//
// Decide takes all decisions. To answer offers yourself, call Open at each point, then Next until it returns nil,
// each time followed by Answer, and then Decide until it waits.
type Delay struct {
	name  string
	cfg   Leases
	order askOrder
	rule  acceptRule
	plan  place.Plan // its placement is not used
	rack  cluster.Placement

	opened bool
	pass   bool // the pass at this point is not over
	at     int  // in line
	line   []candidate
	last   []since     // by job: when it began to wait
	holds  []heldUntil // by job
	delays []sizeDelays
	offer  Offer
	found  []finding // by GPUs
	passes int       // so far, in all episodes
	alone  []cluster.GPU
	empty  *cluster.Cluster // the cluster as if nothing ran
	least  []nearest        // by job
	best   []finding        // by GPUs: places on the empty cluster
	marked delayMemory
}

// askOrder is the order in which jobs are asked.
type askOrder uint8

const (
	networkSensitive askOrder = iota // the lowest mean rate first
	leastAttained                    // the least GPU-time first
)

// acceptRule says when a job accepts what it is offered.
type acceptRule uint8

const (
	byTimers acceptRule = iota // dally
	bySkew                     // tiresias-lease
	byRate                     // delay-las
)

// finding is where the last request for so many GPUs found a place, or that it found none.
type finding struct {
	req     cluster.Request
	pass    int
	version uint64 // of the plan
	ok      bool
	gpus    []cluster.GPU
}

// candidate is a job of a pass.
type candidate struct {
	queue.Entry // key is the priority
	last        int64
}

// heldUntil is the time until which the job at a position holds its GPUs.
type heldUntil struct {
	pos  int
	ends int64
}

type since struct {
	pos int
	at  int64
}

// nearest is the nearest tier that could ever hold a job.
type nearest struct {
	pos  int // of the job; −1 = not computed yet
	tier place.Tier
}

// sizeDelays are the delays of one gang size, before a node and before a rack.
type sizeDelays struct{ node, rack delays }

// delays are oldest first.
type delays struct {
	list  []delayTaken
	usual float64 // mean plus two standard deviations, 1 if list is empty
	known bool    // usual is that of list
}

type delayTaken struct {
	at     int64
	leases float64
}

// New returns the policy called name: dally, delay-las or tiresias-lease. l is valid.
func New(name string, l Leases) (*Delay, error) {
	d := &Delay{name: name, cfg: l}
	switch name {
	case "delay-las":
		d.order, d.rule = leastAttained, byRate
	case "tiresias-lease":
		d.order, d.rule = leastAttained, bySkew
	default:
		if l.Ask == askLAS {
			d.order = leastAttained
		}
	}
	if d.cfg.Lease == 0 {
		d.cfg.Lease = time.Hour
	}
	var err error
	d.rack, err = cluster.NewPlacement("rack")
	return d, err
}

// Name implements Policy.
func (d *Delay) Name() string { return d.name }

// Reseed does nothing: the policy draws no random numbers.
func (d *Delay) Reseed(uint64) {}

// Reset implements sim.Scheduler.
func (d *Delay) Reset(v *sim.View) {
	same := d.plan.Of == v.Cluster()
	d.plan.Reset(v)
	d.opened, d.pass = false, false
	d.last, d.holds, d.delays = d.last[:0], d.holds[:0], d.delays[:0]
	d.empty = place.CopyOf(v.Cluster(), d.empty, same)
	d.empty.Reset()
	d.least = d.least[:0]
	if !same {
		d.best = d.best[:0]
	}
	for _, j := range v.Waiting() {
		d.waits(v, j, int64(v.Now()))
	}
	for _, j := range v.Running() {
		d.waits(v, j, int64(v.Now()))
		d.lease(v, j)
	}
}

// waits notes that j has waited since at.
func (d *Delay) waits(v *sim.View, j sim.Job, at int64) {
	*grow.Or(&d.last, j, since{pos: -1}) = since{v.Pos(j), at}
}

// lease returns the lease of j, which runs.
func (d *Delay) lease(v *sim.View, j sim.Job) *heldUntil {
	l := grow.Or(&d.holds, j, heldUntil{pos: -1})
	if l.pos != v.Pos(j) || l.ends <= int64(v.Started(j)) {
		*l = heldUntil{v.Pos(j), d.ends(v.Started(j))}
	}
	return l
}

// ends returns when a lease that begins at from ends.
func (d *Delay) ends(from time.Duration) int64 {
	if d.cfg.Together {
		from = from.Truncate(d.cfg.Lease)
	}
	return int64(sim.After(from, d.cfg.Lease))
}

// Decide implements sim.Scheduler.
func (d *Delay) Decide(v *sim.View, p *sim.Point, dec *sim.Decision) error {
	d.Open(v, p)
	for o := d.Next(v); o != nil; o = d.Next(v) {
		d.Answer(v, d.Timely(v, o))
	}
	if d.plan.Step(v, dec) {
		return nil
	}
	d.opened = false
	dec.Op, dec.Until = sim.Wait, 0
	if d.plan.Pending() {
		dec.Until = v.Now() + 1
	} else if t := d.until(v); t > int64(v.Now()) {
		dec.Until = time.Duration(t)
	}
	return nil
}

// Open begins a point. A second call at the same point does nothing.
func (d *Delay) Open(v *sim.View, p *sim.Point) {
	if d.opened {
		return
	}
	d.opened = true
	d.Note(v, p)
	if d.plan.Resume(v) {
		return
	}
	now := int64(v.Now())
	d.plan.Begin(v, func(j sim.Job) bool { return d.lease(v, j).ends <= now })
	d.line = d.line[:0]
	least := math.MaxInt // thousandths that a job of the line wants
	for _, j := range v.Waiting() {
		d.line = append(d.line, candidate{queue.Entry{Key: d.key(v, j), Pos: v.Pos(j), Job: j}, d.last[j].at})
		least = min(least, queue.Milli(v, j))
	}
	for _, j := range d.plan.Loose {
		d.line = append(d.line, candidate{queue.Entry{Key: d.key(v, j), Pos: v.Pos(j), Job: j}, now})
		least = min(least, queue.Milli(v, j))
	}
	d.passes++
	if d.pass, d.at = true, 0; least > d.plan.On.FreeMilli() {
		d.line = d.line[:0] // there is nothing to offer
		return
	}
	slices.SortFunc(d.line, func(a, b candidate) int {
		if a.Key == b.Key && a.last != b.last {
			return cmp.Compare(a.last, b.last)
		}
		return a.Compare(&b.Entry)
	})
}

// key returns the priority of j, lowest first.
func (d *Delay) key(v *sim.View, j sim.Job) float64 {
	if d.order == leastAttained {
		return v.GPUTime(j)
	}
	return Sensitivity(v, j)
}

// Sensitivity returns Dally's measure of how little the network lets a job progress: the share of its work that is
// done, over its time on GPUs as a share of its run time alone. It is 0 for a job that has not run.
func Sensitivity(v *sim.View, j sim.Job) float64 {
	ran := float64(v.Ran(j))
	if ran <= 0 {
		return 0
	}
	return (float64(v.Trace(j).Work) - v.Left(j)) / ran
}

// Next returns the next offer that the job may decline, nil when the pass is over. Offers of a node are accepted on
// the way.
func (d *Delay) Next(v *sim.View) *Offer {
	if !d.pass {
		return nil
	}
	for ; d.at < len(d.line); d.at++ {
		j := d.line[d.at].Job
		r := v.Request(j)
		if r.GPUs*r.Milli > d.plan.On.FreeMilli() {
			continue
		}
		found, ok := d.find(r)
		if !ok {
			continue
		}
		d.offer = Offer{
			Job: j, Tier: d.tier(found), GPUs: found, Waited: time.Duration(int64(v.Now()) - d.line[d.at].last),
			Place: d.at, Behind: len(d.line) - d.at - 1,
		}
		if d.plan.Movable(j) {
			// Do not move it if that gains nothing.
			if own := d.tier(v.GPUs(j)); d.stays(v, j, own) && place.Take(d.plan.On, r, v.GPUs(j)) {
				d.plan.On.Release(r, v.GPUs(j))
				d.offer.Tier, d.offer.GPUs = own, v.GPUs(j)
			}
		}
		if d.offer.Tier > place.InNode {
			return &d.offer
		}
		d.accept(v)
	}
	d.pass = false
	d.plan.CarryOut(v)
	return nil
}

// find returns where r has a place in the plan. Many jobs with the same request decline the same offer at one point.
func (d *Delay) find(r *cluster.Request) ([]cluster.GPU, bool) {
	f := slot(&d.found, r)
	if version := d.plan.On.Version(); f.pass != d.passes || f.version != version || f.req != *r {
		f.pass, f.version, f.req = d.passes, version, *r
		f.gpus, f.ok = d.rack.Place(d.plan.On, r, f.gpus)
	}
	return f.gpus, f.ok
}

// slot returns the place of r's number of GPUs in list. All numbers from 4096 on share one.
func slot(list *[]finding, r *cluster.Request) *finding {
	return grow.At(list, min(r.GPUs, 1<<12))
}

// Answer accepts (take) or declines the offer that Next returned last. A job that declines is not asked again at this
// point.
func (d *Delay) Answer(v *sim.View, take bool) {
	if take {
		d.accept(v)
	}
	d.at++
}

// accept seats the job of the offer.
func (d *Delay) accept(v *sim.View) {
	o := &d.offer
	d.plan.PutOn(v, o.Job, o.GPUs)
	now := int64(v.Now())
	*grow.Or(&d.holds, o.Job, heldUntil{pos: -1}) = heldUntil{v.Pos(o.Job), d.ends(v.Now())}
	if d.rule == byTimers {
		d.delayed(v.Request(o.Job).GPUs, o.Tier, now, float64(o.Waited)/float64(d.cfg.Lease))
	}
}

func (d *Delay) history(n int) *sizeDelays {
	return grow.At(&d.delays, n)
}

// tier returns how far gpus are spread.
func (d *Delay) tier(gpus []cluster.GPU) place.Tier { return place.Spread(d.plan.Of, gpus) }

// Timers returns for how many leases a gang of n declines a rack, and for how many it declines the network.
func (d *Delay) Timers(v *sim.View, n int) (rack, network float64) {
	if !d.cfg.Auto {
		return d.Fixed(v, n)
	}
	return d.Tuned(v, n)
}

// Fixed returns the configured timers, the same for every gang.
func (d *Delay) Fixed(*sim.View, int) (rack, network float64) {
	return d.cfg.RackWait, d.cfg.NetworkWait
}

// Tuned returns the timers that the tuner sets for a gang of n after the delays of the history.
func (d *Delay) Tuned(v *sim.View, n int) (rack, network float64) {
	h, s := float64(d.cfg.History), d.history(n)
	oldest := d.oldest(v)
	s.node.forget(oldest)
	s.rack.forget(oldest)
	return min(math.Ceil(.8*h), max(6, math.Ceil(s.node.usualDelay()))), min(h, max(12, math.Ceil(s.rack.usualDelay())))
}

// Delays returns mean and standard deviation, in leases, of the delays of a lease or more after which gangs of n took
// a node, within the history; 0 if there are none.
func (d *Delay) Delays(v *sim.View, n int) (mean, deviation float64) {
	s := d.history(n)
	s.node.forget(d.oldest(v))
	return moments(s.node.list)
}

// oldest returns the time from which on delays count. A history that is longer than the clock's range counts them all.
func (d *Delay) oldest(v *sim.View) int64 {
	if float64(d.cfg.History)*float64(d.cfg.Lease) > math.MaxInt64/2 {
		return 0
	}
	return int64(v.Now()) - int64(d.cfg.History)*int64(d.cfg.Lease)
}

func (d *delays) add(x delayTaken) {
	d.list = append(d.list, x)
	d.known = false
}

// forget drops delays older than oldest.
func (d *delays) forget(oldest int64) {
	k := 0
	for k < len(d.list) && d.list[k].at < oldest {
		k++
	}
	if k > 0 {
		d.list = slices.Delete(d.list, 0, k)
		d.known = false
	}
}

func moments(list []delayTaken) (mean, deviation float64) {
	if len(list) == 0 {
		return 0, 0
	}
	n := float64(len(list))
	for _, x := range list {
		mean += x.leases / n
	}
	for _, x := range list {
		deviation += (x.leases - mean) * (x.leases - mean) / n
	}
	return mean, math.Sqrt(deviation)
}

// usualDelay returns the mean plus two standard deviations, 1 if there are no delays. It is asked far more often than
// delays come or go.
func (d *delays) usualDelay() float64 {
	if !d.known {
		d.known, d.usual = true, 1
		if len(d.list) > 0 {
			mean, deviation := moments(d.list)
			d.usual = mean + 2*deviation
		}
	}
	return d.usual
}

// Timely returns the policy's own answer to o.
func (d *Delay) Timely(v *sim.View, o *Offer) bool { return d.TimelyBy(v, o, d.Timers) }

// TimelyBy returns the answer to o that the policy would give if its timers were those that timers returns, in leases,
// for a gang of n. The timers that wake the policy stay its own.
func (d *Delay) TimelyBy(v *sim.View, o *Offer, timers func(v *sim.View, n int) (rack, network float64)) bool {
	if d.idle(v) && (d.rule != byTimers || d.until(v) == 0) {
		return true
	}
	switch d.rule {
	case bySkew:
		p := v.Trace(o.Job).Profile
		return p == nil || !p.Skewed || o.Tier <= d.nearest(v, o.Job)
	case byRate:
		return d.fast(v, o)
	}
	if o.Tier <= d.nearest(v, o.Job) {
		return true
	}
	n := v.Request(o.Job).GPUs
	waited := float64(o.Waited) / float64(d.cfg.Lease)
	if o.Tier == place.InRack {
		rack, _ := timers(v, n)
		return waited >= rack
	}
	_, network := timers(v, n)
	return waited >= network
}

// nearest returns the nearest tier that could hold j if nothing else ran.
func (d *Delay) nearest(v *sim.View, j sim.Job) place.Tier {
	l := grow.Or(&d.least, j, nearest{pos: -1})
	if l.pos != v.Pos(j) {
		*l = nearest{v.Pos(j), place.AcrossRacks}
		var ok bool
		if d.alone, ok = d.rack.Place(d.empty, v.Request(j), d.alone); ok {
			l.tier = d.tier(d.alone)
		}
	}
	return l.tier
}

// Forced reports that an offer must not be declined because nothing would ever happen: no job runs or has been
// accepted at this point, none will arrive, and no timer will run out.
func (d *Delay) Forced(v *sim.View) bool {
	return d.idle(v) && !v.Arriving() && d.until(v) == 0
}

// idle reports that no job runs or has been accepted at this point. Then waiting brings no nearer place, unless a
// node is down.
func (d *Delay) idle(v *sim.View) bool {
	return len(v.Running()) == len(d.plan.Loose) && len(d.plan.Placed) == 0
}

// until returns the next time at which a lease or a timer runs out, 0 = none.
func (d *Delay) until(v *sim.View) (at int64) {
	now := int64(v.Now())
	soonest := func(t int64) {
		if t > now && t < math.MaxInt64 && (at == 0 || t < at) {
			at = t
		}
	}
	for _, j := range v.Running() {
		if v.Request(j).GPUs > 0 {
			soonest(d.lease(v, j).ends)
		}
	}
	if d.rule != byTimers {
		return at
	}
	for _, j := range v.Waiting() {
		if !v.Fits(j) {
			continue
		}
		rack, network := d.Timers(v, v.Request(j).GPUs)
		for _, leases := range [2]float64{rack, network} {
			if t := math.Ceil(leases * float64(d.cfg.Lease)); t < math.MaxInt64/4 {
				soonest(int64(sim.After(time.Duration(d.last[j].at), time.Duration(t))))
			}
		}
	}
	return at
}
