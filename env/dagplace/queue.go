package dagplace

import (
	"context"
	"fmt"
	"math"
	"slices"

	"clustergym/env"
	"clustergym/env/dag"
)

// Queue is a task graph seen as the scheduler of a queue sees it, to compare with: of the tasks whose parents are
// placed, the agent picks one among the oldest, and it goes to the GPU where it ends first. It knows nothing of what
// depends on a task. What it is paid is as in DRAS (Fan et al., IPDPS 2021; the weights of its group's CQGym): the mean of
// the share of GPUs at work, the picked task's wait over the longest one, and its length over the longest one. It is a
// reconstruction, DRAS-like: DRAS decides for jobs of many nodes that arrive over time, with reservations and
// back-filling. It is not registered.
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
	b       *Builder
	order   []int32 // of the builder, filled as tasks are picked
	missing []int32
	open    []int32 // ready tasks, the oldest first
	since   []float64
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
			{Name: "queue", Shape: []int{globalFeatures}, Low: 0, High: bound, Unit: "fraction", Doc: "tasks placed; GPUs at work; ready tasks over the window; mean length of the window's tasks"},
			{Name: "tasks", Shape: []int{QueueWindow, queueFeatures}, Low: 0, High: bound, Unit: "of the longest task", Doc: "for each task: there is one; length; wait; place in the queue", Filled: 1},
		},
		Info: []env.Field{{Name: "makespan_s", Unit: "seconds", Metric: true}, {Name: "leader_s", Unit: "seconds", Metric: true}},
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
		return fmt.Errorf("%w: %s: a task of %d numbers and split %q, want none", env.ErrEpisode, e.spec.ID, len(ep.Task), ep.Split)
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
	n := q.Tasks()
	s := &queueState{q: q, order: make([]int32, n), missing: make([]int32, n), since: make([]float64, n), leader: leader}
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
	s.order[0] = s.open[0]
	s.b = NewBuilder(q, s.order, false)
	e.s = s
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

// clock is when the first GPU is free, and how many are at work then.
func (s *queueState) clock() (now float64, busy int) {
	now = math.Inf(1)
	for g := range s.b.times {
		now = min(now, s.b.times[g].End())
	}
	for g := range s.b.times {
		if s.b.times[g].End() > now {
			busy++
		}
	}
	return now, busy
}

// pick places the task in slot k.
func (e *Queue) pick(k int) {
	s := e.s
	i := s.open[k]
	now, busy := s.clock()
	longest := 0.0
	for _, j := range s.open[:min(len(s.open), QueueWindow)] {
		longest = max(longest, now-s.since[j])
	}
	wait := 0.0
	if longest > 0 {
		wait = max(0, now-s.since[i]) / longest
	}
	s.reward = (float64(busy)/float64(len(s.b.times)) + wait + s.q.MeanExec(i)/e.longest) / 3
	s.open = slices.Delete(s.open, k, k+1)
	s.order[s.b.Done()] = i
	s.b.look()
	g := s.b.Earliest()
	end := s.b.finish[g]
	for _, c := range s.q.Graph.Succs(i) {
		s.since[c.Task] = max(s.since[c.Task], end)
		if s.missing[c.Task]--; s.missing[c.Task] == 0 {
			s.enqueue(c.Task)
		}
	}
	s.kind = env.Mid
	if len(s.open) == 0 {
		s.kind = env.Terminated
	} else {
		s.order[s.b.Done()+1] = s.open[0] // for the builder to look at
	}
	s.b.Place(g)
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
	now, busy := s.clock()
	mean, shown := 0.0, min(len(s.open), QueueWindow)
	for k, i := range s.open[:shown] {
		e.mask[k] = true
		x := s.q.MeanExec(i) / e.longest
		mean += x / float64(shown)
		o := e.obs[globalFeatures+k*queueFeatures:]
		o[0], o[1], o[2], o[3] = 1, cut(x, 0), cut((now-s.since[i])/e.longest, 0), float32(k)/QueueWindow
	}
	e.obs[0] = float32(s.b.Done()) / float32(len(s.order))
	e.obs[1] = float32(busy) / float32(len(s.b.times))
	e.obs[2] = cut(float64(len(s.open))/QueueWindow, 0)
	e.obs[3] = float32(mean)
}

func (e *Queue) show(ts *env.TimeStep) {
	ts.Kind, ts.Reward, ts.Elapsed = e.s.kind, e.s.reward, 0
	copy(ts.Obs, e.obs)
	copy(ts.Mask, e.mask)
	ts.Info[0], ts.Info[1] = e.s.b.Makespan(), e.s.leader
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
	return e.s.b.Plan(), nil
}
