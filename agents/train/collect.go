package train

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/env/vec"
)

// Separate is an agent that can have several learners collect experience, each at its own pace and in its own
// goroutine, and then learn together. With such an agent the Trainer does not call Act and Observe.
type Separate interface {
	agents.Agent
	// Collectors returns the learners, which share the rows equally and in order; none if all rows are stepped
	// together. They are the same, in the same order, for the life of the agent.
	Collectors() []agents.Collector
	// Collect calls play with the number of every collector, each in its own goroutine, waits for all of them, and
	// returns the first error in order of numbers. Collectors are used in play only.
	Collect(play func(k int) error) error
}

// rowRange is the rows of one collector. Its columns are views of the Trainer's, so rowRanges share nothing with each
// other.
type rowRange struct {
	from, rows int
	vec        *vec.Vec
	cur, next  *env.Batch
	actions    *env.Actions
	src        []*rand.Rand
	ret        []float64
	length     []int64

	steps int64     // of this collection
	over  []episode // that ended in it
}

// episode is a finished episode.
type episode struct {
	step   int64 // of the rowRange, in the collection
	ret    float64
	length int64
	info   []float64
}

// split divides the rows into n rowRanges, which continue from cur.
func (t *Trainer) split(n int) error {
	if t.rowRanges != nil {
		return nil
	}
	if t.vec.Len()%n != 0 {
		return fmt.Errorf("train: %d environments for %d collectors, want a multiple", t.vec.Len(), n)
	}
	rows := t.vec.Len() / n
	rowRanges := make([]rowRange, n)
	f, c := len(t.spec.Action.Sizes), len(t.spec.Action.Low)
	for k := range rowRanges {
		from, to := k*rows, (k+1)*rows
		part, err := t.vec.Part(from, to)
		if err != nil {
			return fmt.Errorf("train: %w", err)
		}
		rowRanges[k] = rowRange{
			from: from, rows: rows, vec: part, cur: t.view(t.cur, from, to), next: t.view(t.next, from, to),
			actions: &env.Actions{N: rows, Disc: t.actions.Disc[from*f : to*f], Cont: t.actions.Cont[from*c : to*c]},
			src:     t.src[from:to], ret: t.ret[from:to], length: t.length[from:to],
		}
	}
	t.rowRanges = rowRanges
	return nil
}

// view returns rows of b. Its Final columns are its own.
func (t *Trainer) view(b *env.Batch, from, to int) *env.Batch {
	o, m, n := t.spec.ObsLen(), t.spec.MaskLen(), len(t.spec.Info)
	return &env.Batch{
		N: to - from, Kind: b.Kind[from:to], Reward: b.Reward[from:to], Elapsed: b.Elapsed[from:to],
		Obs: b.Obs[from*o : to*o], Mask: b.Mask[from*m : to*m], Info: b.Info[from*n : to*n],
	}
}

// collect lets all collectors take their steps, and learns. When ctx is cancelled they stop between two steps, and
// continue from there in the next call.
func (t *Trainer) collect(ctx context.Context, s Separate) error {
	s.Progress(float64(t.step) / float64(t.cfg.Steps))
	collectors, rows := s.Collectors(), int64(t.rowRanges[0].rows)
	held := int64(0) // earlier steps that are not learnt from yet
	for _, c := range collectors {
		held += int64(c.Len()) * rows
	}
	// Together they stop where rows stepped together would: at the first multiple of the rows that is not below
	// Config.Steps.
	n := int64(t.vec.Len())
	most := (t.cfg.Steps - (t.step - held) + n - 1) / n

	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.Collect(func(k int) error {
		l, c := &t.rowRanges[k], collectors[k]
		for int64(c.Len()) < most && c.More() && stop.Err() == nil {
			if err := l.step(t.spec, c); err != nil {
				cancel()
				return fmt.Errorf("in rows %d to %d, counted from 0: %w", l.from, l.from+l.rows-1, err)
			}
			runtime.Gosched() // collectors that outnumber the processors take turns
		}
		return nil
	})
	t.gather()
	if err != nil {
		return fmt.Errorf("train: step %d: %w", t.step, err)
	}
	// Rows stepped together are told this at their last step; checkpoints keep it.
	s.Progress(float64(max(t.step-n, 0)) / float64(t.cfg.Steps))
	return t.improve(context.WithoutCancel(ctx))
}

// step takes one step of the range's rows. Nothing is cancelled inside, so a step is always whole.
func (l *rowRange) step(s env.Spec, c agents.Collector) error {
	whole := context.Background()
	if err := c.Act(whole, l.cur, l.actions, l.src); err != nil {
		return err
	}
	if err := l.vec.Step(whole, nil, l.actions, l.next); err != nil {
		return err
	}
	if err := checkFinite(s, l.next); err != nil {
		return err
	}
	if err := c.Observe(l.cur, l.actions, l.next); err != nil {
		return err
	}
	l.steps++
	follow(l.next, len(s.Info), l.ret, l.length, func(ret float64, length int64, info []float64) {
		l.over = append(l.over, episode{l.steps, ret, length, info})
	})
	l.cur, l.next = l.next, l.cur
	return nil
}

// gather counts the steps and episodes of the rowRanges in the order in which rows stepped together would have finished
// them.
func (t *Trainer) gather() {
	var over []episode
	for k := range t.rowRanges {
		l := &t.rowRanges[k]
		t.step += l.steps * int64(l.rows)
		over = append(over, l.over...)
		l.steps, l.over = 0, l.over[:0]
	}
	slices.SortStableFunc(over, func(a, b episode) int { return cmp.Compare(a.step, b.step) })
	for _, e := range over {
		t.ended(e.ret, e.length, e.info)
	}
}
