package vec

import (
	"context"
	"errors"
	"fmt"

	"clustergym/env"
)

// Reset begins an episode in each of rows (nil means all) and writes their first time steps to b; other rows of b are
// unchanged. ep[k] is the episode of rows[k]. Its Seed becomes the seed of that row's stream: later episodes, begun by
// autoreset, have the seeds env.EpisodeSeed(Seed, 1), 2, … and the same Task, but Window -1 and no Split. If ep is
// nil, each row begins the next episode of its stream. Rows must be distinct, in any order.
//
// Reset reports failed rows as joined *RowErrors; the others are valid. A failed row needs another Reset, and its
// stream has not advanced. After any other error nothing was done.
func (v *Vec) Reset(ctx context.Context, rows []int, ep []env.Episode, b *env.Batch) error {
	rows, err := v.check(rows, b)
	if err != nil {
		return err
	}
	if ep != nil && len(ep) != len(rows) {
		return fmt.Errorf("vec: %d episodes for %d rows", len(ep), len(rows))
	}
	return v.do(call{ctx: ctx, rows: rows, ep: ep, b: b})
}

// Continue is Reset for episodes that continue the rows' own streams. It ignores the Seed of ep[k]; the Window and
// Split apply to this episode only, the Task to later ones too.
func (v *Vec) Continue(ctx context.Context, rows []int, ep []env.Episode, b *env.Batch) error {
	rows, err := v.check(rows, b)
	if err != nil {
		return err
	}
	if len(ep) != len(rows) {
		return fmt.Errorf("vec: %d episodes for %d rows", len(ep), len(rows))
	}
	return v.do(call{ctx: ctx, rows: rows, ep: ep, next: true, b: b})
}

// Step applies row i of a to environment i, for each of rows (nil means all), and writes the next time steps to their
// rows of b. Other rows of b are unchanged, and other rows of a are not read. b's Final columns describe this call
// only, in ascending order of rows. Rows must be distinct, in any order.
//
// Step reports failed rows as joined *RowErrors; the others are valid. After any other error nothing was done. Step
// does not allocate in steady state, unless an environment does.
func (v *Vec) Step(ctx context.Context, rows []int, a *env.Actions, b *env.Batch) error {
	rows, err := v.check(rows, b)
	if err != nil {
		return err
	}
	if err := v.checkActions(a); err != nil {
		return err
	}
	return v.do(call{ctx: ctx, rows: rows, a: a, b: b})
}

func (v *Vec) checkActions(a *env.Actions) error {
	n := len(v.rows)
	if d, c := n*v.discLen, n*v.contLen; a.N != n || len(a.Disc) != d || len(a.Cont) != c {
		return fmt.Errorf("vec: actions of %d rows with %d indices and %d numbers, want %d, %d and %d",
			a.N, len(a.Disc), len(a.Cont), n, d, c)
	}
	return nil
}

// check reports whether rows and b fit, and marks the rows with the call's number. None of them may be out.
func (v *Vec) check(rows []int, b *env.Batch) ([]int, error) {
	if v.closed {
		return nil, env.ErrClosed
	}
	if err := v.checkBatch(b); err != nil {
		return nil, err
	}
	return v.checkRows(rows)
}

func (v *Vec) checkBatch(b *env.Batch) error {
	n := len(v.rows)
	if b.N != n || len(b.Kind) != n || len(b.Reward) != n || len(b.Elapsed) != n ||
		len(b.Obs) != n*v.obsLen || len(b.Mask) != n*v.maskLen || len(b.Info) != n*v.infoLen {
		return fmt.Errorf("vec: batch of %d rows with %d observations, %d mask bits and %d infos, want %d, %d, %d and %d",
			b.N, len(b.Obs), len(b.Mask), len(b.Info), n, n*v.obsLen, n*v.maskLen, n*v.infoLen)
	}
	return nil
}

func (v *Vec) checkRows(rows []int) ([]int, error) {
	n := len(v.rows)
	if rows == nil {
		rows = v.all
	}
	v.serial++
	for _, i := range rows {
		if i < 0 || i >= n {
			return nil, fmt.Errorf("vec: row %d of %d", i, n)
		}
		if v.asked[i] == v.serial {
			return nil, fmt.Errorf("vec: row %d is asked for twice", i)
		}
		if v.rows[i].out {
			return nil, &RowError{i, ErrOut}
		}
		v.asked[i] = v.serial
	}
	return rows, nil
}

func (v *Vec) do(c call) error {
	for _, i := range c.rows {
		r := &v.rows[i]
		r.done, r.final, r.err = false, false, nil
		v.view(&v.ts[i], c.b, i)
	}
	v.call = c
	// Only a cancelled context ends the loop early; failures are recorded per row.
	err := v.team.Run(c.ctx, v.cfg.Workers, len(c.rows), v.work)
	v.call = call{}

	clearFinal(c.b)
	failed, ended := false, false
	for _, i := range c.rows {
		r := &v.rows[i]
		if !r.done {
			r.err = err
		}
		if r.err != nil {
			failed = true
			continue
		}
		v.publish(c.b, i)
		ended = ended || r.final
	}
	if ended {
		for i := range v.rows {
			if v.asked[i] == v.serial && v.rows[i].final {
				v.gather(c.b, i)
			}
		}
	}
	if !failed {
		return nil
	}
	return v.failures(c.rows)
}

// failures joins the errors of rows.
func (v *Vec) failures(rows []int) error {
	var errs []error
	for _, i := range rows {
		if e := v.rows[i].err; e != nil {
			errs = append(errs, &RowError{i, e})
		}
	}
	return errors.Join(errs...)
}

// view makes ts a view of row i of b.
func (v *Vec) view(ts *env.TimeStep, b *env.Batch, i int) {
	o, m, n := v.obsLen, v.maskLen, v.infoLen
	ts.Obs = b.Obs[i*o : (i+1)*o : (i+1)*o]
	ts.Mask = b.Mask[i*m : (i+1)*m : (i+1)*m]
	ts.Info = b.Info[i*n : (i+1)*n : (i+1)*n]
}

// clearFinal empties b's Final columns.
func clearFinal(b *env.Batch) {
	b.FinalRows, b.FinalObs = b.FinalRows[:0], b.FinalObs[:0]
	b.FinalMask, b.FinalInfo = b.FinalMask[:0], b.FinalInfo[:0]
}

// gather appends the last time step of row i's ended episode to b's Final columns.
func (v *Vec) gather(b *env.Batch, i int) {
	o, m, n := v.obsLen, v.maskLen, v.infoLen
	b.FinalRows = append(b.FinalRows, i)
	b.FinalObs = append(b.FinalObs, v.finalObs[i*o:(i+1)*o]...)
	b.FinalMask = append(b.FinalMask, v.finalMask[i*m:(i+1)*m]...)
	b.FinalInfo = append(b.FinalInfo, v.finalInfo[i*n:(i+1)*n]...)
}

// one processes row number p of the call.
func (v *Vec) one(_, p int) {
	c := &v.call
	i := c.rows[p]
	r := &v.rows[i]
	if c.a != nil {
		r.err = v.step(c, i)
	} else if c.ep != nil {
		r.err = v.begin(c, i, &c.ep[p])
	} else {
		r.err = v.begin(c, i, nil)
	}
	r.done = true
}

// begin begins episode ep of row i; nil means the next one of its stream.
func (v *Vec) begin(c *call, i int, ep *env.Episode) error {
	r, ts := &v.rows[i], &v.ts[i]
	e, next := r.next(), ep == nil || c.next
	if ep != nil {
		seed := e.Seed
		e = *ep
		if next {
			e.Seed = seed
		}
	}
	if err := v.envs[i].Reset(c.ctx, e, ts); err != nil {
		r.live = false
		return err
	}
	if next {
		r.episode++
	} else {
		r.seed, r.episode = e.Seed, 0
	}
	if ep != nil {
		r.setTask(e.Task)
	}
	r.live, r.ended = true, false
	v.note(i)
	return nil
}

// note keeps the scalars of row i's time step. The batch gets them after the call's work (publish): the kinds of 64
// rows are one cache line, which the workers would take from each other at every row.
func (v *Vec) note(i int) {
	r, ts := &v.rows[i], &v.ts[i]
	r.kind, r.reward, r.elapsed = ts.Kind, ts.Reward, ts.Elapsed
}

// publish writes the scalars of row i's time step to the batch.
func (v *Vec) publish(b *env.Batch, i int) {
	r := &v.rows[i]
	b.Kind[i], b.Reward[i], b.Elapsed[i] = r.kind, r.reward, r.elapsed
}

func (v *Vec) step(c *call, i int) error {
	r, ts := &v.rows[i], &v.ts[i]
	if r.live && r.ended && v.cfg.Autoreset == NextStep {
		return v.begin(c, i, nil) // the dead step: the action is ignored
	}
	if !r.live || r.ended {
		return env.ErrResetNeeded
	}
	d, n := v.discLen, v.contLen
	a := env.Action{Disc: c.a.Disc[i*d : (i+1)*d], Cont: c.a.Cont[i*n : (i+1)*n]}
	if err := v.envs[i].Step(c.ctx, a, ts); err != nil {
		return err
	}
	r.ended = ts.Kind.Last()
	if !r.ended || v.cfg.Autoreset != SameStep {
		v.note(i)
		return nil
	}
	copy(v.finalObs[i*v.obsLen:], ts.Obs)
	copy(v.finalMask[i*v.maskLen:], ts.Mask)
	copy(v.finalInfo[i*v.infoLen:], ts.Info)
	kind, reward, elapsed := ts.Kind, ts.Reward, ts.Elapsed
	if err := v.begin(c, i, nil); err != nil {
		return fmt.Errorf("episode ended; beginning the next: %w", err)
	}
	ts.Kind, ts.Reward, ts.Elapsed = kind, reward, elapsed
	v.note(i)
	r.final = true
	return nil
}
