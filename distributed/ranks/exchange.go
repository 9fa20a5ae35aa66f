package ranks

import (
	"fmt"
	"unsafe"

	"clustergym/nets/kernel"
)

// chunk is how many numbers of each piece go in a step of a large sum: 64 KiB, which stay in the caches. Four times as
// many take twice as long on loopback.
const chunk = 1 << 14

// buffers are the scratch memory of exchanges. It grows to the largest that was seen.
type buffers struct {
	words []float64 // backs blocks: head, then a block for each rank, its own first
	// Of a sum in pieces: a chunk of what lower ranks have together, a chunk of another rank, and the same of what goes
	// with the vector.
	below, theirChunk []float32
	sums, theirs      []float64
}

// Sum replaces x and y by the sums over all ranks, which pass slices of the same lengths. All get the same bits: the
// sum in order of ranks. The first argument is the own rank. It does not allocate in steady state.
func (g *Group) Sum(_ int, x []float32, y []float64) error {
	if g.world == 1 {
		return nil
	}
	g.seq++
	var err error
	peer := 0
	if g.direct(len(x)) {
		peer, err = g.sumBlocks(x, y)
	} else {
		peer, err = g.sumPieces(x, y)
	}
	if err != nil {
		return g.cause(peer, err)
	}
	return nil
}

// direct reports whether a vector of n float32 is sent to everybody.
func (g *Group) direct(n int) bool { return 4*n*(g.world-1) <= g.cfg.smallBytes() }

// bytes32 and bytes64 are views of numbers as bytes. All ranks have the same architecture, so the order of bytes is
// theirs too.
func bytes32(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

func bytes64(x []float64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 8*len(x))
}

// sumBlocks is Sum for small vectors: everybody gets everybody's.
func (g *Group) sumBlocks(x []float32, y []float64) (peer int, err error) {
	words := len(y) + (len(x)+1)/2 // of a block
	own := g.blocks(words)
	copy(own, y)
	copy(float32s(own[len(y):], len(x)), x)
	if peer, err = g.allGather(words); err != nil {
		return peer, err
	}
	for r := range g.world {
		b := g.block(r, words)
		theirs := float32s(b[len(y):], len(x))
		if r == 0 {
			copy(y, b)
			copy(x, theirs)
			continue
		}
		for i, v := range b[:len(y)] {
			y[i] += v
		}
		kernel.Add(x, x, theirs)
	}
	return 0, nil
}

// float32s views the beginning of words as n float32.
func float32s(words []float64, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

// headWords is the size of a head in float64.
const headWords = headBytes / 8

// blocks makes room for a block of every rank and returns the own one.
func (g *Group) blocks(words int) []float64 {
	if need := headWords + g.world*words; len(g.words) < need {
		g.words = make([]float64, need)
	}
	return g.words[headWords : headWords+words]
}

// block returns rank r's block, once it has come.
func (g *Group) block(r, words int) []float64 {
	at := headWords + (r-g.rank+g.world)%g.world*words
	return g.words[at : at+words]
}

// allGather fills the blocks of all ranks in about log2 of their number steps, in each of which a rank passes on all
// blocks that it has (Bruck et al. 1997, "Efficient algorithms for all-to-all communications", section 4).
func (g *Group) allGather(words int) (peer int, err error) {
	for have := 1; have < g.world; {
		n := min(have, g.world-have)
		to, from := g.links[(g.rank-have+g.world)%g.world], g.links[(g.rank+have)%g.world]
		out := bytes64(g.words[:headWords+n*words])
		putHead(out, g.seq, kindGather, len(out)-headBytes)
		if err := to.send(out); err != nil {
			return to.peer, err
		}
		in := bytes64(g.words[headWords+have*words : headWords+(have+n)*words])
		if err := from.expect(g.seq, kindGather, len(in)); err != nil {
			return from.peer, err
		}
		if err := from.read(in); err != nil {
			return from.peer, err
		}
		if err := to.flush(); err != nil { // the head changes
			return to.peer, err
		}
		have += n
	}
	return 0, nil
}

// piece returns which of n numbers rank k adds up. Pieces begin at whole lines of the cache.
func (g *Group) piece(k, n int) (from, to int) {
	cut := func(k int) int {
		if k == g.world {
			return n
		}
		return k * n / g.world &^ 15
	}
	return cut(k), cut(k + 1)
}

// sumPieces is Sum for large vectors: rank k adds up piece k and sends the sum to all. It goes in steps, of which each
// sends a chunk of every piece, sums the chunk of the own piece that came in the step before and sends it, and reads
// the sums of the chunks before that. What is on its way then stays in the processors' caches, and no rank waits until
// a whole piece has come.
func (g *Group) sumPieces(x []float32, y []float64) (peer int, err error) {
	g.fit(len(y))
	if peer, err = g.headsAndFew(x, y); err != nil {
		return peer, err
	}
	longest := 0
	for k := range g.world {
		from, to := g.piece(k, len(x))
		longest = max(longest, to-from)
	}
	steps := max(1, (longest+chunk-1)/chunk)
	// part returns chunk i of rank k's piece.
	part := func(k, i int) []float32 {
		from, to := g.piece(k, len(x))
		n := to - from
		return x[from+i*n/steps : from+(i+1)*n/steps]
	}
	for i := range steps + 2 {
		if i < steps {
			for d := 1; d < g.world; d++ {
				l := g.links[(g.rank+d)%g.world]
				if err := l.send(bytes32(part(l.peer, i))); err != nil {
					return l.peer, err
				}
				l.marks[i%len(l.marks)] = l.total
			}
		}
		if at := i - 1; at >= 0 && at < steps {
			mine := part(g.rank, at)
			if peer, err := g.sumChunk(mine); err != nil {
				return peer, err
			}
			for d := 1; d < g.world; d++ {
				l := g.links[(g.rank+d)%g.world]
				if err := l.send(bytes32(mine)); err != nil {
					return l.peer, err
				}
			}
		}
		if at := i - 2; at >= 0 {
			for d := 1; d < g.world; d++ {
				l := g.links[(g.rank-d+g.world)%g.world]
				// Its sum has come, so it has read the chunk that is overwritten now; only our own writer may not know yet.
				theirs := part(l.peer, at)
				if len(theirs) == 0 {
					continue
				}
				if err := l.wait(1); err != nil {
					return l.peer, err
				}
				if err := l.settle(l.marks[at%len(l.marks)]); err != nil {
					return l.peer, err
				}
				if err := l.read(bytes32(theirs)); err != nil {
					return l.peer, err
				}
			}
		}
	}
	copy(y, g.sums[:len(y)])
	return g.flush()
}

// headsAndFew exchanges the heads of a sum in pieces and what goes with the vector, which it adds up in sums.
func (g *Group) headsAndFew(x []float32, y []float64) (peer int, err error) {
	from, to := g.piece(g.rank, len(x))
	for d := 1; d < g.world; d++ {
		l := g.links[(g.rank+d)%g.world]
		a, b := g.piece(l.peer, len(x))
		if err := l.message(g.seq, kindPiece, y, 4*(b-a)+4*(to-from)); err != nil {
			return l.peer, err
		}
	}
	sums, theirs := g.sums[:len(y)], g.theirs[:len(y)]
	for r := range g.world {
		add := y
		if r != g.rank {
			l := g.links[r]
			a, b := g.piece(r, len(x))
			if err := l.expect(g.seq, kindPiece, 8*len(y)+4*(to-from)+4*(b-a)); err != nil {
				return r, err
			}
			if err := l.read(bytes64(theirs)); err != nil {
				return r, err
			}
			add = theirs
		}
		if r == 0 {
			copy(sums, add)
			continue
		}
		for i, v := range add {
			sums[i] += v
		}
	}
	return 0, nil
}

// sumChunk replaces a part of the own piece by the sum over ranks, which stays in the processor's cache meanwhile.
func (g *Group) sumChunk(part []float32) (peer int, err error) {
	below, theirs := g.below[:len(part)], g.theirChunk[:len(part)]
	for r, l := range g.links {
		switch {
		case r == g.rank && r > 0: // the ranks below are summed up
			kernel.Add(part, below, part)
		case r == g.rank:
		case r == 0:
			err = l.read(bytes32(below))
		default:
			if err = l.read(bytes32(theirs)); err != nil {
				break
			}
			if r < g.rank {
				kernel.Add(below, below, theirs)
			} else {
				kernel.Add(part, part, theirs)
			}
		}
		if err != nil {
			return r, err
		}
	}
	return 0, nil
}

// fit makes room for the scratch memory of a sum.
func (g *Group) fit(few int) {
	if g.below == nil {
		g.below, g.theirChunk = make([]float32, chunk), make([]float32, chunk)
	}
	if len(g.sums) < few {
		g.sums, g.theirs = make([]float64, few), make([]float64, few)
	}
}

// message sends the head of a sum in pieces and y; more bytes follow. What it sent before must have been flushed.
func (l *link) message(seq uint32, k kind, y []float64, more int) error {
	n := headBytes + 8*len(y)
	if len(l.small) < n {
		l.small = make([]byte, n)
	}
	b := l.small[:n]
	putHead(b, seq, k, 8*len(y)+more)
	copy(b[headBytes:], bytes64(y))
	return l.send(b)
}

// flush waits until all links have written.
func (g *Group) flush() (peer int, err error) {
	for _, l := range g.links {
		if l == nil {
			continue
		}
		if err := l.flush(); err != nil {
			return l.peer, err
		}
	}
	return 0, nil
}

// Gather fills all with the own bytes of all ranks, in their order. All pass the same number of bytes. It does not
// allocate in steady state.
func (g *Group) Gather(_ int, own, all []byte) error {
	n := len(own)
	if len(all) != g.world*n {
		return fmt.Errorf("ranks: %d bytes for %d of each of %d ranks", len(all), n, g.world)
	}
	g.seq++
	words := (n + 7) / 8
	copy(bytes64(g.blocks(words)), own)
	if peer, err := g.allGather(words); err != nil {
		return g.cause(peer, err)
	}
	for r := range g.world {
		copy(all[r*n:(r+1)*n], bytes64(g.block(r, words)))
	}
	return nil
}
