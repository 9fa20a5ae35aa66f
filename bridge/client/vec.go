package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// Autoreset is what happens when the episode of a row ends. Package env/vec describes the modes.
type Autoreset string

// The modes.
const (
	NextStep Autoreset = "next_step"
	SameStep Autoreset = "same_step"
	Disabled Autoreset = "disabled"
)

// VecConfig says how a Vec's environments are opened. The zero value has autoreset NextStep, and illegal actions are
// errors.
type VecConfig struct {
	Autoreset Autoreset
	// Invalid is what a masked action does: "error" (the default), "noop" or "penalty".
	Invalid string
	// Batch is the number of rows that one Recv waits for. With 0 there is no Send and Recv, only Step.
	Batch int
}

// Vec is N environments in the server's process, stepped together as package env/vec steps them, with the same bytes:
// row i runs the episodes env.EpisodeSeed(s+i, k) of a seed s, which is 0 until Seed or Reset changes it. A Vec is not
// safe for concurrent use.
type Vec struct {
	remote
	mode  Autoreset
	all   []int
	begun []bool
	ended []bool // the row's episode is over, and no other has begun (NextStep, Disabled)
	fresh []bool // Seed has been called since the row's last reset
	seed  uint64
	batch int

	asked  []uint64 // by row: the serial of the last call that named it, to find rows named twice
	serial uint64
	out    []bool // sent and not yet received
	rows   []int  // of the last reply
	sends  []sent
}

// sent is a send whose reply has not been read.
type sent struct {
	cl   *call
	rows []int
}

// remote holds what Env and Vec share.
type remote struct {
	h      *handle
	l      layout
	tasks  []env.Field
	meta   wire.Map
	sha    string
	closed bool
}

// OpenVec opens n environments of the same id and kwargs, to be stepped together. kwargs are those of Open.
func (c *Client) OpenVec(ctx context.Context, id string, kwargs map[string]any, n int, cfg VecConfig) (*Vec, error) {
	if n < 1 || cfg.Batch < 0 || cfg.Batch > n {
		return nil, fmt.Errorf("client: open %s: %d environments with %d for a Recv, want 1 or more, and at most as many", id,
			n, cfg.Batch)
	}
	if cfg.Autoreset == "" {
		cfg.Autoreset = NextStep
	}
	if cfg.Invalid == "" {
		cfg.Invalid = "error"
	}
	r, err := c.open(ctx, request{id, kwargs, n, cfg})
	if err != nil {
		return nil, err
	}
	v := &Vec{
		remote: *r, mode: cfg.Autoreset, batch: cfg.Batch, all: make([]int,
			n), begun: make([]bool, n), ended: make([]bool, n),
		fresh: make([]bool, n), asked: make([]uint64, n), out: make([]bool, n),
	}
	for i := range v.all {
		v.all[i] = i
	}
	v.Seed(0)
	return v, nil
}

// Spec returns the spec that all environments share. It is built from the server's reply and equals the environment's
// own.
func (r *remote) Spec() env.Spec { return r.l.spec }

// Meta returns the map meta of the server's reply to open (docs/reference/wire.md), with what the environment's page
// adds to it. Do not change it.
func (r *remote) Meta() wire.Map { return r.meta }

// Scenario returns the hash of everything that decides episodes: workload, cluster, configuration. It is "" if the
// server did not send one.
func (r *remote) Scenario() string { return r.sha }

// Len returns the number of rows.
func (v *Vec) Len() int { return len(v.all) }

// Seed makes row i run the episodes env.EpisodeSeed(s+i, k), k = 0, 1, …, from its next Reset on. Until then the row
// keeps its old stream, also when autoreset begins an episode.
func (v *Vec) Seed(s uint64) {
	v.seed = s
	for i := range v.fresh {
		v.fresh[i] = true
	}
}

// SetTask sets the task of row i from its next reset on. nil is the environment's own task.
func (v *Vec) SetTask(ctx context.Context, i int, task []float64) error {
	if v.closed {
		return env.ErrClosed
	}
	if i < 0 || i >= len(v.all) {
		return fmt.Errorf("client: row %d of %d", i, len(v.all))
	}
	own := any(nil)
	if task != nil {
		own = task
	}
	v.h.request(wire.OpCall, wire.MapOf("method", "set_task", "ids", []int{i}, "args", wire.MapOf("task", own)))
	if err := v.h.roundTrip(ctx); err != nil {
		return err
	}
	v.h.release()
	return nil
}

// Reset begins an episode in each of rows and writes the first time steps to these rows of b. rows nil means all rows;
// the other rows of b do not change. ep[k] is the episode of rows[k], and its Seed becomes the seed of that row's
// stream. With ep nil each row begins the next episode of its stream.
//
// After an error the rows need another Reset, unless the error is about the arguments: then nothing has changed.
func (v *Vec) Reset(ctx context.Context, rows []int, ep []env.Episode, b *env.Batch) error {
	rows, k, err := v.check(rows, b)
	if err != nil {
		return err
	}
	if ep != nil && len(ep) != k {
		return fmt.Errorf("client: %d episodes for %d rows", len(ep), k)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := v.home(rows, k); err != nil {
		return err
	}
	n := 1
	if rows != nil {
		n++
	}
	if ep != nil && slices.ContainsFunc(ep, special) {
		n++
	}
	w := v.h.begin(wire.OpReset, n)
	if rows != nil {
		w.Key("ids")
		w.Value(rows)
	}
	w.Key("seed")
	w.List(k)
	each(rows, k, func(j, i int) {
		switch {
		case ep != nil:
			w.Uint(ep[j].Seed)
		case v.fresh[i]:
			w.Uint(v.seed + uint64(i))
		default:
			w.Nil()
		}
	})
	if ep != nil && slices.ContainsFunc(ep, special) {
		w.Key("options")
		w.List(k)
		for j := range ep {
			w.Value(options(&ep[j]))
		}
	}
	each(rows, k, func(_, i int) { v.begun[i] = false })
	if err := v.h.exchange(ctx, rows == nil); err != nil {
		return err
	}
	defer v.h.release()
	if err := v.l.read(v.h.reply.reply, k, false); err != nil {
		return err
	}
	clearFinal(b)
	each(rows, k, func(j, i int) {
		v.begun[i], v.ended[i], v.fresh[i] = true, false, false
		v.writeRow(b, j, i)
		b.Kind[i], b.Reward[i], b.Elapsed[i] = env.First, 0, 0
	})
	return v.faults(v.h.reply.reply)
}

// special reports whether ep sets more than its seed.
func special(ep env.Episode) bool { return ep.Window != -1 || ep.Task != nil || ep.Split != "" }

// options returns ep without its seed.
func options(ep *env.Episode) wire.Map {
	m := wire.Map{}
	if ep.Window != -1 {
		m.Add("window", ep.Window)
	}
	if ep.Task != nil {
		m.Add("task", ep.Task)
	}
	if ep.Split != "" {
		m.Add("split", ep.Split)
	}
	return m
}

// Step applies row i of a to environment i for each i of rows, and writes the results to these rows of b. rows nil
// means all rows; the other rows of b do not change. The Final columns of b describe this call only. An error from the
// server leaves every row as it was.
func (v *Vec) Step(ctx context.Context, rows []int, a *env.Actions, b *env.Batch) error {
	rows, k, err := v.check(rows, b)
	if err != nil {
		return err
	}
	if err := v.prepare(ctx, rows, k, a); err != nil {
		return err
	}
	if err := v.home(rows, k); err != nil {
		return err
	}
	v.request(wire.OpStep, rows, a)
	if err := v.h.roundTrip(ctx); err != nil {
		return err
	}
	defer v.h.release()
	if rows == nil {
		rows = v.all
	}
	return v.transitions(v.h.reply.reply, rows, b)
}

// prepare returns the error of a step that cannot be requested.
func (v *Vec) prepare(ctx context.Context, rows []int, k int, a *env.Actions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, s := len(v.all), v.l.spec.Action
	if d, c := n*len(s.Sizes), n*len(s.Low); a.N != n || len(a.Disc) != d || len(a.Cont) != c {
		return fmt.Errorf("client: actions of %d rows with %d indices and %d numbers, want %d, %d and %d",
			a.N, len(a.Disc), len(a.Cont), n, d, c)
	}
	if v.h.kept != nil && v.h.kept.op == wire.OpReset {
		return nil // settle decides
	}
	err := error(nil)
	each(rows, k, func(_, i int) {
		if !v.begun[i] && err == nil {
			err = fmt.Errorf("client: row %d: %w", i, env.ErrResetNeeded)
		}
	})
	return err
}

// request writes the request of a step or a send.
func (v *Vec) request(op string, rows []int, a *env.Actions) {
	n := 1
	if rows != nil {
		n++
	}
	w := v.h.begin(op, n)
	if rows != nil {
		w.Key("ids")
		w.Value(rows)
	}
	w.Key("a")
	v.l.actions(w, rows, a)
}

// check returns an error unless rows and b fit this Vec. It returns the rows, nil for all in order, and their number.
func (v *Vec) check(rows []int, b *env.Batch) ([]int, int, error) {
	if v.closed {
		return nil, 0, env.ErrClosed
	}
	n, o, m, f := len(v.all), v.l.obs, v.l.mask, len(v.l.spec.Info)
	if b.N != n || len(b.Kind) != n || len(b.Reward) != n || len(b.Elapsed) != n ||
		len(b.Obs) != n*o || len(b.Mask) != n*m || len(b.Info) != n*f {
		return nil, 0,
			fmt.Errorf("client: batch of %d rows with %d observations, %d mask bits and %d infos, want %d, %d, %d and %d",
				b.N, len(b.Obs), len(b.Mask), len(b.Info), n, n*o, n*m, n*f)
	}
	return v.checkRows(rows)
}

// checkRows returns an error unless rows are distinct rows of v.
func (v *Vec) checkRows(rows []int) ([]int, int, error) {
	n := len(v.all)
	if rows == nil {
		return nil, n, nil
	}
	v.serial++
	for _, i := range rows {
		if i < 0 || i >= n {
			return nil, 0, fmt.Errorf("client: row %d of %d", i, n)
		}
		if v.asked[i] == v.serial {
			return nil, 0, fmt.Errorf("client: row %d is asked for twice", i)
		}
		v.asked[i] = v.serial
	}
	return rows, len(rows), nil
}

// Close closes the environments on the server. Later calls return env.ErrClosed. Closing twice, or after the session
// has ended, is harmless.
func (r *remote) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.h.begin(wire.OpClose, 0)
	err := r.h.exchange(context.Background(), true)
	r.h.c.forget(r.h.id)
	if errors.Is(err, ErrLost) || errors.Is(err, env.ErrClosed) {
		return nil // it ended with the session
	}
	if err != nil {
		return err
	}
	r.h.release()
	return nil
}
