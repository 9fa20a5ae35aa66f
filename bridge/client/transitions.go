package client

import (
	"errors"
	"fmt"
	"slices"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// transitions writes the time steps of a reply, one for each of rows, to b.
func (v *Vec) transitions(m wire.Map, rows []int, b *env.Batch) error {
	fin, err := v.final(m)
	if err != nil {
		return err
	}
	if err := v.l.read(m, len(rows), true); err != nil {
		return err
	}
	if v.mode == SameStep {
		ends := 0
		for j := range rows {
			if v.l.kind(j).Last() {
				ends++
			}
		}
		if ends != len(fin) {
			return fmt.Errorf("%w: %d episodes ended and %d have a last time step", ErrReply, ends, len(fin))
		}
	}
	clearFinal(b)
	for j, i := range rows {
		v.writeRow(b, j, i)
		b.Reward[i], b.Elapsed[i] = v.l.reward(j), v.l.duration(j)
		if v.mode == NextStep && v.ended[i] {
			b.Kind[i] = env.First
		} else {
			b.Kind[i] = v.l.kind(j)
		}
		v.ended[i] = b.Kind[i].Last() && v.mode != SameStep
	}
	if len(fin) > 0 {
		if err := v.writeFinal(m, fin, b); err != nil {
			return err
		}
	}
	return v.faults(m)
}

// faults returns the failures of single rows that a reply lists, joined. The other rows are valid.
func (v *Vec) faults(m wire.Map) error {
	list, _ := m.Get("fault").([]any)
	var errs []error
	for _, x := range list {
		f, ok := x.(wire.Map)
		if !ok {
			return fmt.Errorf("%w: a fault that is no map", ErrReply)
		}
		e := wire.ErrorOf(f)
		for _, i := range e.Env {
			if i >= 0 && i < len(v.all) && e.Code != wire.BadAction {
				v.begun[i], v.ended[i] = false, false
			}
		}
		op, _ := m.Str("op", "")
		errs = append(errs, fmt.Errorf("rows %v: %w", e.Env, refused(op, e)))
	}
	return errors.Join(errs...)
}

// final returns the rows whose episode ended and whose last time step the reply has.
func (v *Vec) final(m wire.Map) ([]int64, error) {
	fin, e := m.Sub("fin")
	if e != nil || fin == nil {
		return nil, replyFault(e)
	}
	ids, e := fin.Ints("ids")
	if e != nil {
		return nil, replyFault(e)
	}
	for j, i := range ids {
		if i < 0 || i >= int64(len(v.all)) || j > 0 && i <= ids[j-1] {
			return nil, fmt.Errorf("%w: last time steps of rows %v", ErrReply, ids)
		}
	}
	return ids, nil
}

func replyFault(e *wire.Error) error {
	if e == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrReply, e)
}

// writeFinal appends the last time steps of the rows fin to b's Final columns.
func (v *Vec) writeFinal(m wire.Map, fin []int64, b *env.Batch) error {
	sub, e := m.Sub("fin")
	if e != nil {
		return replyFault(e)
	}
	withMasks, err := v.l.readFinal(sub, len(fin))
	if err != nil {
		return err
	}
	o, mk, n := v.l.obs, v.l.mask, len(v.l.spec.Info)
	for j, i := range fin {
		b.FinalRows = append(b.FinalRows, int(i))
		b.FinalObs, b.FinalInfo = longer(b.FinalObs, o), longer(b.FinalInfo, n)
		var mask []bool
		if withMasks {
			b.FinalMask = longer(b.FinalMask, mk)
			mask = b.FinalMask[j*mk:]
		}
		v.l.write(j, b.FinalObs[j*o:], mask, b.FinalInfo[j*n:])
		if v.l.elapsed.v.Shape != nil {
			b.Elapsed[i] = v.l.duration(j)
		}
	}
	return nil
}

// longer returns s with n more elements.
func longer[T any](s []T, n int) []T { return slices.Grow(s, n)[:len(s)+n] }

// writeRow writes the state in row j of the reply to row i of b.
func (v *Vec) writeRow(b *env.Batch, j, i int) {
	o, m, n := v.l.obs, v.l.mask, len(v.l.spec.Info)
	v.l.write(j, b.Obs[i*o:(i+1)*o], b.Mask[i*m:(i+1)*m], b.Info[i*n:(i+1)*n])
}

func clearFinal(b *env.Batch) {
	b.FinalRows, b.FinalObs = b.FinalRows[:0], b.FinalObs[:0]
	b.FinalMask, b.FinalInfo = b.FinalMask[:0], b.FinalInfo[:0]
}
