package ranks

import "fmt"

// Any reports whether yes is true at any rank.
func (g *Group) Any(yes bool) (bool, error) {
	g.flag[0] = 0
	if yes {
		g.flag[0] = 1
	}
	err := g.Sum(g.rank, nil, g.flag[:])
	return g.flag[0] > 0, err
}

// Collect gives rank 0 the bytes of all ranks, in their order, and nil to the others, which do not wait for it longer
// than for the bytes to be on their way.
func (g *Group) Collect(own []byte) ([][]byte, error) {
	g.seq++
	if g.rank > 0 {
		l := g.links[0]
		err := l.blob(g.seq, kindCollect, own)
		if err == nil {
			err = l.flush()
		}
		if err != nil {
			err = g.cause(0, err)
		}
		return nil, err
	}
	all := [][]byte{own}
	for _, l := range g.links[1:] {
		b, err := l.readBlob(g.seq, kindCollect)
		if err != nil {
			return nil, g.cause(l.peer, err)
		}
		all = append(all, b)
	}
	return all, nil
}

// Scatter gives every rank its part of what rank 0 passes; the others pass nil.
func (g *Group) Scatter(all [][]byte) ([]byte, error) {
	g.seq++
	if g.rank > 0 {
		b, err := g.links[0].readBlob(g.seq, kindScatter)
		if err != nil {
			return nil, g.cause(0, err)
		}
		return b, nil
	}
	if len(all) != g.world {
		return nil, fmt.Errorf("ranks: %d parts for %d ranks", len(all), g.world)
	}
	for k, l := range g.links[1:] {
		if err := l.blob(g.seq, kindScatter, all[k+1]); err != nil {
			return nil, g.cause(l.peer, err)
		}
	}
	if peer, err := g.flush(); err != nil {
		return nil, g.cause(peer, err)
	}
	return all[0], nil
}

// Broadcast gives every rank the bytes that rank 0 passes.
func (g *Group) Broadcast(b []byte) ([]byte, error) {
	if g.rank > 0 {
		return g.Scatter(nil)
	}
	all := make([][]byte, g.world)
	for i := range all {
		all[i] = b
	}
	return g.Scatter(all)
}

// blob sends bytes.
func (l *link) blob(seq uint32, k kind, b []byte) error {
	h := l.out1[:]
	putHead(h, seq, k, len(b))
	if err := l.send(h); err != nil {
		return err
	}
	return l.send(b)
}

// readBlob reads what blob sent. Memory grows as the bytes come, whatever the head says.
func (l *link) readBlob(seq uint32, k kind) ([]byte, error) {
	n, err := l.head(seq, k)
	if err != nil {
		return nil, err
	}
	const step = 1 << 24
	b := make([]byte, 0, min(n, step))
	for len(b) < n {
		at := len(b)
		b = append(b, make([]byte, min(step, n-at))...)
		if err := l.read(b[at:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}
