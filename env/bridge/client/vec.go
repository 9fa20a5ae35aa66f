package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"clustergym/env"
	"clustergym/env/bridge/wire"
)

// Autoreset says what happens when the episode of a row ends; package env/vec describes the modes.
type Autoreset string

// The modes.
const (
	NextStep Autoreset = "next_step"
	SameStep Autoreset = "same_step"
	Disabled Autoreset = "disabled"
)

// VecConfig is how a Vec's environments are opened. The zero value is NextStep, and errors for illegal actions.
type VecConfig struct {
	Autoreset Autoreset
	// Invalid says what a masked action does: "error" (the default), "noop" or "penalty".
	Invalid string
	// Batch is the number of rows that one Recv waits for; 0 = all that are out, which is what Step does.
	Batch int
}

// Vec is N environments at the other end of the wire, stepped together as package env/vec steps them at home: row i
// runs the episodes env.EpisodeSeed(s+i, k) of the seed s, 0 until Seed or Reset says otherwise, and its bytes are
// the same. A Vec is not safe for concurrent use.
type Vec struct {
	remote
	mode  Autoreset
	all   []int
	begun []bool
	ended []bool // the row's episode is over and NextStep or Disabled has not begun another
	fresh []bool // Seed has been called since the row's last reset
	seed  uint64
	batch int

	asked  []uint64 // call by call, as in env/vec
	serial uint64
	out    []bool // sent and not yet received
	rows   []int  // of the last reply
	sends  []sent
}

// sent is a send whose reply has not been looked at.
type sent struct {
	cl   *call
	rows []int
}

// remote is what Env and Vec share.
type remote struct {
	h      *handle
	l      layout
	tasks  []env.Field
	meta   wire.Map
	sha    string
	closed bool
}

// OpenVec opens n environments to be stepped together. kwargs are as the environment documents them: numbers,
// strings, booleans, and lists and maps (string keys) of them.
func (c *Client) OpenVec(ctx context.Context, id string, kwargs map[string]any, n int, cfg VecConfig) (*Vec, error) {
	if n < 1 || cfg.Batch < 0 || cfg.Batch > n {
		return nil, fmt.Errorf("client: open %s: %d environments with %d for a Recv, want 1 or more, and at most as many", id, n, cfg.Batch)
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
		remote: *r, mode: cfg.Autoreset, batch: cfg.Batch, all: make([]int, n), begun: make([]bool, n), ended: make([]bool, n),
		fresh: make([]bool, n), asked: make([]uint64, n), out: make([]bool, n),
	}
	for i := range v.all {
		v.all[i] = i
	}
	v.Seed(0)
	return v, nil
}

// Spec is the spec that all environments share. It is rebuilt from what the server says and equals the one at home.
func (r *remote) Spec() env.Spec { return r.l.spec }

// Meta is what the server says about the environments beyond their spec; see the environment's page. It is not to be
// changed.
func (r *remote) Meta() wire.Map { return r.meta }

// Scenario is the hash of everything that decides episodes: workload, cluster, configuration. "" = the server did not
// say.
func (r *remote) Scenario() string { return r.sha }

// Len is the number of rows.
func (v *Vec) Len() int { return len(v.all) }

// Seed makes row i run the episodes env.EpisodeSeed(s+i, k), k = 0, 1, … from its next Reset on. An episode under way
// goes on, and so does the row's stream where autoreset begins the next.
func (v *Vec) Seed(s uint64) {
	v.seed = s
	for i := range v.fresh {
		v.fresh[i] = true
	}
}

// Reset begins an episode in the rows asked, nil meaning all, and writes their first time steps to b; other rows of b
// stay as they are. ep[k] is the episode of rows[k]; its Seed becomes the seed of that row's stream. With ep nil every
// row asked begins the next episode of its stream.
//
// An error means that the rows asked need another Reset, unless it says that nothing was asked of the server.
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
			writeOptions(w, &ep[j])
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

// special tells that ep is not described by its seed alone.
func special(ep env.Episode) bool { return ep.Window != -1 || ep.Task != nil || ep.Split != "" }

// writeOptions writes what of ep is not its seed.
func writeOptions(w *wire.Writer, ep *env.Episode) {
	n := 0
	for _, there := range []bool{ep.Window != -1, ep.Task != nil, ep.Split != ""} {
		if there {
			n++
		}
	}
	w.Map(n)
	if ep.Window != -1 {
		w.Key("window")
		w.Int(int64(ep.Window))
	}
	if ep.Task != nil {
		w.Key("task")
		w.Value(ep.Task)
	}
	if ep.Split != "" {
		w.Key("split")
		w.Str(ep.Split)
	}
}

// Step applies row i of a to environment i, for the rows asked, nil meaning all, and writes what follows to their rows
// of b; other rows of b stay as they are. b's Final columns describe this call alone. An error of the server leaves
// every row as it was.
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

// prepare says why no step can be asked for.
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

// request writes a step or a send.
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

// transitions writes the time steps of a reply, which are those of rows, to b.
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

// faults are the failures of single rows that a reply lists; the others are valid.
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

// final lists the rows of which a reply has the last time step of an episode that ended.
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

// longer is s with n more elements.
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

// check says whether rows and b fit. It gives the rows, nil where all are meant in their order, and their number.
func (v *Vec) check(rows []int, b *env.Batch) ([]int, int, error) {
	if v.closed {
		return nil, 0, env.ErrClosed
	}
	n, o, m, f := len(v.all), v.l.obs, v.l.mask, len(v.l.spec.Info)
	if b.N != n || len(b.Kind) != n || len(b.Reward) != n || len(b.Elapsed) != n ||
		len(b.Obs) != n*o || len(b.Mask) != n*m || len(b.Info) != n*f {
		return nil, 0, fmt.Errorf("client: batch of %d rows with %d observations, %d mask bits and %d infos, want %d, %d, %d and %d",
			b.N, len(b.Obs), len(b.Mask), len(b.Info), n, n*o, n*m, n*f)
	}
	return v.checkRows(rows)
}

// checkRows says whether rows are distinct rows of v.
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

// Close gives the environments back to the server; later calls return env.ErrClosed. Closing twice is harmless, and so
// is closing when the session is over.
func (r *remote) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	ctx := context.Background()
	r.h.begin(wire.OpClose, 0)
	err := r.h.exchange(ctx, true)
	r.h.c.forget(r.h.id)
	if errors.Is(err, ErrLost) || errors.Is(err, env.ErrClosed) {
		return nil // it has gone with the session
	}
	if err != nil {
		return err
	}
	r.h.release()
	return nil
}
