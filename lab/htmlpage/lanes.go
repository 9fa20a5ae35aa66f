package htmlpage

import "slices"

// lanes assigns the places at which stints are drawn. The GPUs of a pool have no identity. A gang gets the lowest gap
// that holds it as a whole, or else the lowest free lanes. Shares of one GPU are drawn side by side.
type lanes struct {
	free   []bool    // only for a pool, by lane
	pieces [][]piece // by GPU or lane: the shares in use, ordered by off
}

// piece is a share of a GPU in thousandths.
type piece struct{ off, milli int16 }

// begin starts with n free lanes of a pool, unless on is false: then nothing is drawn.
func (l *lanes) begin(n int, on bool) {
	if !on {
		return
	}
	l.free = slices.Repeat([]bool{true}, n)
	l.beginShares(n)
}

// beginShares starts with n GPUs or lanes without shares.
func (l *lanes) beginShares(n int) { l.pieces = make([][]piece, n) }

// end stops assigning places.
func (l *lanes) end() { l.free, l.pieces = nil, nil }

// take assigns lanes to a gang of n GPUs of a pool and appends them to dst. If nothing is drawn, it returns dst
// unchanged.
func (l *lanes) take(n, milli int, dst []span) []span {
	if l.free == nil || n == 0 {
		return dst
	}
	if milli < 1000 {
		for range n {
			s := span{gpu: l.sharedLane(int16(milli)), n: 1, milli: int16(milli)}
			l.share(&s)
			l.free[s.gpu] = false
			dst = append(dst, s)
		}
		return dst
	}
	if from, ok := l.gap(n); ok {
		dst = append(dst, span{gpu: from, n: int32(n), milli: 1000})
	} else {
		left := n
		for i := range l.free {
			if left == 0 {
				break
			}
			if !l.free[i] {
				continue
			}
			left--
			if k := len(dst) - 1; k >= 0 && dst[k].gpu+dst[k].n == int32(i) {
				dst[k].n++
			} else {
				dst = append(dst, span{gpu: int32(i), n: 1, milli: 1000})
			}
		}
	}
	for _, s := range dst {
		for i := s.gpu; i < s.gpu+s.n; i++ {
			l.free[i] = false
		}
	}
	return dst
}

// gap returns the first of the lowest n consecutive free lanes.
func (l *lanes) gap(n int) (from int32, ok bool) {
	length := 0
	for i, free := range l.free {
		if !free {
			length = 0
			continue
		}
		if length++; length == n {
			return int32(i - n + 1), true
		}
	}
	return 0, false
}

// sharedLane returns the lowest lane in shared use that has room, or else the lowest free lane. A pool counts free
// capacity over all its GPUs, so that no single lane may have room; then it returns the lane with the most room.
func (l *lanes) sharedLane(milli int16) int32 {
	idle, best, most := -1, 0, int16(-1)
	for i, ps := range l.pieces {
		if l.free[i] {
			if idle < 0 {
				idle = i
			}
			continue
		}
		if len(ps) == 0 {
			continue // in use as a whole
		}
		room := int16(1000)
		for _, p := range ps {
			room -= p.milli
		}
		if room >= milli {
			return int32(i)
		}
		if room > most {
			best, most = i, room
		}
	}
	if idle >= 0 {
		return int32(idle)
	}
	return int32(best)
}

// give frees the lanes of a gang.
func (l *lanes) give(spans []span) {
	if l.free == nil {
		return
	}
	for _, s := range spans {
		if s.milli < 1000 {
			l.unshare(s)
			l.free[s.gpu] = len(l.pieces[s.gpu]) == 0
			continue
		}
		for i := s.gpu; i < s.gpu+s.n; i++ {
			l.free[i] = true
		}
	}
}

// share decides where in its GPU s is drawn: in the first gap that holds it, or else at the end, on top of others.
func (l *lanes) share(s *span) {
	ps := l.pieces[s.gpu]
	off, at := int16(0), len(ps)
	for i, p := range ps {
		if p.off-off >= s.milli {
			at = i
			break
		}
		off = max(off, p.off+p.milli)
	}
	if at == len(ps) && off > 1000-s.milli {
		off = 1000 - s.milli
		for at = 0; at < len(ps) && ps[at].off < off; {
			at++
		}
	}
	s.off = off
	l.pieces[s.gpu] = slices.Insert(ps, at, piece{off, s.milli})
}

// unshare frees the share s.
func (l *lanes) unshare(s span) {
	ps := l.pieces[s.gpu]
	if i := slices.Index(ps, piece{s.off, s.milli}); i >= 0 {
		l.pieces[s.gpu] = slices.Delete(ps, i, i+1)
	}
}

// merge sorts gpus and appends them to dst as spans of consecutive GPUs. Each share becomes a span of its own.
func merge(gpus []int32, milli int16, dst []span) []span {
	slices.Sort(gpus)
	from := len(dst)
	for _, g := range gpus {
		if k := len(dst) - 1; milli == 1000 && k >= from && dst[k].gpu+dst[k].n == g {
			dst[k].n++
			continue
		}
		dst = append(dst, span{gpu: g, n: 1, milli: milli})
	}
	return dst
}
