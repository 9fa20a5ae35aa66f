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
	var err *wire.Error
	if h.id, err = o.Req.Str("env", ""); err != nil {
		return nil, err
	}
	if h.id == "" {
		return nil, wire.Errorf(wire.BadRequest, "field env is missing, want the id of an environment")
	}
	n, err := o.Req.Int("n", 1, 1, 1<<31)
	if err != nil {
		return nil, err
	}
	if n > int64(lim.MaxEnvs) {
		return nil, &wire.Error{Code: wire.Capacity, Msg: "environments of one handle", Got: strconv.FormatInt(n, 10), Want: fmt.Sprintf("at most %d", lim.MaxEnvs)}
	}
	kwargs, err := o.Req.Sub("kwargs")
	if err != nil {
		return nil, err
	}
	if kwargs, err = h.choose(o, kwargs, int(n)); err != nil {
		return nil, err
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
func (h *Handle) choose(o *Opening, kwargs wire.Map, n int) (wire.Map, *wire.Error) {
	req := o.Req
	mode, err := oneOf(req, "autoreset", vec.NextStep.String(), vec.SameStep.String(), vec.Disabled.String())
	if err != nil {
		return nil, err
	}
	if e := h.mode.UnmarshalText([]byte(mode)); e != nil {
		return nil, wire.Errorf(wire.BadRequest, "field autoreset: %v", e)
	}
	if h.view, err = oneOf(req, "obs", wire.ViewDict, wire.ViewFlat); err != nil {
		return nil, err
	}
	masks, err := req.Strs("mask", []string{"info"})
	if err != nil {
		return nil, err
	}
	for _, m := range masks {
		switch m {
		case "info":
			h.maskInfo = true
		case "obs":
			h.maskObs = true
		default:
			return nil, &wire.Error{Code: wire.BadRequest, Msg: "field mask", Got: quoted(m), Want: "a list of info and obs"}
		}
	}
	if h.maskObs && h.view != wire.ViewDict {
		return nil, wire.Errorf(wire.BadRequest, "field mask: the mask stands in the observation only with obs dict, want mask info with obs %s", h.view)
	}
	if kwargs, err = h.chooseInvalid(req, kwargs); err != nil {
		return nil, err
	}
	if h.render, err = req.Str("render_mode", ""); err != nil {
		return nil, err
	}
	recv, err := oneOf(req, "recv", "all", "any")
	if err != nil {
		return nil, err
	}
	if recv == "any" && !o.Async {
		return nil, wire.Errorf(wire.Unsupported, "field recv is any, which needs the feature async in hello")
	}
	if recv == "all" && req.Get("batch") != nil {
		return nil, wire.Errorf(wire.BadRequest, "field batch has a meaning only with recv any")
	}
	if h.shm, err = req.Bool("shm", false); err != nil {
		return nil, err
	}
	switch {
	case h.shm && !o.Share:
		return nil, wire.Errorf(wire.Unsupported, "field shm needs the feature shm, which was not agreed on in hello")
	case h.shm && recv == "any":
		return nil, wire.Errorf(wire.BadRequest, "field shm has a meaning only with recv all")
	}
	batch, err := req.Int("batch", int64(n), 1, int64(n))
	h.batch = int(batch)
	return kwargs, err
}

// chooseInvalid reads what happens to masked actions. The penalty may be among the kwargs.
func (h *Handle) chooseInvalid(req, kwargs wire.Map) (wire.Map, *wire.Error) {
	name, err := oneOf(req, "invalid", "noop", "penalty", "error")
	if err != nil {
		return nil, err
	}
	h.invalid = map[string]policy{"noop": invalidNoop, "penalty": invalidPenalty, "error": invalidError}[name]
	if h.invalid != invalidPenalty {
		if req.Get("penalty") != nil {
			return nil, wire.Errorf(wire.BadRequest, "field penalty has a meaning only with invalid penalty")
		}
		return kwargs, nil
	}
	v := req.Get("penalty")
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
		return nil, &wire.Error{Code: wire.BadRequest, Msg: "field penalty", Got: brief(v), Want: "a number, 0 or more"}
	}
	return kwargs, nil
}

// oneOf returns the string at key, which must be one of names. The first of them is the default.
func oneOf(req wire.Map, key string, names ...string) (string, *wire.Error) {
	s, err := req.Str(key, names[0])
	if err != nil {
		return "", err
	}
	if !slices.Contains(names, s) {
		return "", &wire.Error{Code: wire.BadRequest, Msg: "field " + key, Got: quoted(s), Want: strings.Join(names, ", ")}
	}
	return s, nil
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
		return &wire.Error{Code: wire.Unsupported, Msg: "field render_mode", Got: quoted(h.render), Want: strings.Join(modes, ", ")}
	}
	return nil
}

// origin returns the hash of environment and scenario. If the factory gives no hash of everything that decides episodes,
// the kwargs are hashed instead.
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
			return &wire.Error{Code: wire.BadRequest, Msg: "field info", Got: quoted(v), Want: "none, metrics, episode, all or a list of keys"}
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
			return &wire.Error{Code: wire.BadRequest, Msg: "field info", Got: quoted(k), Want: "keys among episode, metrics, " + strings.Join(names, ", ")}
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
	tasks := h.taskSpec()
	n := 5
	if tasks != nil {
		n++
	}
	if h.region != nil {
		n++
	}
	w.Reply(o.Re, wire.OpOpen, n)
	w.Key("h")
	w.Uint(uint64(o.H))
	w.Key("obs_space")
	w.Value(wire.ObsSpace(h.spec, h.view, h.maskObs))
	w.Key("act_space")
	w.Value(wire.ActionSpace(h.spec))
	w.Key("spec")
	h.writeSpec(w, made.SHA)
	w.Key("meta")
	w.Value(h.meta(made.Meta))
	if tasks != nil {
		w.Key("tasks")
		w.Value(fields(tasks))
	}
	if h.region != nil {
		w.Key("shm")
		h.writeShare(w)
	}
	if w.Len() > h.lim.MaxFrameOut {
		return wire.Errorf(wire.TooLarge, "the description of the environment has %d bytes, want at most %d", w.Len(), h.lim.MaxFrameOut)
	}
	return nil
}
