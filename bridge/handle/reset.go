package handle

import (
	"context"
	"errors"
	"fmt"
	"math"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/internal/plain"
)

func (h *Handle) doReset(ctx context.Context, q request, w *wire.Writer) error {
	rows := q.rows
	if e := h.fetch(ctx, rows); e != nil {
		return e
	}
	s, err := readSeeds(q.req, len(rows))
	if err != nil {
		return err
	}
	opts, err := h.options(q.req.Get("options"), len(rows))
	if err != nil {
		return err
	}
	// Rows with a seed begin a new stream; the others continue theirs.
	var seeded, going []int
	var begin, next []env.Episode
	for p, i := range rows {
		ep := env.Episode{Window: -1, Task: h.v.Task(i)}
		o := opts.of(p)
		h.rows[i].named = o != nil && (o.window >= 0 || o.split != "" || o.hasTask)
		if o != nil {
			ep.Window, ep.Split = o.window, o.split
			if o.hasTask {
				ep.Task = o.task
			}
		}
		seed, given := s.of(p, i)
		h.rows[i].drawn = false
		if !given && !h.rows[i].seeded {
			seed, given = drawSeed(), true
			h.rows[i].drawn = true
		}
		if given {
			ep.Seed = seed
			seeded, begin = append(seeded, i), append(begin, ep)
		} else {
			going, next = append(going, i), append(next, ep)
		}
	}
	h.v.SetWorkers(h.pace.most(len(rows)))
	undo := h.keep(opts, rows)
	var done error
	if len(seeded) > 0 {
		done = h.v.Reset(ctx, seeded, begin, h.b)
	}
	if len(going) > 0 {
		done = errors.Join(done, h.v.Continue(ctx, going, next, h.b))
	}
	if refused := h.refused(done); refused != nil {
		undo()
		return refused
	}
	if err := h.settle(done); err != nil {
		return err
	}
	for _, i := range rows {
		r := &h.rows[i]
		r.begun, r.fault, r.forced, r.ret, r.length = true, false, false, 0, 0
	}
	for _, i := range seeded {
		h.rows[i].seeded = true
	}
	for _, f := range h.failed {
		h.rows[f.row].fault = true
	}
	h.count.Resets += uint64(len(rows) - len(h.failed))
	if err := h.allFailed(len(rows)); err != nil {
		return err
	}
	h.writeReset(w, q.re, rows, q.named)
	return nil
}

// fetch returns an error if one of rows is out and so cannot be reset. After poison it first receives everything that
// is out, since those results belong to abandoned requests.
func (h *Handle) fetch(ctx context.Context, rows []int) error {
	if h.stray {
		// Failures of rows do not matter here, since the reset ends them or finds them again. Only a timeout does.
		if _, err := h.v.Recv(ctx, h.v.Pending(), h.b); h.v.Pending() > 0 {
			return err
		}
		h.stray = false
	}
	if err := h.home(rows); err != nil { // a nil *wire.Error is no nil error
		return err
	}
	return nil
}

// refused returns the error of a reset in which an environment does not have the episode that its options name. A row
// that has no episode although its options name none has failed by itself.
func (h *Handle) refused(done error) *wire.Error {
	list := flat(done)
	var e *wire.Error
	for _, re := range list {
		if !h.rows[re.Row].named || !errors.Is(re.Err, env.ErrEpisode) {
			continue
		}
		if e == nil {
			e = &wire.Error{Code: wire.BadRequest, Msg: "field options: " + re.Err.Error()}
		}
		e.Env = append(e.Env, re.Row)
	}
	return e
}

// keep saves rows, so that a refused reset changes nothing, and returns the function that restores them. Only a reset
// with options can be refused. An environment without snapshots cannot be restored: its row then needs a reset.
func (h *Handle) keep(opts *options, rows []int) (undo func()) {
	if opts == nil {
		return func() {}
	}
	before, err := h.v.AppendRows(nil, rows)
	rewards := make([]float64, len(rows))
	for p, i := range rows {
		rewards[p] = h.b.Reward[i]
	}
	return func() {
		for _, i := range rows {
			if h.rows[i].drawn {
				h.rows[i].drawn = false
			}
		}
		if err == nil {
			err = h.v.RestoreRows(before, rows, h.b)
		}
		for p, i := range rows {
			h.b.Reward[i] = rewards[p] // with what a masked action cost
			if err != nil {
				h.rows[i].begun = false
			}
		}
	}
}

// options holds the options of a reset: one set for all rows, or one for each.
type options struct {
	one  *option
	each []*option
}

type option struct {
	split   string
	window  int
	task    []float64
	hasTask bool
}

func (o *options) of(p int) *option {
	switch {
	case o == nil:
		return nil
	case o.each != nil:
		return o.each[p]
	}
	return o.one
}

// options reads the field options of a reset of k rows. It returns nil if no option is set.
func (h *Handle) options(v any, k int) (*options, *wire.Error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case wire.Map:
		if len(v) == 0 {
			return nil, nil
		}
		one, err := h.option(v)
		if err != nil {
			return nil, err
		}
		return &options{one: one}, nil
	case []any:
		if len(v) != k {
			return nil, wire.Errorf(wire.BadRequest, "field options has %s for %s", plain.Count(len(v), "entry", "entries"),
				plain.Count(k, "environment", "environments"))
		}
		all := &options{each: make([]*option, k)}
		for p, x := range v {
			if x == nil {
				continue
			}
			m, ok := x.(wire.Map)
			if !ok {
				return nil, wire.Errorf(wire.BadRequest, "field options has something else than a map at position %d", p)
			}
			var err *wire.Error
			if all.each[p], err = h.option(m); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return nil, wire.Errorf(wire.BadRequest,
		"field options, want a map, or a list of maps with one for each environment asked")
}

func (h *Handle) option(m wire.Map) (*option, *wire.Error) {
	o := &option{window: -1}
	for _, p := range m {
		switch p.Key {
		case "split", "window", "task":
		default:
			return nil, &wire.Error{Code: wire.BadRequest, Msg: "field options", Got: quoted(p.Key),
				Want: "split, window and task"}
		}
	}
	f := wire.Fields{Map: m}
	o.split, o.window = f.Str("split", ""), int(f.Int("window", -1, -1, math.MaxInt32))
	if o.hasTask = m.Has("task"); o.hasTask {
		task, e := h.task(m.Get("task"))
		o.task = task
		f.Fail(e)
	}
	return o, f.Err
}

// task reads a task. nil is the environment's own.
func (h *Handle) task(v any) ([]float64, *wire.Error) {
	if v == nil {
		return nil, nil
	}
	spec := h.taskSpec()
	if spec == nil {
		return nil, wire.Errorf(wire.Unsupported, "%.80s has no tasks", h.id)
	}
	n := 0
	for _, f := range spec {
		n += f.Len()
	}
	wrong := func(got string) *wire.Error {
		return &wire.Error{Code: wire.BadRequest, Msg: "a task", Got: got, Want: plain.Count(n, "number", "numbers")}
	}
	var task []float64
	switch v := v.(type) {
	case wire.Array:
		if len(v.Shape) != 1 {
			return nil, wrong(fmt.Sprintf("an array of %d dimensions", len(v.Shape)))
		}
		for p := range v.Len() {
			task = append(task, v.Float(p))
		}
	case []any:
		for _, x := range v {
			switch x := x.(type) {
			case float64:
				task = append(task, x)
			case int64:
				task = append(task, float64(x))
			default:
				return nil, wrong(brief(x))
			}
		}
	default:
		return nil, wrong(brief(v))
	}
	if len(task) != n {
		return nil, wrong(plain.Count(len(task), "number", "numbers"))
	}
	at := 0
	for _, f := range spec {
		for range f.Len() {
			if x := task[at]; !(x >= float64(f.Low) && x <= float64(f.High)) {
				return nil, &wire.Error{Code: wire.BadRequest, Msg: "a task: " + f.Name, Got: fmt.Sprint(x),
					Want: fmt.Sprintf("%v to %v", f.Low, f.High)}
			}
			at++
		}
	}
	return task, nil
}
