package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// Fact is something that has happened in a cluster that another scheduler runs. Kind says what, in the words of events;
// Timer says only that the time is At.
type Fact struct {
	At   time.Duration
	Kind EventKind
	ID   string      // of the job; empty for Timer, NodeFail and NodeRecover, and for Submit, whose Job has it
	Job  *traces.Job // of Submit: it is copied, and its lists must not change; it may have been submitted before At
	// GPUs are the gang's placement of Start, Migrate and Resize, empty on counters. Of Preempt, Finish and Fail they may
	// be left out; else they are those that the job holds, in any order.
	GPUs []cluster.GPU
	N    int // of Start and Resize on a counter: GPUs of an elastic gang, 0 = as asked for
	Node int // of NodeFail and NodeRecover
}

// Following says what a simulator that follows facts is to know beside them.
type Following struct {
	// Origin is what the clock of the predictor's archive shows when that of the facts shows 0.
	Origin time.Duration
	// Works says that the jobs' Work is their run time, as in a recorded run. Otherwise it is ignored, and the remaining
	// work of a job is what Estimates say of a job of its age.
	Works bool
	// Estimates are those of the policies. Without Works they must not need run times.
	Estimates Estimates
}

var (
	// ErrFact is returned for a fact that cannot be, as far as the simulator knows; it changes nothing.
	ErrFact = errors.New("sim: a fact that cannot be")
	// ErrFollows is returned for what a simulator that follows facts does not do.
	ErrFollows = errors.New("sim: a simulator that follows facts decides only in imagination")
)

// follow is what a simulator has that follows facts.
type follow struct {
	Following
	more    bool           // jobs may still arrive
	ids     map[string]Job // of the jobs in the system; refusedJob for those that can never fit
	d       Decision       // scratch
	drains  []drain        // nodes that are down for starts, while jobs run on them
	blocked int            // thousandths of GPUs that drains hold

	asked Point      // what a scheduler is shown that is asked
	kept  *Simulator // the state to which Forget returns
}

// refusedJob stands for a job that can never fit the cluster.
const refusedJob = Job(-1)

// expectedWork is the run time that counts as expected of a job without any estimate; it doubles when the job outlives
// it.
const expectedWork = time.Hour

// Follow begins to follow facts, on an empty cluster with all nodes up at time 0. From then on Tell and Look take the
// place of Advance, and Imagine and Forget enclose decisions. A cluster in the middle of its life is told from its jobs
// in the order in which they were submitted and started (Present.Facts): what came before, and has ended, need not be
// known.
//
// Reset ends it.
func (s *Simulator) Follow(f Following) error {
	if s.role == forks {
		return errFork
	}
	if !f.Works && f.Estimates.Rung() >= RungNoisy {
		return fmt.Errorf(
			"sim: estimates %v need run times, which a cluster does not tell of jobs that have not ended; want history, gbdt, "+
				"trace or none", f.Estimates)
	}
	if f.Estimates.Causal() && !s.forecasts.told {
		return fmt.Errorf("sim: estimates %v come from a predictor, and this simulator has none", f.Estimates)
	}
	if err := s.Reset(dated0{f.Origin}); err != nil {
		return err
	}
	w := &s.follow
	w.Following, w.more, s.role = f, true, follows
	w.drains, w.blocked = w.drains[:0], 0
	if w.ids == nil {
		w.ids = map[string]Job{}
	}
	clear(w.ids)
	for i := range s.nodes.pending { // nodes fail when facts say so
		s.nodes.pending[i].at = maxTime
	}
	s.nodes.order()
	s.nodes.down = 0
	s.coming, s.waited = true, true
	return nil
}

// endFollowing makes s a simulator that plays jobs of its own.
func (s *Simulator) endFollowing() {
	if !s.role.facts() {
		return
	}
	if s.role == imagines {
		s.forecasts.by = s.follow.kept.forecasts.by
	}
	s.role = plays
	s.follow.drains, s.follow.blocked = s.follow.drains[:0], 0
}

// dated0 is a stream without jobs that begins at origin.
type dated0 struct{ origin time.Duration }

// Next implements traces.Stream.
func (dated0) Next(*traces.Job) error { return io.EOF }

// Origin implements dated.
func (d dated0) Origin() time.Duration { return d.origin }

// More says whether more jobs may arrive (View.Arriving). A run has an end and a cluster has none, so it is true until
// somebody says otherwise.
func (s *Simulator) More(more bool) {
	if s.role.facts() {
		s.follow.more, s.coming = more, more
	}
}

// Tell takes in a fact. Facts come in the order of their times. Those of one time come in the order of the kinds that
// Advance has, as far as they depend on each other: a job ends before another starts on its GPUs.
//
// A start, a stop, a migration, a resize or a departure at the time of the current point, before any other fact, is a
// decision of that point, and open is true: the point stays open, as after Apply. Any other fact ends the point, and
// the next begins with Look. An error (ErrFact) says in one sentence what cannot be, and changes nothing.
func (s *Simulator) Tell(f *Fact) (open bool, err error) {
	w := &s.follow
	switch {
	case !s.role.facts():
		return false, fmt.Errorf("%w: this simulator plays jobs of its own", ErrFact)
	case s.role == imagines:
		return false, fmt.Errorf("%w: facts come after what is imagined has been forgotten", ErrFact)
	case int64(f.At) < s.now:
		return false, fmt.Errorf("%w: %v at %v after one at %v; want facts in order of time", ErrFact, f, f.At,
			time.Duration(s.now))
	case f.At > traces.MaxTime:
		return false, fmt.Errorf("%w: %v at %v, after %s, where the clock ends", ErrFact, f, f.At, lastTime)
	}
	j := Job(-1)
	if !f.Kind.jobless() && f.Kind != Submit {
		if j, err = s.named(f); err != nil {
			return false, err
		}
		if j == refusedJob {
			return false, s.tellRefused(f)
		}
	}
	now, waited := s.now, s.waited
	open = !waited && int64(f.At) == now && f.Kind.decided() && s.jobs[j].changed != s.points
	s.now, s.waited = int64(f.At), !open
	if err := s.tell(f, j); err != nil {
		s.now, s.waited = now, waited
		return false, err
	}
	if len(w.drains) > 0 {
		s.settleDrains()
	}
	s.check()
	return open, nil
}

// decided reports whether events of this kind come from decisions.
func (k EventKind) decided() bool {
	return k == Start || k == Preempt || k == Drop || k == Migrate || k == Resize
}

// String describes the fact without its time.
func (f *Fact) String() string {
	switch {
	case f.Kind == NodeFail || f.Kind == NodeRecover:
		return fmt.Sprintf("%v of node %d", f.Kind, f.Node)
	case f.Kind == Timer:
		return f.Kind.String()
	case f.Kind == Submit && f.Job != nil:
		return fmt.Sprintf("%v of job %s", f.Kind, f.Job.ID)
	case f.Kind > NodeRecover:
		return fmt.Sprintf("fact %d of job %s", f.Kind, f.ID)
	}
	return fmt.Sprintf("%v of job %s", f.Kind, f.ID)
}

// wrong returns an ErrFact about f.
func (f *Fact) wrong(why string, args ...any) error {
	return fmt.Errorf("%w: %v at %v: %s", ErrFact, f, f.At, fmt.Sprintf(why, args...))
}

// named returns the job that f is about, and an error if it is not in the state in which this can happen to it.
func (s *Simulator) named(f *Fact) (Job, error) {
	if f.Kind > NodeRecover {
		return 0, fmt.Errorf("%w: kind %d is unknown, want one of the kinds of events", ErrFact, f.Kind)
	}
	j, ok := s.follow.ids[f.ID]
	if !ok {
		return 0, f.wrong("no job of this name waits or runs")
	}
	if j == refusedJob {
		return j, nil
	}
	want := Running
	if f.Kind == Start || f.Kind == Drop {
		want = Waiting
	}
	if got := s.jobs[j].state; got != want {
		return 0, f.wrong("the job is %v, not %v", got, want)
	}
	if held := s.jobs[j].gpus; len(f.GPUs) > 0 && (f.Kind == Finish || f.Kind == Preempt || f.Kind == Fail) &&
		!sameGPUs(f.GPUs, held) {
		return 0, f.wrong("the job holds GPUs %v, not %v", held, f.GPUs)
	}
	return j, nil
}

// sameGPUs reports whether a and b are the same GPUs, in any order; none is in b twice.
func sameGPUs(a, b []cluster.GPU) bool {
	if slices.Equal(a, b) {
		return true
	}
	for _, g := range b {
		if !slices.Contains(a, g) {
			return false
		}
	}
	return len(a) == len(b)
}

// misplaced returns why nothing can be placed on the GPUs of f, "" if they are sound by themselves.
func (s *Simulator) misplaced(f *Fact) string {
	if s.cluster.Pool() {
		return ""
	}
	for i, g := range f.GPUs {
		switch n := s.cluster.GPUs(); {
		case g < 0 || int(g) >= n:
			return fmt.Sprintf("there is no GPU %d, want 0 to %d", g, n-1)
		case slices.Contains(f.GPUs[:i], g):
			return fmt.Sprintf("GPU %d is named twice", g)
		}
		switch n := s.cluster.NodeOf(g); {
		case s.cluster.Down(n):
			return fmt.Sprintf("GPU %d belongs to node %d, which is down", g, n)
		case s.draining(n) >= 0 && s.cluster.GPUFree(g) == 0:
			return fmt.Sprintf("GPU %d belongs to node %d, on which nothing can start", g, n)
		}
	}
	return ""
}

// tellRefused takes in a fact about a job that can never fit the cluster.
func (s *Simulator) tellRefused(f *Fact) error {
	if f.Kind != Drop && f.Kind != Finish {
		return f.wrong("the job can never fit this cluster")
	}
	delete(s.follow.ids, f.ID)
	return nil
}

// tell carries out a fact at the current time. An error changes nothing.
func (s *Simulator) tell(f *Fact, j Job) (err error) {
	w := &s.follow
	d := &w.d
	d.Job, d.GPUs, d.N = j, f.GPUs, f.N
	switch f.Kind {
	case Submit:
		return s.tellSubmit(f)
	case Start:
		err = s.startJob(d)
	case Preempt:
		err = s.preempt(j)
	case Migrate:
		err = s.migrate(d)
	case Resize:
		err = s.resize(d)
	case Drop:
		if err = s.drop(j); err == nil {
			delete(w.ids, f.ID)
		}
	case Finish:
		s.close()
		s.end(j)
		delete(w.ids, f.ID)
		return nil
	case Fail:
		s.close()
		s.extra(j).fails++
		s.stop(j, Fail)
		return nil
	case NodeFail, NodeRecover:
		return s.tellNode(f)
	case Timer:
		s.close()
		s.events = append(s.events, Event{At: f.At, Kind: Timer, Job: -1})
		return nil
	}
	if err != nil {
		if why := s.misplaced(f); why != "" {
			return f.wrong("%s", why)
		}
		return f.wrong("%s", strings.TrimPrefix(err.Error(), ErrDecision.Error()+": "))
	}
	s.decisions++
	if s.waited {
		s.close()
	}
	return nil
}

// close ends the current point, as Advance does at its beginning: the numbers of jobs that it has reported as ended are
// free.
func (s *Simulator) close() {
	s.spare = append(s.spare, s.dead[:s.gone]...)
	s.dead = append(s.dead[:0], s.dead[s.gone:]...)
	s.gone, s.waited = 0, true
}

func (s *Simulator) tellSubmit(f *Fact) error {
	w, t := &s.follow, f.Job
	if t == nil {
		return f.wrong("it has no job")
	}
	switch _, twice := w.ids[t.ID]; {
	case twice:
		return f.wrong("a job of this name is in the system")
	case t.Submit > f.At:
		return f.wrong("the job says that it is submitted at %v, which is later", t.Submit)
	case w.Estimates.Mode == EstimateTrace && t.Estimate <= 0:
		return f.wrong("the job has no requested time, and estimates are %v; want history, gbdt or none", w.Estimates)
	}
	*s.buffer = *t
	s.next = s.buffer
	if !w.Works {
		s.next.Work = 0
	}
	if err := s.next.CheckTimes(); err != nil {
		return f.wrong("%v", err)
	}
	req, ok := s.cluster.Request(s.next)
	if !ok {
		s.refuse()
		w.ids[t.ID] = refusedJob
		return nil
	}
	s.read++
	if s.models {
		if err := s.checkProfile(); err != nil {
			s.read--
			return f.wrong("%v", err)
		}
	}
	s.close()
	s.nextReq = req
	j := s.admit()
	w.ids[t.ID] = j
	if !w.Works {
		work := s.expected(j)
		s.traced[j].Work, s.jobs[j].left = work, float64(work)
	}
	return nil
}

// expected returns the run time that is expected of j: always more than it has run.
func (s *Simulator) expected(j Job) time.Duration {
	w, ran := &s.follow, s.view.Ran(j)
	if w.Works {
		return min(Outlived(max(1, s.traced[j].Work), ran), traces.MaxTime)
	}
	t := w.Estimates.Lasting(&s.view, j)
	if t <= 0 {
		t = Outlived(expectedWork, ran)
	}
	return min(t, traces.MaxTime)
}

func (s *Simulator) tellNode(f *Fact) error {
	n, down := f.Node, f.Kind == NodeFail
	switch {
	case s.cluster.Pool():
		return f.wrong("a counter has no nodes")
	case n < 0 || n >= s.cluster.Nodes():
		return f.wrong("there is no such node, want 0 to %d", s.cluster.Nodes()-1)
	case down && (s.cluster.Down(n) || s.draining(n) >= 0):
		return f.wrong("it is down already")
	case !down && !s.cluster.Down(n) && s.draining(n) < 0:
		return f.wrong("it is up already")
	}
	s.close()
	switch i := s.draining(n); {
	case i >= 0:
		s.free(&s.follow.drains[i])
		s.undrain(i)
	case s.cluster.SetDown(n, down) != nil: // jobs run on it
		s.drain(n)
	}
	if down {
		s.nodes.down++
	} else {
		s.nodes.down--
	}
	for i := range s.nodes.pending {
		if e := &s.nodes.pending[i]; int(e.node) == n {
			e.recover = down
			s.nodes.draws[n]++
			s.nodes.order()
			break
		}
	}
	s.events = append(s.events, Event{At: f.At, Kind: f.Kind, Job: -1, Node: int32(n)})
	return nil
}

// drain is a node on which jobs run and none can start: what is free of its GPUs is held.
type drain struct {
	node int
	gpus []cluster.GPU
	held []int // thousandths of each
}

// draining returns the place of node in drains, -1 if jobs can start there.
func (s *Simulator) draining(node int) int {
	for i := range s.follow.drains {
		if s.follow.drains[i].node == node {
			return i
		}
	}
	return -1
}

func (s *Simulator) drain(node int) {
	d := s.moreDrains()
	d.node, d.gpus, d.held = node, d.gpus[:0], d.held[:0]
	s.block(d)
}

// moreDrains adds a drain, whose lists are those of an earlier one.
func (s *Simulator) moreDrains() *drain {
	w := &s.follow
	if n := len(w.drains); n < cap(w.drains) {
		w.drains = w.drains[:n+1]
	} else {
		w.drains = append(w.drains, drain{})
	}
	return &w.drains[len(w.drains)-1]
}

// undrain removes the drain at i, which holds nothing.
func (s *Simulator) undrain(i int) {
	list := s.follow.drains
	last := len(list) - 1
	list[i], list[last] = list[last], list[i]
	s.follow.drains = list[:last]
}

// block holds what is free of a node's GPUs.
func (s *Simulator) block(d *drain) {
	from, to := s.cluster.NodeGPUs(d.node)
	for g := from; g < to; g++ {
		milli := s.cluster.GPUFree(g)
		if milli == 0 {
			continue
		}
		if err := s.cluster.Allocate(&cluster.Request{GPUs: 1, Milli: milli}, []cluster.GPU{g}); err != nil {
			panic(fmt.Sprintf("sim: %d free thousandths of GPU %d cannot be held: %v", milli, g, err))
		}
		d.gpus, d.held = append(d.gpus, g), append(d.held, milli)
		s.follow.blocked += milli
	}
}

// free gives back what block holds.
func (s *Simulator) free(d *drain) {
	for i := range d.gpus {
		s.cluster.Release(&cluster.Request{GPUs: 1, Milli: d.held[i]}, d.gpus[i:i+1])
		s.follow.blocked -= d.held[i]
	}
	d.gpus, d.held = d.gpus[:0], d.held[:0]
}

// settleDrains holds what jobs have left free on nodes that drain; a node whose last job has left is down.
func (s *Simulator) settleDrains() {
	for i := len(s.follow.drains) - 1; i >= 0; i-- {
		d := &s.follow.drains[i]
		s.free(d)
		if s.cluster.SetDown(d.node, true) == nil {
			s.undrain(i)
		} else {
			s.block(d)
		}
	}
}

// Look moves the clock to now, which is not before the last fact, and returns the point with all facts since the last
// one; there may be none, as time passes without them. Decisions can be imagined there. The point is valid until the
// next fact that is no decision of the point.
func (s *Simulator) Look(now time.Duration) (*Point, error) {
	w := &s.follow
	switch {
	case !s.role.facts():
		return nil, fmt.Errorf("%w: this simulator plays jobs of its own", ErrFact)
	case s.role == imagines:
		return nil, fmt.Errorf("%w: the clock goes on after what is imagined has been forgotten", ErrFact)
	case int64(now) < s.now || now > traces.MaxTime:
		return nil, fmt.Errorf("%w: the time is %v after %v, want one that is not earlier and at most %s", ErrFact, now,
			time.Duration(s.now), lastTime)
	}
	s.close()
	s.now = int64(now)
	late := s.now // a job whose work is known may end just now, as the next fact will say
	if w.Works {
		late--
	}
	for len(s.finishes) > 0 && s.finishes[0].at <= late {
		s.outlive(s.finishes[0].job)
	}
	s.begun, s.waited = true, false
	s.check()
	return s.deliver(), nil
}

// outlive gives j, which should have ended by now and has not, more work: as much as is expected of a job of its age.
func (s *Simulator) outlive(j Job) {
	st, t := &s.jobs[j], s.traced[j]
	s.settle(j, st)
	left := max(1, math.Ceil(float64(s.expected(j)-s.view.Ran(j))*st.rate))
	more := left - st.left
	t.Work = min(traces.MaxTime, t.Work+time.Duration(more))
	if st.more {
		s.more[j].saved += more
	}
	st.left = left
	st.finish = finishAt(st.since, st.left, st.rate)
	s.refile(st)
}

// Imagine begins an imagination at the current point, which must be open: from here on Apply takes decisions as if they
// were carried out, until Forget. It takes time in proportion to the jobs in the system and to the cluster, and
// allocates nothing in steady state. Within an imagination it does nothing.
func (s *Simulator) Imagine() error {
	w := &s.follow
	switch {
	case !s.role.facts() || !s.begun || s.waited && s.role != imagines:
		return fmt.Errorf("%w, at a point that Look has returned and no fact has ended", ErrFollows)
	case s.role == imagines:
		return nil
	}
	if w.kept == nil {
		w.kept = &Simulator{cluster: s.cluster.Twin()}
		if s.links != nil {
			w.kept.links = newContention(w.kept.cluster, s.cfg.Contention)
		}
	}
	w.kept.copyState(s)
	w.kept.forecasts.by = s.forecasts.by
	s.forecasts.by = nil // it learns from facts
	s.gangs = s.gangs[:0]
	s.role = imagines
	return nil
}

// Forget returns to the state before Imagine. Without an imagination it does nothing.
func (s *Simulator) Forget() {
	w := &s.follow
	if s.role != imagines {
		return
	}
	decisions := s.decisions
	s.copyState(w.kept)
	s.decisions = decisions + 1 // the state is not the one after the last decision
	s.forecasts.by = w.kept.forecasts.by
	s.role = follows
	s.check()
}

// Open reports whether decisions are possible at the current point: in a simulator that follows facts, in imagination.
func (s *Simulator) Open() bool { return s.begun && !s.waited && !s.over && s.err == nil }

// Imagines reports whether there is an imagination.
func (s *Simulator) Imagines() bool { return s.role == imagines }

// Ask lets sch decide at the current point until it waits, in imagination, and shows visit every decision but Wait
// before it is imagined; nil = nobody sees them. What Wait says is left in d, which is scratch. The imagination stays,
// so that its end can be looked at: the caller calls Forget.
//
// sch is reset first and sees no events, because what it decided before may not have been carried out. Policies that
// look at nothing but the state (schedulers.Config.Forgets) decide as in a run; others begin anew each time.
func (s *Simulator) Ask(sch Scheduler, d *Decision, visit func(d *Decision) error) error {
	if err := s.Imagine(); err != nil {
		return err
	}
	sch.Reset(&s.view)
	s.follow.asked = Point{Now: time.Duration(s.now)}
	for {
		d.Op, d.GPUs, d.N, d.Until = Wait, d.GPUs[:0], 0, 0
		if err := sch.Decide(&s.view, &s.follow.asked, d); err != nil || d.Op == Wait {
			return err
		}
		if visit != nil {
			if err := visit(d); err != nil {
				return err
			}
		}
		if err := s.Apply(d); err != nil {
			return err
		}
	}
}

// Find returns the number of the job of this name that is in the system.
func (v *View) Find(id string) (Job, bool) {
	j, ok := v.s.follow.ids[id]
	return j, ok && j != refusedJob
}

// Present is a cluster in the middle of its life, as somebody sees it who comes to it: what waits, what runs where
// since when, and which nodes are down.
type Present struct {
	Now  time.Duration
	Jobs []PresentJob // in any order
	Down []int        // nodes on which no job can start
}

// PresentJob is a job that waits or runs.
type PresentJob struct {
	Job   *traces.Job
	Runs  bool
	Start time.Duration // of a job that runs: its last start
	GPUs  []cluster.GPU // of a job that runs
	N     int           // as in Fact
}

// Facts appends to dst the facts that lead to p, in order, for a simulator at the beginning (Follow): the jobs were
// submitted when they say so, those that run have been started once, and nodes have failed just now. Look is to follow.
func (p *Present) Facts(dst []Fact) []Fact {
	from := len(dst)
	for i := range p.Jobs {
		j := &p.Jobs[i]
		dst = append(dst, Fact{At: j.Job.Submit, Kind: Submit, Job: j.Job})
		if j.Runs {
			dst = append(dst, Fact{At: max(j.Start, j.Job.Submit), Kind: Start, ID: j.Job.ID, GPUs: j.GPUs, N: j.N})
		}
	}
	slices.SortStableFunc(dst[from:], func(a, b Fact) int { return cmp.Compare(a.At, b.At) })
	for _, n := range p.Down {
		dst = append(dst, Fact{At: p.Now, Kind: NodeFail, Node: n})
	}
	return dst
}

// Fact returns an event of v's run as a fact, for another simulator that follows. Its lists belong to the run.
func (v *View) Fact(e *Event) Fact {
	f := Fact{At: e.At, Kind: e.Kind, GPUs: e.GPUs, N: int(e.N), Node: int(e.Node)}
	switch {
	case e.Kind == Submit:
		f.Job = v.Trace(e.Job)
	case !e.Kind.jobless():
		f.ID = v.Trace(e.Job).ID
	}
	return f
}
