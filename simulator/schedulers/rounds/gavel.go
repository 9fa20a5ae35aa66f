package rounds

import (
	"cmp"
	"fmt"
	"slices"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// gavel is heterogeneity-aware fair sharing in rounds (Narayanan et al., "Heterogeneity-aware cluster scheduling
// policies for deep learning workloads", OSDI 2020). A program (gavel-las: gavelLAS, gavel-ftf: gavelFTF) determines
// the share X[job][type] of the time that each job should run on each GPU type. Rounds of six minutes realise these
// shares: in each round a gang runs on one type, and the greatest priority X/f goes first. f is the job's part of all
// the time that jobs have had on the type since the shares were last computed (every job begins with half a round of
// each type; section 5 and the authors' simulator). Ties go to the job that is owed more from before, then to the
// greater X, then to the earlier position in the trace. The remaining GPUs go to the other jobs in the order of the
// trace, the fastest type first.
//
// Shares are computed at the beginning of a round if a job has arrived or ended since they were last computed, but,
// as in the authors' simulator, no sooner than 16/3 rounds (1920 s) after that. Until then a new job gets what others
// leave. A round ends early when nothing runs any more. GPUs given back in the middle of a round stay free until its
// end.
//
// The programs are solved by decomposition (see fair), with Gonum's lp.Simplex for the linear programs in it.
//
// Deliberate differences: there is one queue of (job, type) for all types (an option in the original), not one type
// after the other. Jobs with equal speeds, sizes and weights are one row of the program. Of its optima, the one found
// by progressive filling is taken (see fair). Weight is the trace's Priority if that is above 0. The program does not
// know of quotas; the rounds keep them.
type gavel struct {
	*rounds
	ftf    bool
	length int64
	ends   int64 // of the round
	since  int64 // when the shares were computed, −1 = never
	stale  bool  // jobs have come or gone
	types  int
	first  int              // the type of the first node; the time of gangs of mixed types counts as had of it
	sample []cluster.GPU    // one of each type
	idle   *cluster.Cluster // the cluster as if nothing ran
	like   *cluster.Cluster // the cluster that idle copies
	fair   fair

	mark []gavelJob
	rows [3][]float64 // [what][job·types + type]: see below
	time []float64    // nanoseconds that jobs have had of each type since then

	members
	row    []int // by place in list: row of the program
	index  map[gavelKind]int
	order  []place.Ask
	ranked []gavelAsk
	kind   []int     // scratch: types in order of speed, the fastest first
	speed  []float64 // and their speeds
}

// Rows of what gavel keeps for each job and type: its share, the time it has had since shares were computed, and the
// time that it is owed from before.
const (
	rowShare = iota
	rowGot
	rowOwed
)

// gavelJob is what gavel keeps for each job.
type gavelJob struct {
	pos   int
	seen  int64 // its run time when last accounted for
	known bool  // it has shares
	wide  bool  // no type has enough GPUs for it
	// For finish-time fairness: time in isolation so far, and the throughput in isolation and the remaining time when
	// shares were last computed.
	isolated, rate, left float64
}

// gavelKind is what makes jobs equal in the program.
type gavelKind struct {
	profile *traces.Profile
	milli   int
	each    int
	types   uint64
	weight  float64
}

type gavelAsk struct {
	place.Ask
	pos                   int
	priority, owed, share float64
}

// maxShares bounds the program: its size is the number of jobs, or of kinds of jobs, times types.
const maxShares = 1 << 16

func newGavel(r *rounds, length int64) *gavel {
	return &gavel{rounds: r, ftf: r.name == "gavel-ftf", length: length, index: map[gavelKind]int{}}
}

// Solved returns how many programs were solved in this run, and for how many of their levels no proof of optimality
// was found because the linear solver failed or did not terminate. Such shares respect all limits, but some job might
// have had more.
func (g *gavel) Solved() (programs, unproved int) { return g.fair.solved, g.fair.unproved }

func (g *gavel) reset(v *sim.View) {
	c := v.Cluster()
	g.ends, g.since, g.stale, g.types = 0, -1, false, place.Types(c)
	g.mark, g.time = g.mark[:0], append(g.time[:0], make([]float64, g.types)...)
	for i := range g.rows {
		g.rows[i] = g.rows[i][:0]
	}
	g.fair.reset()
	g.members.reset()
	g.sample = append(g.sample[:0], make([]cluster.GPU, g.types)...)
	g.idle, g.like = place.CopyOf(c, g.idle, g.like == c), c
	g.idle.Reset()
	g.first = 0
	for n := c.Nodes() - 1; n >= 0 && !c.Pool(); n-- {
		if c.Has(n) {
			g.first = c.TypeOf(n)
		}
		if from, to := c.NodeGPUs(n); from < to {
			g.sample[c.TypeOf(n)] = from
		}
	}
}

func (g *gavel) event(v *sim.View, e *sim.Event) {
	switch e.Kind {
	case sim.Submit:
		g.stale = true
		for int(e.Job) >= len(g.mark) {
			g.mark = append(g.mark, gavelJob{})
			for i := range g.rows {
				g.rows[i] = append(g.rows[i], make([]float64, g.types)...)
			}
		}
		g.mark[e.Job] = gavelJob{pos: v.Pos(e.Job), seen: int64(v.Ran(e.Job))}
		for i := range g.rows {
			clear(g.of(i, e.Job))
		}
	case sim.Finish, sim.Drop:
		g.stale = true
		g.account(v, e.Job)
	}
}

// of returns row what of j, by type.
func (g *gavel) of(what int, j sim.Job) []float64 {
	return g.rows[what][int(j)*g.types : (int(j)+1)*g.types]
}

// account adds the time that j has had since the last call.
func (g *gavel) account(v *sim.View, j sim.Job) {
	m := &g.mark[j]
	d := float64(int64(v.Ran(j)) - m.seen)
	m.seen = int64(v.Ran(j))
	if d > 0 {
		t := place.TypeOf(v, j)
		if t == place.MixedTypes {
			t = g.first
		}
		g.of(rowGot, j)[t] += d
		g.time[t] += d
	}
}

func (g *gavel) until(v *sim.View) int64 {
	if busy(v, sim.Running) {
		return g.ends
	}
	return 0
}

func (g *gavel) decide(v *sim.View) error {
	runs := busy(v, sim.Running)
	if int64(v.Now()) < g.ends && runs {
		return nil
	}
	g.members.update(v)
	if len(g.list) == 0 {
		return nil
	}
	g.ends = int64(v.Now()) + g.length
	for _, e := range g.list {
		g.account(v, e.Job)
	}
	if g.stale && (g.since < 0 || !runs || int64(v.Now())-g.since >= g.length*16/3) {
		if err := g.work(v); err != nil {
			return err
		}
	}
	g.rank(v)
	g.Begin(v, func(sim.Job) bool { return true })
	g.PutAll(v, g.order)
	return nil
}

// speeds writes j's throughput on each type relative to the reference GPU: 0 for types on which it may not run or
// which have too few GPUs.
func (g *gavel) speeds(v *sim.View, j sim.Job, dst []float64) {
	c, r, p := v.Cluster(), v.Request(j), v.Trace(j).Profile
	for t := range dst {
		dst[t] = 0
		if !place.Takes(r, t) || !g.holds(r, t) {
			continue
		}
		dst[t] = 1
		if c.Pool() {
			continue
		}
		if dst[t] = c.Speed(g.sample[t : t+1]); p != nil && p.Speeds[c.Types()[t]] > 0 {
			dst[t] = p.Speeds[c.Types()[t]]
		}
	}
}

// holds reports whether the working GPUs of type t could hold r's gang by themselves.
func (g *gavel) holds(r *cluster.Request, t int) bool {
	switch {
	case g.idle.Pool():
		return g.fair.room[0]*1000 >= float64(r.GPUs*r.Milli)
	case g.fair.room[t] < float64(r.GPUs):
		return false
	case r.VC == 0 && r.CPUMilli == 0 && r.MemBytes == 0 && r.Each == 0:
		return true
	}
	k := *r
	if g.types > 1 {
		k.Types = 1 << t
	}
	return g.idle.Fits(&k)
}

// work computes the shares.
func (g *gavel) work(v *sim.View) error {
	f, c := &g.fair, v.Cluster()
	g.settleAccounts(v)
	f.types = g.types
	f.room = append(f.room[:0], make([]float64, g.types)...)
	if c.Pool() {
		f.room[0] = float64(c.GPUs())
	}
	for n := range c.Nodes() {
		if c.Pool() {
			break
		}
		if err := g.idle.SetDown(n, c.Down(n)); err != nil {
			panic(fmt.Sprintf("rounds: node %d of an idle cluster: %v", n, err))
		}
		if !c.Down(n) {
			from, to := c.NodeGPUs(n)
			f.room[c.TypeOf(n)] += float64(to - from)
		}
	}
	if c.GPUs() == c.DownGPUs() {
		return nil // every GPU is down
	}
	f.copies, f.size, f.speed, g.row = f.copies[:0], f.size[:0], f.speed[:0], g.row[:0]
	clear(g.index)
	for _, e := range g.list {
		r := v.Request(e.Job)
		kind := gavelKind{v.Trace(e.Job).Profile, r.GPUs * r.Milli, r.Each, r.Types, weight(v.Trace(e.Job))}
		i, ok := g.index[kind]
		if g.ftf || !ok {
			i = len(f.size)
			g.index[kind] = i
			f.copies, f.size = append(f.copies, 0), append(f.size, float64(kind.milli)/1000)
			f.speed = append(f.speed, make([]float64, g.types)...)
			g.speeds(v, e.Job, f.speed[i*g.types:])
			if f.fastest(i) == 0 {
				f.copies, f.size, f.speed, i = f.copies[:i], f.size[:i], f.speed[:i*g.types], -1 // no type has enough GPUs
				delete(g.index, kind)
			}
		}
		if i >= 0 {
			f.copies[i]++
		}
		g.row = append(g.row, i)
	}
	if n := len(f.size) * g.types; n > maxShares {
		return fault.Errorf(
			"%s: %d jobs of different kinds on %d GPU types at %v make a program of %d shares, more than the %d that are "+
				"solved; "+
				"fewer jobs at a time (%s, a lower load) or another policy", g.Name(), len(f.size), g.types, v.Now(), n, maxShares,
			fault.Key("jobs"))
	}
	if len(f.size) > 0 {
		if g.ftf {
			d := g.finishTimes(v)
			f.solve(d, d.low())
		} else {
			d := g.attained(v)
			f.solve(d, d.low())
		}
	}
	for i, e := range g.list {
		x := g.of(rowShare, e.Job)
		clear(x)
		if k := g.row[i]; k >= 0 {
			copy(x, f.x[k*g.types:(k+1)*g.types])
		}
		g.mark[e.Job].known, g.mark[e.Job].wide = g.row[i] >= 0, g.row[i] < 0
	}
	g.stale = false
	return nil
}

// settleAccounts adds what is owed from the previous shares and restarts the count.
func (g *gavel) settleAccounts(v *sim.View) {
	passed := float64(int64(v.Now()) - max(0, g.since))
	clear(g.time)
	for _, e := range g.list {
		x, had, due := g.of(rowShare, e.Job), g.of(rowGot, e.Job), g.of(rowOwed, e.Job)
		for t := range x {
			if g.mark[e.Job].known {
				due[t] += x[t]*passed - had[t]
			}
			had[t] = 0
		}
	}
	g.since = int64(v.Now())
}

// rank sorts the asks by priority.
func (g *gavel) rank(v *sim.View) {
	half := float64(g.length) / 2
	g.ranked, g.order = g.ranked[:0], g.order[:0]
	for _, e := range g.list {
		x, had, due := g.of(rowShare, e.Job), g.of(rowGot, e.Job), g.of(rowOwed, e.Job)
		if g.mark[e.Job].wide {
			x, part := 1/float64(len(g.list)), (sum(had)+half)/(sum(g.time)+half*float64(len(g.list)))
			g.ranked = append(g.ranked, gavelAsk{place.Gang(v, e.Job), e.Pos, x / part, 0, x})
			continue
		}
		for t := range x {
			if x[t] <= 0 {
				continue
			}
			part := (had[t] + half) / (g.time[t] + half*float64(len(g.list)))
			g.ranked = append(g.ranked,
				gavelAsk{place.Ask{Job: e.Job, Type: t, N: v.Asked(e.Job)}, e.Pos, x[t] / part, due[t], x[t]})
		}
	}
	slices.SortFunc(g.ranked, func(a, b gavelAsk) int {
		return cmp.Or(-cmp.Compare(a.priority, b.priority), -cmp.Compare(a.owed, b.owed), -cmp.Compare(a.share, b.share),
			a.pos-b.pos, a.Type-b.Type)
	})
	for _, a := range g.ranked {
		g.order = append(g.order, a.Ask)
	}
	if g.types == 1 {
		for _, e := range g.list {
			g.order = append(g.order, place.Ask{Job: e.Job, Type: 0, N: v.Asked(e.Job)})
		}
		return
	}
	if len(g.kind) != g.types {
		g.kind, g.speed = make([]int, g.types), make([]float64, g.types)
	}
	speed, kind := g.speed, g.kind
	for _, e := range g.list {
		g.speeds(v, e.Job, speed)
		for t := range kind {
			kind[t] = t
		}
		slices.SortStableFunc(kind, func(a, b int) int { return -cmp.Compare(speed[a], speed[b]) })
		for _, t := range kind {
			if speed[t] > 0 {
				g.order = append(g.order, place.Ask{Job: e.Job, Type: t, N: v.Asked(e.Job)})
			}
		}
		if speed[kind[0]] == 0 {
			g.order = append(g.order, place.Gang(v, e.Job))
		}
	}
}

func sum(list []float64) (s float64) {
	for _, x := range list {
		s += x
	}
	return s
}

func weight(j *traces.Job) float64 { return float64(max(1, j.Priority)) }
