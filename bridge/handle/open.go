package handle

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/plain"
)

// defaultPenalty is what a masked action costs if open asks for penalties and names no amount.
const defaultPenalty = 0.1

// Open makes the environments that o.Req asks for and writes the reply to w. Its errors are like those of Handle.Do.
func Open(ctx context.Context, f Factory, lim Limits, o *Opening, w *wire.Writer) (h *Handle, err error) {
	defer survive(&err)
	return newHandle(ctx, f, lim, o, w)
}

// survive turns a panic into an error. It is deferred, since no request may end a server that others use.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

func newHandle(ctx context.Context, f Factory, lim Limits, o *Opening, w *wire.Writer) (*Handle, error) {
	h := &Handle{lim: lim, log: o.Log, keys: o.Key, foreign: o.Foreign, steppers: o.Steppers}
	q := &wire.Fields{Map: o.Req}
	h.id = q.Str("env", "")
	n := q.Int("n", 1, 1, 1<<31)
	switch {
	case q.Err != nil:
	case h.id == "":
		q.Fail(wire.Errorf(wire.BadRequest, "field env is missing, want the id of an environment"))
	case n > int64(lim.MaxEnvs):
		q.Fail(&wire.Error{
			Code: wire.Capacity, Msg: "environments of one handle", Got: strconv.FormatInt(n, 10),
			Want: fmt.Sprintf("at most %d", lim.MaxEnvs),
		})
	}
	kwargs := h.choose(q, o, q.Sub("kwargs"), n)
	if q.Err != nil {
		return nil, q.Err
	}
	made, e := construct(ctx, f, h.id, kwargs, int(n))
	if e != nil {
		return nil, e
	}
	h.keepBooks(made, o.Budget)
	if e := h.assemble(made, kwargs, o, w.Encoding()); e != nil {
		closeAll(made.Envs)
		h.settleBooks()
		return nil, e
	}
	if err := h.writeOpened(w, o, made); err != nil {
		_ = h.Close() // the error to report is the first
		return nil, err
	}
	return h, nil
}

// construct calls the factory and turns its panics into errors.
func construct(ctx context.Context, f Factory, id string, kwargs wire.Map, n int) (made *Made, err error) {
	defer func() {
		if p := recover(); p != nil {
			made, err = nil, fmt.Errorf("making %d of %.80q panicked: %v\n%s", n, id, p, debug.Stack())
		}
	}()
	if made, err = f.Make(ctx, id, kwargs, n); err != nil {
		return nil, err
	}
	if len(made.Envs) != n {
		closeAll(made.Envs)
		discard(made)
		return nil, fmt.Errorf("making %d of %.80q gave %d environments", n, id, len(made.Envs))
	}
	return made, nil
}

func closeAll(envs []env.Env) {
	for i, e := range envs {
		if e != nil {
			_ = (&guard{inner: e, index: i}).close()
		}
	}
}

// close closes the environment and swallows a panic: its error has no receiver any more.
func (g *guard) close() (err error) {
	defer func() { _ = recover() }()
	return g.inner.Close()
}

// choose reads the fields that decide how the handle behaves, and returns the kwargs that are left for the environment.
func (h *Handle) choose(f *wire.Fields, o *Opening, kwargs wire.Map, n int64) wire.Map {
	mode := oneOf(f, "autoreset", vec.NextStep.String(), vec.SameStep.String(), vec.Disabled.String())
	if e := h.mode.UnmarshalText([]byte(mode)); e != nil {
		f.Fail(wire.Errorf(wire.BadRequest, "field autoreset: %v", e))
	}
	h.view = oneOf(f, "obs", wire.ViewDict, wire.ViewFlat)
	for _, m := range f.Strs("mask", []string{"info"}) {
		switch m {
		case "info":
			h.maskInfo = true
		case "obs":
			h.maskObs = true
		default:
			f.Fail(&wire.Error{Code: wire.BadRequest, Msg: "field mask", Got: quoted(m), Want: "a list of info and obs"})
		}
	}
	if h.maskObs && h.view != wire.ViewDict {
		f.Fail(wire.Errorf(wire.BadRequest,
			"field mask: the mask stands in the observation only with obs dict, want mask info with obs %s", h.view))
	}
	kwargs = h.chooseInvalid(f, kwargs)
	h.render = f.Str("render_mode", "")
	recv := oneOf(f, "recv", "all", "any")
	h.shm = f.Bool("shm", false)
	switch {
	case recv == "any" && !o.Async:
		f.Fail(wire.Errorf(wire.Unsupported, "field recv is any, which needs the feature async in hello"))
	case recv == "all" && f.Get("batch") != nil:
		f.Fail(wire.Errorf(wire.BadRequest, "field batch has a meaning only with recv any"))
	case h.shm && !o.Share:
		f.Fail(wire.Errorf(wire.Unsupported, "field shm needs the feature shm, which was not agreed on in hello"))
	case h.shm && recv == "any":
		f.Fail(wire.Errorf(wire.BadRequest, "field shm has a meaning only with recv all"))
	}
	h.batch = int(f.Int("batch", n, 1, n))
	return kwargs
}

// chooseInvalid reads what happens to masked actions. The penalty may be among the kwargs.
func (h *Handle) chooseInvalid(f *wire.Fields, kwargs wire.Map) wire.Map {
	name := oneOf(f, "invalid", "noop", "penalty", "error")
	h.invalid = map[string]policy{"noop": invalidNoop, "penalty": invalidPenalty, "error": invalidError}[name]
	v := f.Get("penalty")
	if h.invalid != invalidPenalty {
		if v != nil {
			f.Fail(wire.Errorf(wire.BadRequest, "field penalty has a meaning only with invalid penalty"))
		}
		return kwargs
	}
	if v == nil {
		v = kwargs.Get("penalty")
		kwargs = slices.DeleteFunc(slices.Clone(kwargs), func(p wire.Pair) bool { return p.Key == "penalty" })
	}
	switch v := v.(type) {
	case nil:
		h.penalty = defaultPenalty
	case float64:
		h.penalty = v
	case int64:
		h.penalty = float64(v)
	default:
		h.penalty = nan
	}
	if !(h.penalty >= 0 && h.penalty <= 1e300) {
		f.Fail(&wire.Error{Code: wire.BadRequest, Msg: "field penalty", Got: brief(v), Want: "a number, 0 or more"})
	}
	return kwargs
}

// oneOf returns the string at key, which must be one of names. The first of them is the default.
func oneOf(f *wire.Fields, key string, names ...string) string {
	s := f.Str(key, names[0])
	if !slices.Contains(names, s) {
		f.Fail(&wire.Error{Code: wire.BadRequest, Msg: "field " + key, Got: quoted(s), Want: strings.Join(names, ", ")})
	}
	return s
}

func quoted(s string) string { return fmt.Sprintf("%.40q", s) }

// brief returns a short description of a request's value for an error.
func brief(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return quoted(v)
	case bool, int64, uint64, float64:
		return fmt.Sprint(v)
	case []byte:
		return plain.Count(len(v), "byte", "bytes")
	case wire.Array:
		return "an array of " + v.DType.String()
	case []any:
		return "a list of " + strconv.Itoa(len(v))
	}
	return "a map"
}

// assemble completes the handle with what the factory made. If it fails, the caller still owns the environments.
func (h *Handle) assemble(made *Made, kwargs wire.Map, o *Opening, enc wire.Encoding) error {
	n := len(made.Envs)
	h.spec = made.Envs[0].Spec()
	h.origin = origin(h.id, made.SHA, kwargs)
	if err := h.chooseInfo(o.Req); err != nil {
		return err
	}
	if err := h.checkRender(made.Envs[0]); err != nil {
		return err
	}
	if h.spec.MaskLen() == 0 {
		h.maskInfo, h.maskObs = false, false
	}
	h.shape = newShape(h, n)
	h.encoding = enc
	if most := h.largestReply(n, enc); most > h.lim.MaxFrameOut {
		return &wire.Error{Code: wire.TooLarge, Msg: fmt.Sprintf("a reply for %d environments may take %d bytes", n, most),
			Want: fmt.Sprintf("at most %d: open fewer environments, or several handles", h.lim.MaxFrameOut)}
	}
	if err := h.reserve(made.Envs[0], n, o); err != nil {
		return err
	}
	wrapped := make([]env.Env, n)
	h.guards = make([]*guard, n)
	for i, e := range made.Envs {
		h.guards[i] = &guard{inner: e, index: i, id: h.id, log: h.log}
		wrapped[i] = h.guards[i]
	}
	h.pace.init(h.lim.Workers)
	v, err := vec.New(vec.Config{Workers: h.pace.workers, Autoreset: h.mode}, wrapped...)
	if err != nil {
		return err
	}
	h.v, h.rows, h.all = v, make([]rowState, n), make([]int, n)
	for i := range h.all {
		h.all[i] = i
	}
	h.b, h.a = env.NewBatch(h.spec, n), env.NewActions(h.spec, n)
	if h.shm {
		h.share()
	}
	return nil
}

func (h *Handle) checkRender(e env.Env) error {
	if h.render == "" {
		return nil
	}
	if modes := renderModes(e); !slices.Contains(modes, h.render) {
		return &wire.Error{Code: wire.Unsupported, Msg: "field render_mode", Got: quoted(h.render),
			Want: strings.Join(modes, ", ")}
	}
	return nil
}

// origin returns the hash of environment and scenario. If the factory gives no hash of everything that decides
// episodes, the kwargs are hashed instead.
func origin(id, sha string, kwargs wire.Map) (sum [32]byte) {
	w := wire.NewWriter(wire.Ext)
	w.List(3)
	w.Str(id)
	w.Str(sha)
	if sha != "" {
		w.Nil()
	} else {
		sorted := slices.Clone(kwargs)
		slices.SortFunc(sorted, func(a, b wire.Pair) int { return strings.Compare(a.Key, b.Key) })
		w.Value(sorted)
	}
	return sha256.Sum256(w.Bytes())
}

// chooseInfo reads which infos replies contain.
func (h *Handle) chooseInfo(req wire.Map) *wire.Error {
	var keys []string
	switch v := req.Get("info").(type) {
	case nil:
		keys = h.standardInfo()
	case string:
		switch v {
		case "none":
			return nil
		case episodeKey:
			keys = h.standardInfo()
		case metricsKey:
			keys = []string{metricsKey}
		case "all":
			keys = append(h.standardInfo(), h.infoNames()...)
		default:
			return &wire.Error{Code: wire.BadRequest, Msg: "field info", Got: quoted(v),
				Want: "none, metrics, episode, all or a list of keys"}
		}
	default:
		var err *wire.Error
		if keys, err = req.Strs("info", nil); err != nil {
			return err
		}
	}
	h.notes = true
	names := h.infoNames()
	metrics := false
	for _, k := range keys {
		switch {
		case k == episodeKey:
			h.episode = true
		case k == metricsKey:
			metrics = true
			for _, k := range h.timeInfo() {
				h.addColumn(names, k)
			}
		case !slices.Contains(names, k):
			return &wire.Error{Code: wire.BadRequest, Msg: "field info", Got: quoted(k),
				Want: "keys among episode, metrics, " + strings.Join(names, ", ")}
		default:
			h.addColumn(names, k)
		}
	}
	if metrics { // after the infos that every step has, which may include a metric asked for by name
		h.addMetrics()
	}
	return nil
}

// addColumn adds the info called key, which is one of names, to those of every step.
func (h *Handle) addColumn(names []string, key string) {
	col := slices.Index(names, key)
	if col == len(h.spec.Info) {
		col = elapsedColumn
	}
	h.addOnce(infoColumn{key: key, present: "_" + key, col: col})
}

// addMetrics adds the figures of whole episodes to the infos of last steps.
func (h *Handle) addMetrics() {
	for i, f := range h.spec.Info {
		if f.Metric {
			h.addOnce(infoColumn{key: f.Name, present: "_" + f.Name, col: i, metric: true})
		}
	}
}

func (h *Handle) addOnce(c infoColumn) {
	if !slices.ContainsFunc(h.columns, func(o infoColumn) bool { return o.col == c.col }) {
		h.columns = append(h.columns, c)
	}
}

// infoNames returns the names of the environment's infos and of the transition's simulated length.
func (h *Handle) infoNames() []string {
	var names []string
	for _, f := range h.spec.Info {
		names = append(names, f.Name)
	}
	return append(names, elapsedKey)
}

// standardInfo chooses the keys of info episode: returns and lengths, and timeInfo.
func (h *Handle) standardInfo() []string { return append([]string{episodeKey}, h.timeInfo()...) }

// timeInfo chooses what a learner needs to discount by time, if decisions are not evenly spaced.
func (h *Handle) timeInfo() []string {
	if h.spec.Tau <= 0 {
		return nil
	}
	if slices.Contains(h.infoNames(), discountKey) {
		return []string{discountKey, elapsedKey}
	}
	return []string{elapsedKey}
}

// writeOpened writes the reply to open.
func (h *Handle) writeOpened(w *wire.Writer, o *Opening, made *Made) error {
	m := wire.MapOf(
		"h", o.H, "obs_space", wire.ObsSpace(h.spec, h.view, h.maskObs), "act_space", wire.ActionSpace(h.spec),
		"spec", h.specOf(made.SHA), "meta", h.meta(made.Meta),
	)
	if tasks := h.taskSpec(); tasks != nil {
		m.Add("tasks", fields(tasks))
	}
	if h.region != nil {
		m.Add("shm", h.place())
	}
	w.Answer(o.Re, wire.OpOpen, m)
	if w.Len() > h.lim.MaxFrameOut {
		return wire.Errorf(wire.TooLarge, "the description of the environment has %d bytes, want at most %d", w.Len(),
			h.lim.MaxFrameOut)
	}
	return nil
}
