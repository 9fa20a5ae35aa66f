package handle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/control"
)

// makeOne makes one environment.
type makeOne func(kwargs wire.Map) (env.Env, error)

// testFactory makes the environments of makers and of env/control.
type testFactory struct {
	makers map[string]makeOne
	sha    string
	meta   any
}

func (f *testFactory) List() []Listing { return nil }

func (f *testFactory) Make(_ context.Context, id string, kwargs wire.Map, n int) (*Made, error) {
	mk := f.makers[id]
	if mk == nil {
		if !slices.Contains(control.IDs(), id) {
			return nil, wire.Errorf(wire.UnknownEnv, "no environment %q", id)
		}
		mk = func(wire.Map) (env.Env, error) { return control.New(id) }
	}
	m := &Made{SHA: f.sha, Meta: f.meta}
	for range n {
		e, err := mk(kwargs)
		if err != nil {
			return nil, err
		}
		m.Envs = append(m.Envs, e)
	}
	return m, nil
}

// driver plays requests on one handle, as a session does.
type driver struct {
	t   testing.TB
	f   *testFactory
	lim Limits
	o   Opening
	enc wire.Encoding
	h   *Handle
	w   *wire.Writer
	re  uint32
	raw []byte // the last reply
}

// keyed returns keys of which the current one is key.
func keyed(key string) *Keys { return NewKeys(func() []byte { return []byte(key) }) }

func newDriver(t testing.TB, f *testFactory) *driver {
	return &driver{t: t, f: f, lim: Limits{MaxEnvs: 4096, MaxFrameIn: 16 << 20, MaxFrameOut: 64 << 20},
		w: wire.NewWriter(wire.Ext), o: Opening{
			H: 7, Async: true, Key: keyed("the key of this server"), Log: slog.New(slog.DiscardHandler),
		}}
}

// frame returns a request as it comes from the wire.
func (d *driver) frame(op string, fields wire.Map) wire.Map {
	d.t.Helper()
	d.re++
	w := wire.NewWriter(d.enc)
	w.Value(append(wire.Map{{Key: "op", Value: op}, {Key: "id", Value: int64(d.re)}, {Key: "h", Value: int64(7)}},
		fields...))
	m, err := wire.Decode(w.Bytes(), d.enc, wire.DefaultLimits())
	if err != nil {
		d.t.Fatalf("%s: %v", op, err)
	}
	return m
}

// reply decodes what the handle wrote.
func (d *driver) reply(op string, w *wire.Writer, err error) (wire.Map, *wire.Error) {
	d.t.Helper()
	if err != nil {
		var e *wire.Error
		if !errors.As(err, &e) {
			e = wire.Errorf(wire.Internal, "%v", err)
		}
		return nil, e
	}
	d.raw = slices.Clone(w.Bytes())
	m, e := wire.Decode(d.raw, d.enc, wire.DefaultLimits())
	if e != nil {
		d.t.Fatalf("%s: the reply cannot be read: %v", op, e)
	}
	if re, _ := m.Int("re", 0, 0, math.MaxUint32); uint32(re) != d.re || m.Get("op") != op {
		d.t.Fatalf("%s %d: the reply is %v %v", op, d.re, m.Get("op"), re)
	}
	return m, nil
}

func (d *driver) tryOpen(fields wire.Map) (wire.Map, *wire.Error) {
	d.t.Helper()
	o := d.o
	o.Req = d.frame(wire.OpOpen, fields)
	o.Re = d.re
	w := wire.NewWriter(d.enc)
	h, err := Open(context.Background(), d.f, d.lim, &o, w)
	if err == nil {
		d.h = h
		d.t.Cleanup(func() {
			if err := h.Close(); err != nil {
				d.t.Error(err)
			}
		})
	}
	d.w = wire.NewWriter(d.enc)
	return d.reply(wire.OpOpen, w, err)
}

// open opens the handle, or ends the test.
func (d *driver) open(id string, fields ...wire.Pair) wire.Map {
	d.t.Helper()
	m, err := d.tryOpen(append(wire.Map{{Key: "env", Value: id}}, fields...))
	if err != nil {
		d.t.Fatalf("open %s: %v", id, err)
	}
	return m
}

// try plays one request.
func (d *driver) try(op string, fields ...wire.Pair) (wire.Map, *wire.Error) {
	d.t.Helper()
	req := d.frame(op, fields)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	d.w.Reset()
	return d.reply(op, d.w, d.h.Do(ctx, op, d.re, req, d.w))
}

// do plays one request that must succeed.
func (d *driver) do(op string, fields ...wire.Pair) wire.Map {
	d.t.Helper()
	m, err := d.try(op, fields...)
	if err != nil {
		d.t.Fatalf("%s: %v", op, err)
	}
	return m
}

// fails plays one request that must fail with code, and returns its error reply.
func (d *driver) fails(code wire.Code, op string, fields ...wire.Pair) wire.Error {
	d.t.Helper()
	_, err := d.try(op, fields...)
	if err == nil || err.Code != code {
		d.t.Fatalf("%s: error %v, want %s", op, err, code)
	}
	return *err
}

func field(key string, v any) wire.Pair { return wire.Pair{Key: key, Value: v} }

// i64s is an array of int64.
func i64s(v ...int64) wire.Array {
	a := wire.Array{DType: wire.I64, Shape: []int{len(v)}}
	for _, x := range v {
		for k := range 8 {
			a.Data = append(a.Data, byte(uint64(x)>>(8*k)))
		}
	}
	return a
}

// shaped is a with another shape.
func shaped(a wire.Array, shape ...int) wire.Array {
	a.Shape = shape
	return a
}

func f64s(v ...float64) wire.Array {
	a := wire.Array{DType: wire.F64, Shape: []int{len(v)}, Data: make([]byte, 8*len(v))}
	wire.PutF64(a.Data, v)
	return a
}

func f32s(v ...float32) wire.Array {
	a := wire.Array{DType: wire.F32, Shape: []int{len(v)}, Data: make([]byte, 4*len(v))}
	wire.PutF32(a.Data, v)
	return a
}

// at walks into nested maps.
func at(m wire.Map, path ...string) any {
	var v any = m
	for _, k := range path {
		m, ok := v.(wire.Map)
		if !ok {
			return nil
		}
		v = m.Get(k)
	}
	return v
}

// numbers returns the elements of an array or of nested lists, nil if v is neither.
func numbers(v any) []float64 {
	switch v := v.(type) {
	case []float64:
		return v
	case wire.Array:
		out := make([]float64, v.Len())
		for i := range out {
			out[i] = v.Float(i)
		}
		return out
	case []any:
		out := []float64{}
		for _, x := range v {
			switch x := x.(type) {
			case bool:
				if x {
					out = append(out, 1)
				} else {
					out = append(out, 0)
				}
			case float64:
				out = append(out, x)
			case int64:
				out = append(out, float64(x))
			default:
				out = append(out, numbers(x)...)
			}
		}
		return out
	}
	return nil
}

// is fails the test unless v's elements are want.
func is(t testing.TB, what string, v any, want ...float64) {
	t.Helper()
	if got := numbers(v); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// toy is an environment whose every number is known in advance. Its observation is [seed mod 100, steps, scalar 0.5],
// its reward the action's index plus what the box adds. It ends after five steps, Terminated if the seed is even,
// Truncated if it is odd. It panics, fails or waits when told to.
type toy struct {
	spec   env.Spec
	seed   uint64
	window int
	steps  int
	kind   env.Kind
	begun  bool
	closed bool
	task   []float64
	total  float64

	panicAt int           // the step that panics, from 1
	failAt  int           // the step that fails
	barren  bool          // it has no episodes
	refuse  int32         // an action that it refuses although the mask allows it
	wait    chan struct{} // step waits for it
}

const toyEnd = 5

func toySpec() env.Spec {
	return env.Spec{
		ID: "Toy-v3",
		Obs: []env.Field{
			{Name: "aa", Shape: []int{2}, Low: 0, High: 100, Unit: "steps", Doc: "seed and steps"},
			{Name: "zz", Low: 0, High: 1, Unit: "fraction", Doc: "a half"},
		},
		Action: env.ActionSpec{Sizes: []int{4}},
		Info: []env.Field{
			{Name: "discount", Low: 0, High: 1, Unit: "fraction", Doc: "per step"},
			{Name: "late", Low: 0, High: 10, Unit: "steps", Doc: "known from the third step on"},
		},
		MaxSteps: toyEnd, Solved: math.NaN(), NoOp: 3, Tau: time.Hour,
	}
}

func newToy() *toy { return &toy{spec: toySpec(), refuse: -1} }

func (e *toy) Spec() env.Spec { return e.spec }

func (e *toy) Close() error {
	e.closed = true
	return nil
}

func (e *toy) Reset(_ context.Context, ep env.Episode, ts *env.TimeStep) error {
	e.begun = false
	if e.barren {
		return fmt.Errorf("%w: a barren toy", env.ErrEpisode)
	}
	if ep.Window >= 8 {
		return fmt.Errorf("%w: window %d, want 0 to 7", env.ErrEpisode, ep.Window)
	}
	if ep.Split != "" && ep.Split != env.SplitTest {
		return fmt.Errorf("%w: split %q, want test", env.ErrEpisode, ep.Split)
	}
	e.seed, e.window, e.steps, e.kind, e.begun, e.total = ep.Seed, ep.Window, 0, env.First, true, 0
	e.task = slices.Clone(ep.Task)
	e.fill(ts, 0)
	return nil
}

func (e *toy) Step(_ context.Context, a env.Action, ts *env.TimeStep) error {
	if !e.begun || e.kind.Last() {
		return env.ErrResetNeeded
	}
	if e.wait != nil {
		<-e.wait
	}
	if len(a.Disc) > 0 && a.Disc[0] == e.refuse {
		return fmt.Errorf("%w: %d", env.ErrIllegalAction, a.Disc[0])
	}
	if e.steps+1 == e.panicAt {
		ts.Obs[0] = -7 // half written
		panic("the toy is broken")
	}
	if e.steps+1 == e.failAt {
		return errors.New("the toy has failed")
	}
	e.steps++
	e.kind = env.Mid
	if e.steps == toyEnd {
		e.kind = env.Terminated + env.Kind(e.seed%2)
	}
	reward := 0.0
	for _, k := range a.Disc {
		reward = reward*10 + float64(k)
	}
	for _, x := range a.Cont {
		reward += float64(x)
	}
	e.total += reward
	e.fill(ts, reward)
	return nil
}

// fill writes the current time step. Action 1 is masked at even steps, and at odd ones the no-op 3 too.
func (e *toy) fill(ts *env.TimeStep, reward float64) {
	ts.Kind, ts.Reward, ts.Elapsed = e.kind, reward, 0
	if e.kind != env.First {
		ts.Elapsed = time.Duration(e.steps) * time.Minute
	}
	ts.Obs[0], ts.Obs[1], ts.Obs[2] = float32(e.seed%100), float32(e.steps), 0.5
	for i := range ts.Mask {
		ts.Mask[i] = true
	}
	if len(ts.Mask) > 3 {
		ts.Mask[1] = false
		ts.Mask[3] = e.steps%2 == 0
	}
	if len(ts.Info) > 1 {
		ts.Info[0], ts.Info[1] = 0.9, math.NaN()
		if e.steps >= 3 {
			ts.Info[1] = float64(e.steps)
		}
	}
}

// savedToy adds snapshots, tasks, rendering and methods.
type savedToy struct{ *toy }

func (e savedToy) AppendSnapshot(dst []byte) ([]byte, error) {
	b, err := json.Marshal([]any{e.seed, e.steps, e.kind, e.window + 1, e.total})
	return append(dst, b...), err
}

func (e savedToy) RestoreSnapshot(src []byte, ts *env.TimeStep) error {
	var v [4]uint64
	var total float64
	all := []any{&v[0], &v[1], &v[2], &v[3], &total}
	if err := json.Unmarshal(src, &all); err != nil || len(all) != 5 || v[2] > 3 || v[1] > toyEnd {
		return fmt.Errorf("%w: %v", env.ErrSnapshot, err)
	}
	e.seed, e.steps, e.kind, e.window, e.total, e.begun = v[0], int(v[1]), env.Kind(v[2]), int(v[3])-1, total, true
	e.fill(ts, 0)
	return nil
}

func (e savedToy) Render(w io.Writer, mode string) error {
	_, err := fmt.Fprintf(w, "step %d in %s\n", e.steps, mode)
	return err
}

func (e savedToy) TaskSpec() []env.Field {
	return []env.Field{{Name: "speed", Low: 0, High: 2, Unit: "m/s"}, {Name: "goal", Shape: []int{2}, Low: -1, High: 1}}
}

func (e savedToy) Call(method string, args wire.Map) (any, error) {
	if method == methodHeuristic {
		rule, err := args.Str("rule", "first")
		if err != nil {
			return nil, err
		}
		if rule == "burst" {
			panic("the toy bursts")
		}
		return int64(len(rule)), nil
	}
	return map[string]any{"steps": e.steps, "total": e.total}, nil
}
