package client

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"clustergym/bridge/wire"
	"clustergym/env"
)

// layout describes how replies hold an environment's time steps, and holds the columns of the reply being read.
type layout struct {
	spec      env.Spec
	obs, mask int
	info      map[string]int // by key: the index in Spec.Info, or one of the negative constants below

	// Of the current reply. All columns are checked before anything is written to the caller's buffers.
	obsCol   wire.Array
	maskCol  wire.Array
	rCol     wire.Array
	teCol    wire.Array
	trCol    wire.Array
	firstCol wire.Array
	elapsed  column
	infoCol  []column
}

// column is one key of a reply's info: the values, and which of them are known. All are if known has no shape.
type column struct{ v, known wire.Array }

func (c *column) at(i int) float64 {
	if c.v.Shape == nil || c.known.Shape != nil && c.known.Data[i] == 0 {
		return math.NaN()
	}
	return c.v.Float(i)
}

// The entries of layout.info that are not an index.
const (
	keyMask = -1 - iota
	keyElapsed
	knownElapsed
	knownInfo // and below: of index knownInfo - key
)

func newLayout(s env.Spec) layout {
	l := layout{spec: s, obs: s.ObsLen(), mask: s.MaskLen(), info: map[string]int{}, infoCol: make([]column, len(s.Info))}
	for i, f := range s.Info {
		l.info[f.Name], l.info["_"+f.Name] = i, knownInfo-i
	}
	l.info[wire.MaskKey], l.info["elapsed_s"], l.info["_elapsed_s"] = keyMask, keyElapsed, knownElapsed
	return l
}

// read checks the columns of m, which describes k time steps. With transitions m also has rewards and ends.
func (l *layout) read(m wire.Map, k int, transitions bool) error {
	var err error
	l.obsCol = need(&err, m, "obs", wire.F32, k, l.obs)
	if transitions {
		l.rCol = need(&err, m, "r", wire.F64, k, -1)
		l.teCol = need(&err, m, "te", wire.Bool, k, -1)
		l.trCol = need(&err, m, "tr", wire.Bool, k, -1)
	}
	if err != nil {
		return err
	}
	return l.readInfo(m, k, l.mask > 0)
}

// readFinal checks the columns of the last time steps of k episodes.
func (l *layout) readFinal(m wire.Map, k int) (withMasks bool, err error) {
	if l.obsCol = need(&err, m, "obs", wire.F32, k, l.obs); err != nil {
		return false, err
	}
	err = l.readInfo(m, k, false)
	return l.mask > 0 && l.maskCol.Shape != nil, err
}

// readInfo checks the columns of info.
func (l *layout) readInfo(m wire.Map, k int, masks bool) error {
	info, e := m.Sub("info")
	if e != nil {
		return replyFault(e)
	}
	l.maskCol, l.elapsed = wire.Array{}, column{}
	clear(l.infoCol)
	for _, p := range info {
		i, ours := l.info[p.Key]
		if !ours {
			continue
		}
		a, isArray := p.Value.(wire.Array)
		if !isArray || len(a.Shape) == 0 || a.Shape[0] != k {
			return fmt.Errorf("%w: info %s is no array of %d rows", ErrReply, p.Key, k)
		}
		if i == keyMask {
			if len(a.Shape) != 2 || a.Shape[1] != l.mask || a.DType.Size() != 1 {
				return fmt.Errorf("%w: masks of shape %v %v, want bytes of [%d %d]", ErrReply, a.Shape, a.DType, k, l.mask)
			}
			l.maskCol = a
			continue
		}
		if len(a.Shape) != 1 {
			return fmt.Errorf("%w: info %s has shape %v, want [%d]", ErrReply, p.Key, a.Shape, k)
		}
		known := i == knownElapsed || i <= knownInfo
		if known && a.DType != wire.Bool {
			return fmt.Errorf("%w: info %s is of type %v, want bool", ErrReply, p.Key, a.DType)
		}
		switch {
		case i == keyElapsed:
			l.elapsed.v = a
		case i == knownElapsed:
			l.elapsed.known = a
		case known:
			l.infoCol[knownInfo-i].known = a
		default:
			l.infoCol[i].v = a
		}
	}
	if masks && l.maskCol.Shape == nil {
		return fmt.Errorf("%w: no masks", ErrReply)
	}
	return nil
}

// need returns the array at key, which must have k rows of width numbers, or be of one dimension if width is negative.
// Otherwise it sets err, unless that is set already.
func need(err *error, m wire.Map, key string, d wire.DType, k, width int) wire.Array {
	a, ok := m.Get(key).(wire.Array)
	shape := a.Shape
	rows := ok && a.DType == d && len(shape) > 0 && shape[0] == k
	if *err != nil || rows && (width < 0 && len(shape) == 1 || len(shape) == 2 && shape[1] == width) {
		return a
	}
	want := []int{k}
	if width >= 0 {
		want = append(want, width)
	}
	if *err = fmt.Errorf("%w: no array %s, want %v %v", ErrReply, key, want, d); ok {
		*err = fmt.Errorf("%w: %s is %v %v, want %v %v", ErrReply, key, shape, a.DType, want, d)
	}
	return a
}

// row returns row i of a column of width numbers.
func row(a wire.Array, i, width int) wire.Array {
	n := width * a.DType.Size()
	return wire.Array{DType: a.DType, Shape: a.Shape[1:], Data: a.Data[i*n : (i+1)*n]}
}

// write copies the state in row i of the reply to a time step's buffers.
func (l *layout) write(i int, obs []float32, mask []bool, info []float64) {
	row(l.obsCol, i, l.obs).F32s(obs)
	if len(mask) > 0 {
		for j, b := range row(l.maskCol, i, l.mask).Data {
			mask[j] = b != 0
		}
	}
	for j := range info {
		info[j] = l.infoCol[j].at(i)
	}
}

// reward returns the reward of row i.
func (l *layout) reward(i int) float64 { return l.rCol.Float(i) }

// kind returns the kind of row i, which is not the first step of an episode.
func (l *layout) kind(i int) env.Kind {
	switch {
	case l.teCol.Data[i] != 0:
		return env.Terminated
	case l.trCol.Data[i] != 0:
		return env.Truncated
	}
	return env.Mid
}

// duration returns Elapsed of row i.
func (l *layout) duration(i int) time.Duration { return nanoseconds(l.elapsed.at(i)) }

// nanoseconds returns s seconds as a Duration. It inverts time.Duration.Seconds exactly up to 48 days, because it
// splits off the fraction before it rounds.
func nanoseconds(s float64) time.Duration {
	if !(math.Abs(s) < math.MaxInt64/1e9) {
		return 0
	}
	whole, frac := math.Modf(s)
	return time.Duration(whole)*time.Second + time.Duration(math.Round(frac*1e9))
}

// putI32 writes src to dst, 4 bytes for each element.
func putI32(dst []byte, src []int32) {
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
	}
}

// actions writes the given rows of a, nil meaning all, as the field a of a request.
func (l *layout) actions(w *wire.Writer, rows []int, a *env.Actions) {
	d, c := len(l.spec.Action.Sizes), len(l.spec.Action.Low)
	k := len(rows)
	if rows == nil {
		k = a.N
	}
	if d > 0 && c > 0 {
		w.Map(2)
		w.Key("cont")
	}
	if c > 0 {
		to := w.Array(wire.F32, k, c)
		each(rows, k, func(i, r int) { wire.PutF32(to[4*c*i:], a.Cont[c*r:c*(r+1)]) })
	}
	if d > 0 && c > 0 {
		w.Key("disc")
	}
	switch {
	case d == 1:
		to := w.Array(wire.I32, k)
		each(rows, k, func(i, r int) { putI32(to[4*i:], a.Disc[r:r+1]) })
	case d > 1:
		to := w.Array(wire.I32, k, d)
		each(rows, k, func(i, r int) { putI32(to[4*d*i:], a.Disc[d*r:d*(r+1)]) })
	}
}

// each calls f with the position and the row of each of k rows.
func each(rows []int, k int, f func(i, row int)) {
	for i := range k {
		if rows != nil {
			f(i, rows[i])
		} else {
			f(i, i)
		}
	}
}
