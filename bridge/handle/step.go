package handle

import (
	"context"
	"runtime"
	"time"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
)

func (h *Handle) doStep(ctx context.Context, q request, w *wire.Writer) error {
	rows := q.rows
	if err := h.ready(rows, true); err != nil {
		return err
	}
	if err := h.actions(q.req, rows); err != nil {
		return err
	}
	steppers := 1
	if h.steppers != nil {
		steppers = int(h.steppers.Add(1))
		defer h.steppers.Add(-1)
	}
	h.v.SetWorkers(h.pace.choose(len(rows), steppers))
	begin := time.Now()
	stepped := h.v.Step(ctx, rows, h.a, h.b)
	h.pace.took(time.Since(begin), len(rows))
	return h.finish(q.re, wire.OpStep, rows, q.named, stepped, w)
}

// finish updates the states of rows that have been stepped and writes the reply.
func (h *Handle) finish(re uint32, op string, rows []int, named bool, stepped error, w *wire.Writer) error {
	if err := h.settle(stepped); err != nil {
		return err
	}
	for _, f := range h.failed {
		h.rows[f.row].forced = false
		h.shape.mark[f.row] = true
	}
	for _, i := range rows {
		if !h.shape.mark[i] {
			h.account(i)
		}
	}
	for _, f := range h.failed {
		h.shape.mark[f.row] = false
	}
	if err := h.allFailed(len(rows)); err != nil {
		return err
	}
	h.writeStep(w, re, op, rows, named)
	if h.mode == vec.SameStep {
		for _, i := range h.b.FinalRows {
			h.rows[i].ret, h.rows[i].length = 0, 0
		}
	}
	return nil
}

// account adds row i's time step to the return and length of its episode.
func (h *Handle) account(i int) {
	r := &h.rows[i]
	kind := h.b.Kind[i]
	if kind == env.First {
		r.ret, r.length, r.forced = 0, 0, false
		h.count.Resets++
		return
	}
	if r.forced && h.invalid == invalidPenalty {
		h.b.Reward[i] -= h.penalty
	}
	r.ret += h.b.Reward[i]
	r.length++
	h.count.Steps++
	if kind.Last() {
		h.count.Episodes++
		if h.mode == vec.SameStep {
			h.count.Resets++
		}
	}
}

// pace chooses how many goroutines step a handle's environments. Giving rows to a goroutine costs some microseconds, so
// it pays only if a call takes many times that. The number changes nothing but speed, so it may depend on the clock.
type pace struct {
	workers int
	fixed   bool
	row     float64 // nanoseconds of work for one row, smoothed
}

const (
	// worthwhile is the work of one call from which on several goroutines share it.
	worthwhile = 200 * time.Microsecond
	smoothing  = 1.0 / 8
)

func (p *pace) init(workers int) {
	p.workers, p.fixed = max(workers, 1), workers > 0
}

// choose returns the number of goroutines for a call of k rows, given how many calls are under way in the server. More
// goroutines than free processors would only compete with the other calls.
func (p *pace) choose(k, steppers int) int {
	if p.fixed {
		return p.workers
	}
	p.workers = 1
	if p.row*float64(k) > float64(worthwhile) {
		p.workers = max(min(runtime.GOMAXPROCS(0)/steppers, k), 1)
	}
	return p.workers
}

// most returns the number of goroutines for a call of k rows that is known to be expensive, as resets and restores are.
func (p *pace) most(k int) int {
	if p.fixed {
		return p.workers
	}
	return min(runtime.GOMAXPROCS(0), k)
}

// took records how long a call of k rows took.
func (p *pace) took(d time.Duration, k int) {
	if p.fixed {
		return
	}
	row := float64(d) * float64(p.workers) / float64(k)
	if p.row == 0 {
		p.row = row
	}
	p.row += (row - p.row) * smoothing
}
