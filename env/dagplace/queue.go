package dagplace

import (
	"context"
	"fmt"
	"math"
	"slices"

	"clustergym/env"
	"clustergym/simulator/dag"
)

// Queue is a task graph seen as the scheduler of a queue sees it, to compare with. It has a clock: a task joins the
// queue when its parents have ended, and while a GPU is idle the agent picks one of the oldest tasks, which goes to the
// idle GPU where it ends first. Otherwise time passes until the next task ends. The agent knows nothing of what depends
// on a task. It is paid minus the time that passes, over the leader's makespan, so that the return is exactly minus the
// makespan. It is a reconstruction, DRAS-like (Fan et al., IPDPS 2021): DRAS decides for jobs of many nodes that arrive
// over time, with reservations and back-filling. It is not registered.
type Queue struct {
	spec env.Spec
	draw *Env // draws the problems

	s       *queueState // nil before the first Reset
	obs     []float32
	mask    []bool
	longest float64 // mean time of the longest task
	closed  bool
}

// QueueWindow is the number of tasks that a Queue shows.
const QueueWindow = 16

// The features of the whole, and of a task.
const (
	globalFeatures = 4
	queueFeatures  = 4
)

type queueState struct {
	q       *dag.Problem
	plan    *dag.Plan
	now     float64
	end     []float64 // of the last task of each GPU
	running []int32   // the task of each GPU whose end is still to come, -1 = none
	ready   []float64 // a buffer, by GPU
	missing []int32
	open    []int32 // tasks whose parents have ended, the oldest first
	shown   []int32 // those of the window
	since   []float64
	placed  int
	leader  float64
	kind    env.Kind
	reward  float64
}

var _ env.Env = (*Queue)(nil)

// NewQueue returns the environment over the problems that New(cfg) would draw.
func NewQueue(cfg Config) (*Queue, error) {
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	q := &Queue{draw: e, spec: env.Spec{
		ID: "DAGQueue-v1", Action: env.ActionSpec{Sizes: []int{QueueWindow}}, Solved: math.NaN(), NoOp: -1,
		Obs: []env.Field{
			{Name: "queue", Shape: []int{globalFeatures}, Low: 0, High: bound, Unit: "fraction",
				Doc: "tasks placed; GPUs at work; ready tasks over the window; mean length of the window's tasks"},
			{Name: "tasks", Shape: []int{QueueWindow, queueFeatures}, Low: 0, High: bound, Unit: "of the longest task",
				Doc: "for each task: there is one; length; wait; place in the queue", Filled: 1},
		},
		Info: []env.Field{{Name: "makespan_s", Unit: "seconds", Metric: true},
			{Name: "leader_s", Unit: "seconds", Metric: true}},
	}}
	q.obs, q.mask = make([]float32, q.spec.ObsLen()), make([]bool, QueueWindow)
	return q, nil
}

// Spec implements env.Env.
func (e *Queue) Spec() env.Spec { return e.spec }

// Close makes every later call env.ErrClosed.
func (e *Queue) Close() error {
	e.closed = true
	return nil
}

// Reset begins an episode.
func (e *Queue) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	e.s = nil
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(ep.Task) > 0 || ep.Split != "" {
		return fmt.Errorf("%w: %s: a task of %d numbers and split %q, want none", env.ErrEpisode, e.spec.ID, len(ep.Task),
			ep.Split)
	}
	p, err := e.draw.begin(ctx, ep)
	if err != nil {
		return err
	}
	e.begin(p.b.q, p.leader)
	e.show(ts)
	return nil
}

// begin starts on a problem whose leader takes so long.
func (e *Queue) begin(q *dag.Problem, leader float64) {
	n, m := q.Tasks(), q.Procs()
	if leader == 0 {
		leader = 1
	}
	s := &queueState{
		q: q, plan: dag.NewPlan(n), end: make([]float64, m), running: make([]int32, m), ready: make([]float64, m),
		missing: make([]int32, n), since: make([]float64, n), leader: leader,
	}
	for g := range s.running {
		s.running[g] = -1
	}
	e.longest = 0
	for i := range int32(n) {
		e.longest = max(e.longest, q.MeanExec(i))
		if s.missing[i] = int32(len(q.Graph.Preds(i))); s.missing[i] == 0 {
			s.open = append(s.open, i)
		}
	}
	if e.longest == 0 {
		e.longest = 1
	}
	e.s = s
	s.wait()
	e.encode()
}

// Step picks a task.
func (e *Queue) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.s == nil || e.s.kind.Last() {
		return env.ErrResetNeeded
	}
	if len(a.Disc) != 1 || len(a.Cont) != 0 || a.Disc[0] < 0 || a.Disc[0] >= QueueWindow || !e.mask[a.Disc[0]] {
		return fmt.Errorf("%w: %s: %v", env.ErrIllegalAction, e.spec.ID, a.Disc)
	}
	e.pick(int(a.Disc[0]))
	e.show(ts)
	return nil
}

// busy is how many GPUs are at work.
func (s *queueState) busy() (n int) {
	for _, i := range s.running {
		if i >= 0 {
			n++
		}
	}
	return n
}

// wait lets time pass until a task can be picked, and fills the window with the oldest that can.
func (s *queueState) wait() {
	for {
		for again := true; again; { // tasks of no length may end at once
			again = false
			for g, i := range s.running {
				if i < 0 || s.end[g] > s.now {
					continue
				}
				s.running[g], again = -1, true
				for _, c := range s.q.Graph.Succs(i) {
					s.since[c.Task] = max(s.since[c.Task], s.end[g])
					if s.missing[c.Task]--; s.missing[c.Task] == 0 {
						s.enqueue(c.Task)
					}
				}
			}
		}
		s.shown = s.shown[:0]
		for _, i := range s.open {
			if len(s.shown) == QueueWindow {
				break
			}
			if s.able(i) {
				s.shown = append(s.shown, i)
			}
		}
		if len(s.shown) > 0 {
			return
		}
		next := math.Inf(1)
		for g, i := range s.running {
			if i >= 0 {
				next = min(next, s.end[g])
			}
		}
		s.now = next
	}
}

// able reports whether an idle GPU can run task i.
func (s *queueState) able(i int32) bool {
	for g, x := range s.q.Row(i) {
		if s.running[g] < 0 && !math.IsInf(x, 1) {
			return true
		}
	}
	return false
}

// place puts task i on the idle GPU where it ends first.
func (s *queueState) place(i int32) {
	p := s.plan
	s.q.Arrivals(s.ready, i, p.Proc, p.Finish)
	best, least := -1, math.Inf(1)
	for g, x := range s.q.Row(i) {
		if s.running[g] >= 0 {
			continue
		}
		if f := max(s.now, s.ready[g]) + x; f < least {
			best, least = g, f
		}
	}
	p.Proc[i], p.Start[i], p.Finish[i] = int32(best), max(s.now, s.ready[best]), least
	p.Makespan = max(p.Makespan, least)
	s.end[best], s.running[best] = least, i
}

// pick places the task in slot k.
func (e *Queue) pick(k int) {
	s, before := e.s, e.s.now
	i := s.shown[k]
	at := slices.Index(s.open, i)
	s.open = slices.Delete(s.open, at, at+1)
	s.place(i)
	s.placed++
	s.kind = env.Mid
	if s.placed == s.q.Tasks() {
		s.kind, s.now = env.Terminated, s.plan.Makespan
		s.shown = s.shown[:0]
	} else {
		s.wait()
	}
	s.reward = (before - s.now) / s.leader
	e.encode()
}

// enqueue puts a ready task behind those that are older.
func (s *queueState) enqueue(i int32) {
	at := len(s.open)
	for at > 0 && (s.since[s.open[at-1]] > s.since[i] || s.since[s.open[at-1]] == s.since[i] && s.open[at-1] > i) {
		at--
	}
	s.open = slices.Insert(s.open, at, i)
}

// encode shows the state.
func (e *Queue) encode() {
	s := e.s
	clear(e.obs)
	clear(e.mask)
	mean := 0.0
	for k, i := range s.shown {
		e.mask[k] = true
		x := s.q.MeanExec(i) / e.longest
		mean += x / float64(len(s.shown))
		o := e.obs[globalFeatures+k*queueFeatures:]
		o[0], o[1], o[2], o[3] = 1, cut(x, 0), cut((s.now-s.since[i])/e.longest, 0), float32(k)/QueueWindow
	}
	e.obs[0] = float32(s.placed) / float32(s.q.Tasks())
	e.obs[1] = float32(s.busy()) / float32(len(s.running))
	e.obs[2] = cut(float64(len(s.open))/QueueWindow, 0)
	e.obs[3] = float32(mean)
}

func (e *Queue) show(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = e.s.kind, e.s.reward, 0
	copy(ts.Obs, e.obs)
	copy(ts.Mask, e.mask)
	ts.Info[0], ts.Info[1] = e.s.plan.Makespan, e.s.leader
}

// Play plans a given problem: choose is shown observation and mask, and returns the slot. The plan belongs to e.
func (e *Queue) Play(q *dag.Problem, choose func(obs []float32, mask []bool) (int, error)) (*dag.Plan, error) {
	e.begin(q, 1)
	for !e.s.kind.Last() {
		k, err := choose(e.obs, e.mask)
		if err != nil {
			return nil, err
		}
		e.pick(k)
	}
	return e.s.plan, nil
}
