package schedview

import "slices"

// lanes are where stints are drawn. The GPUs of a counter have no identity, so its gangs are given the lowest gap
// that holds them together, else the lowest free lanes; shares of one GPU are drawn beside each other.
type lanes struct {
	free   []bool    // of a counter, by lane
	pieces [][]piece // by GPU or lane: the shares of it that are in use, by off
}

// piece is a part of a GPU in thousandths.
type piece struct{ off, milli int16 }

func (l *lanes) begin(n int, on bool) {
	if !on {
		return
	}
	l.free = slices.Repeat([]bool{true}, n)
	l.beginShares(n)
}

func (l *lanes) beginShares(n int) { l.pieces = make([][]piece, n) }

// end stops keeping places.
func (l *lanes) end() { l.free, l.pieces = nil, nil }

// take gives lanes to a gang of n GPUs of a counter; the list is empty where nothing is drawn.
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

// gap is the first of n free lanes in a row.
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

// sharedLane is the lowest lane in part use with room, else the lowest free one. A counter adds up what is free of
// all its GPUs, so that room in one piece may be missing: then it is the lane with the most room.
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
			continue // taken as a whole
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

// give takes the lanes of a gang back.
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

// share finds where in its GPU s is drawn: the first gap that holds it, else at the far end, over others.
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

func (l *lanes) unshare(s span) {
	ps := l.pieces[s.gpu]
	if i := slices.Index(ps, piece{s.off, s.milli}); i >= 0 {
		l.pieces[s.gpu] = slices.Delete(ps, i, i+1)
	}
}

// merge appends gpus, in any order, as spans of consecutive ones; shares stay one by one.
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
