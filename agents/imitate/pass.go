package imitate

import (
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/internal/rng"
)

// pass replays recorded episodes in rows that are stepped together. When a row's episode ends, its next episode begins
// one step later, as in mode NextStep of package vec. A row without further episodes repeats its last step until all
// rows have ended; these repetitions are not transitions.
type pass struct {
	workers int
	spec    env.Spec
	gamma   float64
	plays   []Play
	order   []int // of the plays
	given   int   // plays that have begun
	rows    []playRow

	cur, next    *env.Batch
	label, taken *env.Actions
	ret          []float32 // [rows], from the current step to the end of the episode
}

// playRow is one row.
type playRow struct {
	env   env.Env
	play  *Play // nil = none is left
	at    int   // steps taken
	begin bool  // its play begins in this step
	ret   []float32
}

// begin returns a pass over the first n plays, at its first step.
func (p *Phase) begin(n int) (*pass, error) {
	r, f := p.cfg.Rows, len(p.spec.Action.Sizes)
	q := &pass{
		workers: p.cfg.Workers, spec: p.spec, gamma: p.cfg.Gamma, plays: p.plays, rows: make([]playRow, r),
		cur: env.NewBatch(p.spec, r), next: env.NewBatch(p.spec, r),
		label: &env.Actions{N: r, Disc: make([]int32, r*f)}, taken: &env.Actions{N: r, Disc: make([]int32, r*f)},
		ret: make([]float32, r),
	}
	q.order = rng.Stream(p.cfg.Seed, fmt.Sprintf("imitate/order/%d/%d", p.state.Round, p.state.Epoch)).Perm(n)
	for i := range q.rows {
		e, err := p.source.Env()
		if err != nil {
			q.close()
			return nil, err
		}
		q.rows[i].env = e
	}
	q.give()
	if err := par.For(context.Background(), q.workers, r, func(_, i int) error { return q.row(i, q.cur) }); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func (q *pass) close() {
	for i := range q.rows {
		if q.rows[i].env != nil {
			_ = q.rows[i].env.Close() // memory only
		}
	}
}

// give gives rows without a running episode the next plays, in order.
func (q *pass) give() {
	for i := range q.rows {
		l := &q.rows[i]
		l.begin = false
		if l.play != nil && l.at < l.play.Len() {
			continue
		}
		l.play, l.at = nil, 0
		if q.given < len(q.order) {
			l.play, l.begin = &q.plays[q.order[q.given]], true
			l.ret = l.play.Returns(l.ret[:0], q.spec, q.gamma)
			q.given++
		}
	}
}

// over reports whether all plays have ended.
func (q *pass) over() bool {
	if q.given < len(q.order) {
		return false
	}
	for i := range q.rows {
		if l := &q.rows[i]; l.play != nil && l.at < l.play.Len() {
			return false
		}
	}
	return true
}

// step takes one step of all rows, from cur to next, and returns how many were transitions.
func (q *pass) step() (steps int, err error) {
	f := len(q.spec.Action.Sizes)
	for i := range q.rows {
		l := &q.rows[i]
		clear(q.label.Disc[i*f : (i+1)*f])
		clear(q.taken.Disc[i*f : (i+1)*f])
		q.ret[i] = float32(math.NaN())
		if l.play != nil && l.at < l.play.Len() {
			copy(q.label.Disc[i*f:(i+1)*f], l.play.Label[l.at*f:])
			copy(q.taken.Disc[i*f:(i+1)*f], l.play.Taken[l.at*f:])
			q.ret[i] = l.ret[l.at]
			steps++
		}
	}
	q.give()
	return steps, par.For(context.Background(), q.workers, len(q.rows), func(_, i int) error { return q.row(i, q.next) })
}

// row takes one step of row i and writes it to b.
func (q *pass) row(i int, b *env.Batch) error {
	l := &q.rows[i]
	o, m, f, c := q.spec.ObsLen(), q.spec.MaskLen(), len(q.spec.Action.Sizes), len(q.spec.Info)
	ts := env.TimeStep{Obs: b.Obs[i*o : (i+1)*o], Mask: b.Mask[i*m : (i+1)*m], Info: b.Info[i*c : (i+1)*c]}
	b.Kind[i], b.Reward[i], b.Elapsed[i] = env.First, 0, time.Duration(0)
	switch {
	case l.play == nil: // the row is over
		clear(ts.Obs)
		clear(ts.Mask)
		return nil
	case l.begin:
		if err := l.env.Reset(context.Background(), env.Episode{Seed: l.play.Seed, Window: -1}, &ts); err != nil {
			return fmt.Errorf("imitate: the episode of seed %d: %w", l.play.Seed, err)
		}
		return nil
	}
	if err := l.env.Step(context.Background(), env.Action{Disc: l.play.Taken[l.at*f : (l.at+1)*f]}, &ts); err != nil {
		return fmt.Errorf("imitate: step %d of the episode of seed %d: %w", l.at, l.play.Seed, err)
	}
	kind := env.Mid
	if l.at == l.play.Len()-1 {
		kind = l.play.Kind
	}
	if ts.Kind != kind || ts.Reward != l.play.Reward[l.at] || ts.Elapsed != l.play.Elapsed[l.at] {
		return fmt.Errorf(
			"imitate: step %d of the episode of seed %d differs from the recording: it was made in another environment", l.at,
			l.play.Seed)
	}
	b.Kind[i], b.Reward[i], b.Elapsed[i] = ts.Kind, ts.Reward, ts.Elapsed
	l.at++
	return nil
}
