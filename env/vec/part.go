package vec

import (
	"fmt"

	"clustergym/internal/par"
)

// Part returns a Vec of rows from to to-1 alone, counted from 0. It shares their environments and all of their state
// with v: each continues what the other did to a row. Parts without a common row may be used at the same time, each on
// its own goroutine; v itself may be used only while none of them is, and no row may be out. A part has one
// worker and is not closed; closing v closes the environments.
func (v *Vec) Part(from, to int) (*Vec, error) {
	n := to - from
	if from < 0 || n < 1 || to > len(v.rows) {
		return nil, fmt.Errorf("vec: rows from %d to %d of %d", from, to-1, len(v.rows))
	}
	for i := from; i < to; i++ {
		if v.rows[i].out {
			return nil, &RowError{i, ErrOut}
		}
	}
	p := &Vec{
		cfg: Config{Workers: 1, Autoreset: v.cfg.Autoreset}, spec: v.spec, closed: v.closed,
		envs: v.envs[from:to:to], rows: v.rows[from:to:to], ts: v.ts[from:to:to],
		obsLen: v.obsLen, maskLen: v.maskLen, infoLen: v.infoLen, discLen: v.discLen, contLen: v.contLen,
		all: v.all[:n:n], asked: make([]uint64, n),
	}
	if v.finalObs != nil {
		o, m, k := v.obsLen, v.maskLen, v.infoLen
		p.finalObs, p.finalMask, p.finalInfo = v.finalObs[from*o:to*o], v.finalMask[from*m:to*m], v.finalInfo[from*k:to*k]
	}
	p.team, p.work = par.NewTeam(), p.one
	return p, nil
}
