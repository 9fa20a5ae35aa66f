package schedulers_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// promise checks each decision, before it is applied, against what order, admission and back-filling promise. Of
// policies that are not orders it knows only whether they stop jobs.
type promise struct {
	x       *world
	order   bool // the policy is an order
	stops   bool
	way     how
	keys    schedulers.Policy
	place   func(v *sim.View, j sim.Job, c *cluster.Cluster) ([]cluster.GPU, bool) // nil = every job that fits is placed
	est     sim.Estimates
	ends    bool // no job outlives its expected run time
	stopped map[int]bool
	held    map[int32]int         // commit: by virtual cluster, the position of the job that is held
	bound   map[int32]deadline    // easy, commit: the latest start of the first in line, or of the held job
	due     map[int]time.Duration // conservative: by position, the first reservation
	seen    map[string]int        // how often each promise was checked
}

// deadline is the latest start of a job.
type deadline struct {
	pos int
	at  time.Duration
}

func newPromise(x *world, seen map[string]int) *promise {
	c := &x.policy
	p := &promise{x: x, order: schedulers.IsOrder(c.Order),
		way:  how{c.Admission, c.Backfill},
		held: map[int32]int{}, bound: map[int32]deadline{}, due: map[int]time.Duration{}, stopped: map[int]bool{}, seen: seen}
	p.est = c.Estimates
	p.est.Seed = c.Seed
	p.place = schedulers.Refusing(*c)
	if p.stops = schedulers.Preemptive(c.Order); !p.stops && schedulers.Remembers(c.Order) {
		p.order = false // its keys follow from what has ended
	}
	if p.order {
		p.keys, _ = schedulers.New(*c)
	}
	p.ends = x.steadily()
	for i := range x.jobs {
		p.ends = p.ends && p.est.OfJob(&x.jobs[i]) >= x.jobs[i].Work
	}
	return p
}

// see begins a point.
func (p *promise) see() { clear(p.stopped) }

func (p *promise) key(v *sim.View, j sim.Job) float64 { return schedulers.KeyOf(p.keys, v, j) }

// lines returns the waiting jobs by virtual cluster, in rank order. A key that is no number is an error.
func (p *promise) lines(v *sim.View) (map[int32][]sim.Job, error) {
	keys := map[sim.Job]float64{}
	all := map[int32][]sim.Job{}
	for _, j := range v.Waiting() {
		if keys[j] = p.key(v, j); math.IsNaN(keys[j]) {
			return nil, fmt.Errorf("the rank of %s is no number", v.Trace(j).ID)
		}
		vc := v.Request(j).VC
		all[vc] = append(all[vc], j)
	}
	for _, line := range all {
		slices.SortFunc(line, func(a, b sim.Job) int { return cmp.Or(cmp.Compare(keys[a], keys[b]), v.Pos(a)-v.Pos(b)) })
	}
	return all, nil
}

// fits reports whether the placement has a place for j on c.
func (p *promise) fits(v *sim.View, j sim.Job, c *cluster.Cluster) bool {
	if p.place == nil {
		return c.Fits(v.Request(j))
	}
	_, ok := p.place(v, j, c)
	return ok
}

// hold returns an error if d breaks a promise.
func (p *promise) hold(v *sim.View, d *sim.Decision) error {
	switch {
	case d.Op == sim.DropJob:
		return fmt.Errorf("job %d is dropped", d.Job)
	case !p.stops && d.Op != sim.Wait && d.Op != sim.StartJob:
		return fmt.Errorf("%s is not preemptive, and decides %+v", p.x.policy.Name(), *d)
	case !p.order || schedulers.PassesOver(p.x.policy.Order): // orders that pass over jobs have their own test
		return nil
	case p.stops:
		return p.holdPreemptive(v, d)
	}
	lines, err := p.lines(v)
	switch {
	case err != nil:
	case p.way.admission == "skip":
		err = p.holdSkip(v, d, lines)
	case p.way.admission == "commit":
		err = p.holdCommit(v, d, lines)
	case p.way.backfill == "none":
		err = p.holdStrict(v, d, lines)
	case p.way.backfill == "easy":
		err = p.holdEasy(v, d, lines)
	default:
		err = p.holdConservative(v, d, lines)
	}
	return err
}

// Strict: within a virtual cluster jobs start in rank order, and the first waiting job does not fit.
func (p *promise) holdStrict(v *sim.View, d *sim.Decision, lines map[int32][]sim.Job) error {
	if d.Op == sim.StartJob {
		if first := lines[v.Request(d.Job).VC][0]; first != d.Job {
			return fmt.Errorf("%s starts before %s, which ranks higher", v.Trace(d.Job).ID, v.Trace(first).ID)
		}
		return nil
	}
	for _, line := range lines {
		if p.fits(v, line[0], v.Cluster()) {
			return fmt.Errorf("%s is first and fits, and waits", v.Trace(line[0]).ID)
		}
	}
	return nil
}

// Skip: the first in rank of the jobs that fit starts, and no waiting job fits.
func (p *promise) holdSkip(v *sim.View, d *sim.Decision, lines map[int32][]sim.Job) error {
	for vc, line := range lines {
		if d.Op == sim.StartJob && vc != v.Request(d.Job).VC {
			continue
		}
		for _, j := range line {
			if d.Op == sim.StartJob && j == d.Job {
				break
			}
			if p.fits(v, j, v.Cluster()) {
				return fmt.Errorf("%s fits and waits, decided is %v %d", v.Trace(j).ID, d.Op, d.Job)
			}
		}
	}
	return nil
}

// Commit: while the chosen job does not fit, only back-filled jobs start. It starts by its shadow time if no job
// outlives its expected run time.
func (p *promise) holdCommit(v *sim.View, d *sim.Decision, lines map[int32][]sim.Job) error {
	if len(p.x.spec.VCs) > 1 && slices.Contains([]string{"drf", "packer", "tetris"}, p.x.policy.Order) {
		return nil // which job is chosen depends on when other lines start theirs
	}
	for vc, line := range lines {
		if d.Op == sim.StartJob && vc != v.Request(d.Job).VC {
			continue
		}
		first := line[0]
		if pos, ok := p.held[vc]; ok {
			first = line[slices.IndexFunc(line, func(j sim.Job) bool { return v.Pos(j) == pos })]
		}
		switch {
		case d.Op == sim.StartJob && first == d.Job:
			delete(p.held, vc)
			delete(p.bound, vc)
			continue
		case p.fits(v, first, v.Cluster()):
			return fmt.Errorf("%s is chosen and fits, decided is %v %d", v.Trace(first).ID, d.Op, d.Job)
		case d.Op == sim.StartJob && p.way.backfill == "none":
			return fmt.Errorf("%s starts while %s is held", v.Trace(d.Job).ID, v.Trace(first).ID)
		}
		p.held[vc] = v.Pos(first)
		p.seen["held"]++
		if d.Op == sim.Wait {
			if err := p.promised(v, vc, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// EASY: the first in line starts by its shadow time if no job outlives its expected run time, as long as it is first.
func (p *promise) holdEasy(v *sim.View, d *sim.Decision, lines map[int32][]sim.Job) error {
	for vc, line := range lines {
		if b, ok := p.bound[vc]; ok && b.pos != v.Pos(line[0]) {
			delete(p.bound, vc)
		}
		if d.Op == sim.StartJob && (vc != v.Request(d.Job).VC || line[0] == d.Job) {
			continue
		}
		// it may wait for what is reserved for the first of another line
		if p.fits(v, line[0], v.Cluster()) && !p.sharesNodes() {
			return fmt.Errorf("%s is first and fits, decided is %v %d", v.Trace(line[0]).ID, d.Op, d.Job)
		}
		if d.Op == sim.Wait {
			if err := p.promised(v, vc, line[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// promised notes the latest start of j, which is first in line, and returns an error if j is late.
func (p *promise) promised(v *sim.View, vc int32, j sim.Job) error {
	if !p.ends || p.sharesNodes() {
		return nil
	}
	b, ok := p.bound[vc]
	if !ok {
		b = deadline{v.Pos(j), p.shadow(v, j)}
		p.bound[vc] = b
		p.seen["shadow"]++
	}
	if p.late(v, b.at) {
		return fmt.Errorf("%s has not started by its shadow time %v", v.Trace(j).ID, b.at)
	}
	return nil
}

// late reports whether, at the end of this point, a job that was to start by at is late. With serial points, jobs
// that end at that time may still run.
func (p *promise) late(v *sim.View, at time.Duration) bool {
	return v.Now() > at || v.Now() == at && !p.x.cfg.Serial
}

// sharesNodes reports whether jobs of one virtual cluster can take what another counts on.
func (p *promise) sharesNodes() bool {
	n := 0
	for _, v := range p.x.spec.VCs {
		if v.Nodes == 0 {
			n++
		}
	}
	return n > 1
}

// expected returns when j, which runs, is expected to end.
func (p *promise) expected(v *sim.View, j sim.Job) time.Duration {
	return max(v.Now(), v.Started(j)+p.est.Of(v, j))
}

// shadow returns when j fits if no other job starts and all end as expected.
func (p *promise) shadow(v *sim.View, j sim.Job) time.Duration {
	c := v.Cluster().Twin()
	c.CopyFrom(v.Cluster())
	run := slices.Clone(v.Running())
	slices.SortFunc(run, func(a, b sim.Job) int { return cmp.Compare(p.expected(v, a), p.expected(v, b)) })
	for i, k := range run {
		c.Release(v.Request(k), v.GPUs(k))
		if at := p.expected(v, k); (i+1 == len(run) || p.expected(v, run[i+1]) > at) && p.fits(v, j, c) {
			return at
		}
	}
	return math.MaxInt64
}

// Conservative: if new jobs never rank before waiting ones, counting is enough, and all jobs end as expected, no job
// starts after the first reservation it got.
func (p *promise) holdConservative(v *sim.View, d *sim.Decision, lines map[int32][]sim.Job) error {
	if d.Op != sim.Wait || p.place != nil || !p.x.counts() {
		return nil
	}
	if line := lines[0]; len(line) > 0 && p.fits(v, line[0], v.Cluster()) {
		return fmt.Errorf("%s is first and fits, and waits", v.Trace(line[0]).ID)
	}
	if !p.ends || p.est.Mode != sim.EstimateExact || p.x.policy.Order != "fifo" {
		return nil
	}
	if slices.ContainsFunc(p.x.jobs, func(j traces.Job) bool { return j.Work == 0 }) {
		return nil // it ends before its estimate, which is at least a nanosecond
	}
	plan := p.reservations(v, lines[0])
	for i, j := range lines[0] {
		at, ok := p.due[v.Pos(j)]
		if !ok {
			at = plan[i]
			p.due[v.Pos(j)] = at
			p.seen["reservation"]++
		}
		if p.late(v, at) {
			return fmt.Errorf("%s has not started by its first reservation %v", v.Trace(j).ID, at)
		}
	}
	return nil
}

// counts reports whether counting GPUs is enough to know which jobs fit.
func (x *world) counts() bool {
	for i := range x.jobs {
		j := &x.jobs[i]
		if x.spec.Pool == 0 && (j.GPUMilli != 1000 || j.GPUTypes != nil || j.CPUMilli > 0 || j.MemBytes > 0 ||
			j.Nodes > 0) {
			return false
		}
	}
	return len(x.spec.VCs) == 0
}

// taken is a number of thousandths taken for some time.
type taken struct {
	from, to time.Duration
	milli    int
}

// reservations returns the earliest times at which the jobs of line, one after the other, fit for their whole
// expected run time.
func (p *promise) reservations(v *sim.View, line []sim.Job) []time.Duration {
	var all []taken
	for _, j := range v.Running() {
		r := v.Request(j)
		all = append(all, taken{v.Now(), p.expected(v, j), r.GPUs * r.Milli})
	}
	used := func(at time.Duration) (sum int) {
		for _, k := range all {
			if k.from <= at && at < k.to {
				sum += k.milli
			}
		}
		return sum
	}
	var plan []time.Duration
	for _, j := range line {
		need, lasts := v.Request(j).GPUs*v.Request(j).Milli, p.est.Of(v, j)
		times := []time.Duration{v.Now()}
		for _, k := range all {
			times = append(times, k.to)
		}
		slices.Sort(times)
		for _, at := range times {
			ok := used(at)+need <= v.Cluster().GPUs()*1000
			for _, k := range all { // use grows only where a job begins
				ok = ok && (k.from <= at || k.from >= at+lasts || used(k.from)+need <= v.Cluster().GPUs()*1000)
			}
			if ok {
				plan = append(plan, at)
				all = append(all, taken{at, at + lasts, need})
				break
			}
		}
	}
	return plan
}

// Preemptive: under strict no job runs that ranks behind a waiting one of the same virtual cluster; under skip no
// waiting job fits. Both exclude jobs that were stopped at this point: their GPUs went to others, and they cannot get
// other GPUs at the same time.
func (p *promise) holdPreemptive(v *sim.View, d *sim.Decision) error {
	switch d.Op {
	case sim.PreemptJob:
		p.stopped[v.Pos(d.Job)] = true
		return nil
	case sim.StartJob:
		return nil
	case sim.Wait:
	default:
		return fmt.Errorf("an order decides %+v", *d)
	}
	if p.way.admission == "skip" {
		for _, j := range v.Waiting() {
			if p.place == nil && !p.stopped[v.Pos(j)] && v.Fits(j) {
				return fmt.Errorf("%s fits and waits", v.Trace(j).ID)
			}
		}
		return nil
	}
	if schedulers.Remembers(p.x.policy.Order) || p.x.cfg.Restart > 0 {
		return nil // ranks change as the pass ends
	}
	lines, err := p.lines(v)
	if err != nil {
		return err
	}
	for vc, line := range lines {
		if line = slices.DeleteFunc(line, func(j sim.Job) bool { return p.stopped[v.Pos(j)] }); len(line) == 0 {
			continue
		}
		for _, j := range v.Running() {
			a, b := p.key(v, line[0]), p.key(v, j)
			if v.Request(j).VC == vc && (a < b || a == b && v.Pos(line[0]) < v.Pos(j)) {
				return fmt.Errorf("%s waits and %s runs, which ranks behind it", v.Trace(line[0]).ID, v.Trace(j).ID)
			}
		}
	}
	return nil
}
