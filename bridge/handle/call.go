package handle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"clustergym/bridge/budget"
	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/plain"
	"clustergym/internal/rng"
)

// The methods of call.
const (
	methodSetTask    = "set_task"
	methodGetTask    = "get_task"
	methodSampleTask = "sample_tasks"
	methodMetrics    = "metrics"
	methodHeuristic  = "heuristic"
	methodAdvise     = "advise"
)

// mostTasks is how many tasks one call may sample.
const mostTasks = 4096

func (h *Handle) doMasks(q request, w *wire.Writer) error {
	rows := q.rows
	if err := h.ready(rows, false); err != nil {
		return err
	}
	if h.shape.mask == 0 {
		return wire.Errorf(wire.Unsupported, "%.80s has no masks: its actions are numbers", h.id)
	}
	w.Reply(q.re, wire.OpMasks, 1+count(q.named))
	w.Key("mask")
	gatherBool(w.Array(wire.I8, len(rows), h.shape.mask), h.b.Mask, h.shape.mask, len(rows), rows)
	writeIDs(w, rows, q.named)
	return nil
}

// taskSpec describes the environment's tasks, nil if it has none.
func (h *Handle) taskSpec() (spec []env.Field) {
	t, ok := h.guards[0].inner.(env.Tasker)
	if !ok {
		return nil
	}
	return t.TaskSpec()
}

// methods returns the methods that call answers.
func (h *Handle) methods() []string {
	list := []string{}
	if h.taskSpec() != nil {
		list = append(list, methodSetTask, methodGetTask, methodSampleTask)
	}
	if _, ok := h.guards[0].inner.(Caller); ok {
		list = append(list, methodMetrics, methodHeuristic)
	}
	if a, ok := h.guards[0].inner.(Adviser); ok && len(a.Advises()) > 0 {
		list = append(list, methodAdvise)
	}
	return list
}

func (h *Handle) renderModes() []string { return renderModes(h.guards[0].inner) }

// renderModes returns the modes in which e can be rendered. There is a picture of every environment: of its time step
// if it has no other.
func renderModes(e env.Env) []string {
	if _, ok := e.(env.Renderer); ok {
		return []string{renderText, renderPixels}
	}
	return []string{renderPixels}
}

func (h *Handle) doCall(ctx context.Context, q request, w *wire.Writer) error {
	f := wire.Fields{Map: q.req}
	method, args, rows := f.Str("method", ""), f.Sub("args"), q.rows
	if f.Err != nil {
		return f.Err
	}
	if err := h.home(rows); err != nil {
		return err
	}
	var ret []any
	var err *wire.Error
	switch method {
	case methodSetTask, methodGetTask, methodSampleTask:
		if h.taskSpec() == nil {
			return wire.Errorf(wire.Unsupported, "%.80s has no tasks", h.id)
		}
		ret, err = h.callTasks(method, args, rows)
	case methodMetrics, methodHeuristic:
		if !slices.Contains(h.methods(), method) {
			return wire.Errorf(wire.Unsupported, "%.80s has no method %s", h.id, method)
		}
		if err := h.ready(rows, false); err != nil {
			return err
		}
		for _, i := range rows {
			v, e := h.guards[i].call(method, args)
			if e != nil {
				return h.callFailed(i, e)
			}
			ret = append(ret, v)
		}
	case methodAdvise:
		advised, e := h.advise(ctx, args, rows)
		if e != nil {
			return e
		}
		ret = advised
	default:
		return &wire.Error{Code: wire.BadRequest, Msg: "field method", Got: quoted(method),
			Want: strings.Join([]string{methodSetTask, methodGetTask, methodSampleTask, methodMetrics, methodHeuristic,
				methodAdvise}, ", ")}
	}
	if err != nil {
		return err
	}
	w.Answer(q.re, wire.OpCall, wire.MapOf("ret", ret))
	return nil
}

// advise returns the action that a policy would take in each of rows. A row that begins an episode at its next step has
// no decision; any action does there, and it gets 0.
func (h *Handle) advise(ctx context.Context, args wire.Map, rows []int) (ret []any, err error) {
	if _, ok := h.guards[0].inner.(Adviser); !ok {
		return nil, wire.Errorf(wire.Unsupported, "%.80s has no method %s", h.id, methodAdvise)
	}
	if err := h.ready(rows, true); err != nil {
		return nil, err
	}
	for _, i := range rows {
		if h.mode == vec.NextStep && h.b.Kind[i].Last() {
			ret = append(ret, h.anyAction())
			continue
		}
		v, e := h.guards[i].advise(ctx, args)
		if e != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if e != nil {
			return nil, h.callFailed(i, e)
		}
		ret = append(ret, v)
		h.count.Advice++
	}
	return ret, nil
}

// anyAction returns an action of the space, for a row that will not use it.
func (h *Handle) anyAction() any {
	if n := len(h.spec.Action.Sizes); n != 1 {
		return make([]int64, n)
	}
	return int64(0)
}

// callFailed returns the error reply for a call that environment i failed to answer.
func (h *Handle) callFailed(i int, err error) error {
	var w *wire.Error
	var p *panicked
	switch {
	case errors.As(err, &w):
		e := *w
		e.Env = []int{i}
		return &e
	case errors.As(err, &p):
		h.rows[i].fault = true
		h.v.Drop(i)
		return &wire.Error{Code: wire.EnvFault, Msg: p.Error(), Env: []int{i}, Want: "a reset of it"}
	case errors.Is(err, env.ErrResetNeeded):
		return &wire.Error{Code: wire.NeedsReset, Msg: err.Error(), Env: []int{i}}
	}
	return &wire.Error{Code: wire.BadRequest, Msg: err.Error(), Env: []int{i}}
}

// callTasks answers the methods about tasks. It returns one result for each row, or for each sampled task.
func (h *Handle) callTasks(method string, args wire.Map, rows []int) (ret []any, err *wire.Error) {
	switch method {
	case methodGetTask:
		for _, i := range rows {
			ret = append(ret, asAny(h.v.Task(i)))
		}
		return ret, nil
	case methodSampleTask:
		return h.sampleTasks(args)
	}
	tasks := make([][]float64, len(rows))
	if list, ok := args.Get("tasks").([]any); ok {
		if len(list) != len(rows) {
			return nil, wire.Errorf(wire.BadRequest, "args tasks has %s for %s", plain.Count(len(list), "task", "tasks"),
				plain.Count(len(rows), "environment", "environments"))
		}
		for p := range rows {
			if tasks[p], err = h.task(list[p]); err != nil {
				return nil, err
			}
		}
	} else {
		if !args.Has("task") {
			return nil, wire.Errorf(wire.BadRequest, "args task is missing, want a task, or tasks with one for each environment")
		}
		one, err := h.task(args.Get("task"))
		if err != nil {
			return nil, err
		}
		for p := range rows {
			tasks[p] = one
		}
	}
	for p, i := range rows {
		if e := h.v.SetTask(i, tasks[p]); e != nil {
			return nil, wire.Errorf(wire.Internal, "%v", e)
		}
		ret = append(ret, nil)
	}
	return ret, nil
}

// asAny returns a task as a value of a reply: nil without a type for nil.
func asAny(task []float64) any {
	if task == nil {
		return nil
	}
	return task
}

func (h *Handle) sampleTasks(args wire.Map) (ret []any, err *wire.Error) {
	n, err := args.Int("n", 1, 1, mostTasks)
	if err != nil {
		return nil, err
	}
	s := drawSeed()
	if v := args.Get("seed"); v != nil {
		var ok bool
		if s, ok = seed(v); !ok {
			return nil, &wire.Error{Code: wire.BadSeed, Msg: "args seed", Want: "a whole number, 0 or more"}
		}
	}
	defer func() {
		if p := recover(); p != nil {
			ret, err = nil, wire.Errorf(wire.EnvFault, "%v", h.guards[0].caught("sample_tasks", p))
		}
	}()
	length := 0
	for _, f := range h.taskSpec() {
		length += f.Len()
	}
	src := rng.Stream(s, "bridge/tasks")
	for range n {
		task := make([]float64, length)
		h.guards[0].inner.(env.Tasker).SampleTask(src, task)
		for _, x := range task {
			if math.IsNaN(x) {
				return nil, wire.Errorf(wire.EnvFault, "%.80s sampled a task with NaN", h.id)
			}
		}
		ret = append(ret, task)
	}
	return ret, nil
}

func (h *Handle) doRender(q request, w *wire.Writer) error {
	rows := q.rows
	modes := h.renderModes()
	mode, err := q.req.Str("mode", modes[0])
	if err != nil {
		return err
	}
	if !slices.Contains(modes, mode) {
		return &wire.Error{Code: wire.Unsupported, Msg: "field mode", Got: quoted(mode), Want: strings.Join(modes, ", ")}
	}
	if err := h.ready(rows, false); err != nil {
		return err
	}
	w.Reply(q.re, wire.OpRender, 1+count(q.named))
	w.Key("render")
	show := h.showText
	if mode == renderPixels {
		show = h.showPixels
	}
	if err := show(rows, w); err != nil {
		return err
	}
	writeIDs(w, rows, q.named)
	return nil
}

// showText writes a text of each row.
func (h *Handle) showText(rows []int, w *wire.Writer) error {
	var pictures []string
	var b bytes.Buffer
	for _, i := range rows {
		b.Reset()
		if e := h.guards[i].render(&b, renderText); e != nil {
			return h.callFailed(i, e)
		}
		if !utf8.Valid(b.Bytes()) {
			return fmt.Errorf("environment %d of %s shows itself in something else than UTF-8", i, h.id)
		}
		pictures = append(pictures, b.String())
	}
	w.Value(pictures)
	return nil
}

// frameBytes is the size of a picture in a reply, canvasBytes that of the picture under way.
const (
	frameBytes  = 3 * env.FrameWidth * env.FrameHeight
	canvasBytes = 4 * env.FrameWidth * env.FrameHeight
)

// showPixels writes a picture of each row, as bytes [rows, height, width, 3].
func (h *Handle) showPixels(rows []int, w *wire.Writer) error {
	if most := h.lim.MaxFrameOut / frameBytes; len(rows) > most { // before anything is drawn
		return wire.Errorf(wire.TooLarge,
			"%d pictures of %d bytes, want at most %d in one reply: ask for fewer environments at once", len(rows), frameBytes,
			most)
	}
	if h.canvas == nil {
		// A handle that was opened for pictures has reserved it.
		if h.render != renderPixels && !h.books.account.Reserve(budget.Environments, canvasBytes) {
			return h.Refuse(canvasBytes)
		}
		h.canvas = env.NewFrame()
	}
	dst := w.Array(wire.U8, len(rows), env.FrameHeight, env.FrameWidth, 3)
	for _, i := range rows {
		ts := env.TimeStep{Kind: h.b.Kind[i], Reward: h.b.Reward[i], Obs: h.b.Obs[i*h.shape.obs:][:h.shape.obs],
			Mask: h.b.Mask[i*h.shape.mask:][:h.shape.mask]}
		steps := int(h.rows[i].length)
		if h.mode == vec.SameStep && ts.Kind.Last() { // the next episode has begun
			ts.Kind, steps = env.First, 0
		}
		if e := h.guards[i].paint(h.canvas, &ts, steps); e != nil {
			return h.callFailed(i, e)
		}
		// Pictures are opaque, so the fourth byte of a pixel says nothing.
		for p := h.canvas.Pix; len(p) > 0; p = p[4:] {
			dst[0], dst[1], dst[2] = p[0], p[1], p[2]
			dst = dst[3:]
		}
	}
	return nil
}
