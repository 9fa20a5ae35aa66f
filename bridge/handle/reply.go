package handle

import (
	"context"
	"encoding/binary"
	"math"

	"clustergym/bridge/wire"
	"clustergym/env"
	"clustergym/env/vec"
	"clustergym/internal/par"
)

// The keys of infos that the server adds.
const (
	discountKey = "discount"
	elapsedKey  = "elapsed_s"
	episodeKey  = "episode"
	invalidKey  = "invalid"
	metricsKey  = "metrics" // no key of info: it stands for all metrics of the environment
	seedKey     = "seed"

	elapsedColumn = -1
	sameStep      = "same_step"
	renderText    = "ansi"
	renderPixels  = "rgb_array"
)

// infoColumn is one key of info. Its values are a column of the batch's Info, or the elapsed time.
type infoColumn struct {
	key, present string // present is the key of the booleans that say which rows have it
	col          int
	metric       bool // only rows whose episode ended have it
}

// view is what a reply shows: k rows of a batch's columns. The final part of a reply shows the batch's Final columns,
// which have only the ended episodes.
type view struct {
	k    int
	rows []int // of the handle, in the order of the reply
	at   []int // of the columns; nil means the first k
	obs  []float32
	mask []bool
	info []float64
	kind viewKind
}

type viewKind uint8

const (
	viewReset viewKind = iota // first time steps: no episode ended, no action was taken
	viewStep
	viewFinal    // the last time steps of the rows' ended episodes
	viewRestored // time steps of any kind
)

// present returns the view of rows of the batch.
func (h *Handle) present(rows []int, kind viewKind) view {
	v := view{k: len(rows), rows: rows, at: rows, obs: h.b.Obs, mask: h.b.Mask, info: h.b.Info, kind: kind}
	if len(rows) == len(h.all) && &rows[0] == &h.all[0] {
		v.at = nil
	}
	return v
}

// final returns the view of the batch's Final columns.
func (h *Handle) final() view {
	b := h.b
	return view{k: len(b.FinalRows), rows: b.FinalRows, obs: b.FinalObs, mask: b.FinalMask, info: b.FinalInfo,
		kind: viewFinal}
}

// writeObs writes the observations of v.
func (h *Handle) writeObs(w *wire.Writer, v view) {
	s := &h.shape
	if h.region != nil && v.kind != viewFinal {
		h.writeUnshared(w, v)
		return
	}
	if h.view == wire.ViewFlat {
		s.rowDims[0] = v.k
		h.gather(w.Array(wire.F32, s.rowDims...), v, 0, s.obs)
		return
	}
	w.Map(len(s.parts))
	for i := range s.parts {
		p := &s.parts[i]
		w.Key(p.name)
		p.dims[0] = v.k
		if p.mask {
			gatherBool(w.Array(wire.U8, p.dims...), v.mask, s.mask, v.k, v.at)
			continue
		}
		h.gather(w.Array(wire.F32, p.dims...), v, p.at, p.n)
	}
}

// shared is the size of an array, in bytes, from which on several goroutines copy it. Below this size, or if steps are
// so cheap that one goroutine does them all, sharing the work costs more than it saves.
const shared = 128 << 10

// gather copies n elements of each row of v's observations, beginning with element at, to dst.
func (h *Handle) gather(dst []byte, v view, at, n int) {
	if h.pace.workers < 2 || len(dst) < shared {
		gatherF32(dst, v.obs, h.shape.obs, at, n, v.k, v.at)
		return
	}
	h.gatherShared(dst, v, at, n)
}

// gatherShared is gather by as many goroutines as step the environments. It is a function of its own because its
// closure makes every call allocate.
func (h *Handle) gatherShared(dst []byte, v view, at, n int) {
	parts := h.pace.workers
	each := (v.k + parts - 1) / parts
	// It cannot fail: fn returns no error, and the context does not end.
	_ = par.For(context.Background(), parts, parts, func(_, i int) error {
		from, to := min(i*each, v.k), min((i+1)*each, v.k)
		if v.at != nil {
			gatherF32(dst[4*n*from:4*n*to], v.obs, h.shape.obs, at, n, to-from, v.at[from:to])
		} else {
			gatherF32(dst[4*n*from:4*n*to], v.obs[from*h.shape.obs:], h.shape.obs, at, n, to-from, nil)
		}
		return nil
	})
}

// writeInfo writes the infos of v, each with booleans that say which rows have it.
func (h *Handle) writeInfo(w *wire.Writer, v view) {
	ended, forced, drawn := 0, 0, 0
	if h.notes {
		for _, i := range v.rows {
			r := &h.rows[i]
			if h.ends(i, v.kind) {
				ended++
			}
			if h.forced(i, v.kind) {
				forced++
			}
			if r.drawn && v.kind == viewReset {
				drawn++
			}
		}
	}
	showEnded := h.episode && ended > 0
	n := 0
	for i := range h.columns {
		if !h.columns[i].metric || ended > 0 {
			n += 2
		}
	}
	w.Map(n + 2*count(h.maskInfo, showEnded, forced > 0, drawn > 0))
	if h.maskInfo {
		w.Key(wire.MaskKey)
		h.shape.maskDims[0] = v.k
		gatherBool(w.Array(wire.I8, h.shape.maskDims...), v.mask, h.shape.mask, v.k, v.at)
		w.Key("_" + wire.MaskKey)
		ones(w.Array(wire.Bool, v.k))
	}
	for i := range h.columns {
		if c := &h.columns[i]; !c.metric || ended > 0 {
			h.writeColumn(w, c, v)
		}
	}
	if showEnded {
		h.writeEpisode(w, v)
	}
	if forced > 0 {
		w.Key(invalidKey)
		h.flags(w, v, h.forced)
		w.Key("_" + invalidKey)
		h.flags(w, v, h.forced)
	}
	if drawn > 0 {
		h.writeSeeds(w, v)
	}
}

// count returns how many of some entries a map has.
func count(there ...bool) int {
	n := 0
	for _, yes := range there {
		if yes {
			n++
		}
	}
	return n
}

// writeIDs lists the rows of a reply, if the request named them.
func writeIDs(w *wire.Writer, rows []int, named bool) {
	if named {
		w.Key("ids")
		gatherI32(w.Array(wire.I32, len(rows)), rows)
	}
}

func ones(dst []byte) {
	for i := range dst {
		dst[i] = 1
	}
}

// ends reports whether a view of this kind shows the end of an episode in row i.
func (h *Handle) ends(i int, kind viewKind) bool {
	switch kind {
	case viewFinal:
		return true
	case viewStep, viewRestored:
		return h.mode != vec.SameStep && h.b.Kind[i].Last()
	}
	return false
}

// forced reports whether a view of this kind shows that row i's action was replaced. In mode same_step the final part
// shows it for the last step of an episode.
func (h *Handle) forced(i int, kind viewKind) bool {
	if !h.rows[i].forced || kind == viewReset || kind == viewRestored {
		return false
	}
	return (kind == viewFinal) == (h.mode == vec.SameStep && h.b.Kind[i].Last())
}

// flags writes a boolean for each row of v.
func (h *Handle) flags(w *wire.Writer, v view, is func(i int, kind viewKind) bool) {
	dst := w.Array(wire.Bool, v.k)
	for p, i := range v.rows {
		dst[p] = 0
		if is(i, v.kind) {
			dst[p] = 1
		}
	}
}

// words writes a number of 8 bytes for each row of v: what of returns where has is true, and 0 elsewhere.
func (h *Handle) words(
	w *wire.Writer, d wire.DType, v view, has func(i int, kind viewKind) bool, of func(i int) uint64,
) {
	dst := w.Array(d, v.k)
	clear(dst)
	for p, i := range v.rows {
		if has(i, v.kind) {
			binary.LittleEndian.PutUint64(dst[8*p:], of(i))
		}
	}
}

// writeColumn writes one info and which rows have it. NaN and infinities count as unknown.
func (h *Handle) writeColumn(w *wire.Writer, c *infoColumn, v view) {
	w.Key(c.key)
	dst := w.Array(wire.F64, v.k)
	n := len(h.spec.Info)
	value := func(p int) float64 {
		if c.metric && !h.ends(v.rows[p], v.kind) {
			return nan
		}
		if c.col != elapsedColumn {
			at := p
			if v.at != nil {
				at = v.at[p]
			}
			return v.info[at*n+c.col]
		}
		i := v.rows[p]
		if v.kind != viewFinal && h.mode == vec.SameStep && h.b.Kind[i].Last() {
			return 0 // the row shows the first step of the next episode, which has no elapsed time
		}
		return h.b.Elapsed[i].Seconds()
	}
	for p := range v.k {
		x := value(p)
		if !isNumber(x) {
			x = 0
		}
		binary.LittleEndian.PutUint64(dst[8*p:], math.Float64bits(x))
	}
	w.Key(c.present)
	dst = w.Array(wire.Bool, v.k)
	for p := range v.k {
		dst[p] = 0
		if isNumber(value(p)) {
			dst[p] = 1
		}
	}
}

func isNumber(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// writeEpisode writes returns and lengths of the episodes whose end v shows.
func (h *Handle) writeEpisode(w *wire.Writer, v view) {
	w.Key(episodeKey)
	w.Map(2)
	w.Key("r")
	h.words(w, wire.F64, v, h.ends, func(i int) uint64 { return math.Float64bits(h.rows[i].ret) })
	w.Key("l")
	h.words(w, wire.I64, v, h.ends, func(i int) uint64 { return uint64(h.rows[i].length) })
	w.Key("_" + episodeKey)
	h.flags(w, v, h.ends)
}

// writeSeeds writes the seeds that the current reset drew.
func (h *Handle) writeSeeds(w *wire.Writer, v view) {
	drawn := func(i int, _ viewKind) bool { return h.rows[i].drawn }
	w.Key(seedKey)
	h.words(w, wire.U64, v, drawn, func(i int) uint64 {
		seed, _ := h.v.Episode(i)
		return seed
	})
	w.Key("_" + seedKey)
	h.flags(w, v, drawn)
}

// writeStep writes the reply to a step or a recv of rows. With named it lists the rows.
func (h *Handle) writeStep(w *wire.Writer, re uint32, op string, rows []int, named bool) {
	b := h.b
	w.Reply(re, op, 5+count(named, len(b.FinalRows) > 0, len(h.failed) > 0))
	v := h.present(rows, viewStep)
	w.Key("obs")
	h.writeObs(w, v)
	h.writeOutcome(w, rows)
	w.Key("info")
	h.writeInfo(w, v)
	writeIDs(w, rows, named)
	if len(b.FinalRows) > 0 {
		f := h.final()
		w.Key("fin")
		w.Map(3)
		writeIDs(w, f.rows, true)
		w.Key("obs")
		h.writeObs(w, f)
		w.Key("info")
		h.writeInfo(w, f)
	}
	h.writeFaults(w)
}

// writeOutcome writes r, te and tr.
func (h *Handle) writeOutcome(w *wire.Writer, rows []int) {
	w.Key("r")
	dst := w.Array(wire.F64, len(rows))
	for p, i := range rows {
		binary.LittleEndian.PutUint64(dst[8*p:], math.Float64bits(h.b.Reward[i]))
	}
	w.Key("te")
	h.writeKind(w, rows, env.Terminated)
	w.Key("tr")
	h.writeKind(w, rows, env.Truncated)
}

func (h *Handle) writeKind(w *wire.Writer, rows []int, kind env.Kind) {
	dst := w.Array(wire.Bool, len(rows))
	for p, i := range rows {
		dst[p] = 0
		if h.b.Kind[i] == kind {
			dst[p] = 1
		}
	}
}

// writeReset writes the reply to a reset.
func (h *Handle) writeReset(w *wire.Writer, re uint32, rows []int, named bool) {
	w.Reply(re, wire.OpReset, 2+count(named, len(h.failed) > 0))
	v := h.present(rows, viewReset)
	w.Key("obs")
	h.writeObs(w, v)
	w.Key("info")
	h.writeInfo(w, v)
	writeIDs(w, rows, named)
	h.writeFaults(w)
}

// writeRestored writes the reply to a restore: the time steps of any kind that were current when the rows were saved.
func (h *Handle) writeRestored(w *wire.Writer, re uint32, rows []int, named bool) {
	w.Reply(re, wire.OpRestore, 6+count(named))
	v := h.present(rows, viewRestored)
	w.Key("obs")
	h.writeObs(w, v)
	h.writeOutcome(w, rows)
	w.Key("first")
	h.writeKind(w, rows, env.First)
	w.Key("info")
	h.writeInfo(w, v)
	writeIDs(w, rows, named)
}

// writeFaults lists the rows that failed while others did not: for each code the environments and the first message.
func (h *Handle) writeFaults(w *wire.Writer) {
	if len(h.failed) == 0 {
		return
	}
	var codes []wire.Code
	byCode := map[wire.Code]*wire.Error{}
	for _, f := range h.failed {
		e := byCode[f.code]
		if e == nil {
			e = &wire.Error{Code: f.code, Msg: f.msg}
			byCode[f.code], codes = e, append(codes, f.code)
		}
		e.Env = append(e.Env, f.row)
	}
	w.Key("fault")
	w.List(len(codes))
	for _, c := range codes {
		w.Value(wire.MapOf("code", string(c), "msg", byCode[c].Msg, "env", byCode[c].Env))
	}
}
