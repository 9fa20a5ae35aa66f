package kernel

func (v *vectors[M]) layerNormAll(dst, x, gamma, beta []float32, n, h int) {
	if n*h == 0 {
		return
	}
	dst, x, gamma, beta = dst[:n*h], x[:n*h], gamma[:h], beta[:h]
	v.layerNorm(&dst[0], &x[0], &gamma[0], &beta[0], n, h, h*word, 0, v.mask(h%v.lanes), float32(h), LayerNormEps)
}

func (v *vectors[M]) layerNormGradAll(dx, x, gamma, dy []float32, n, h int) {
	if n*h == 0 {
		return
	}
	dx, x, gamma, dy = dx[:n*h], x[:n*h], gamma[:h], dy[:n*h]
	v.layerNormGrad(&dx[0], &x[0], &gamma[0], &dy[0], n, h, h*word, v.mask(h%v.lanes), float32(h), LayerNormEps)
}

// layerNormGradGamma is a layer norm whose gamma is dy, row by row, and the sums of its columns.
func (v *vectors[M]) layerNormGradGamma(dgamma, x, dy []float32, n, h int, scratch []float32) {
	if n*h == 0 {
		clear(dgamma[:h])
		return
	}
	x, dy, scratch = x[:n*h], dy[:n*h], scratch[:n*h]
	dgamma = dgamma[:h]
	clear(dgamma) // as beta
	v.layerNorm(&scratch[0], &x[0], &dy[0], &dgamma[0], n, h, h*word, h*word, v.mask(h%v.lanes), float32(h), LayerNormEps)
	v.colSums(dgamma, scratch, n, h)
}

// grid is the division of m × n results into strips of up to two registers of columns, and these into tiles.
type grid[M any] struct {
	n           int
	whole, last cut[M]
}

func (v *vectors[M]) grid(m, n int) (g grid[M]) {
	g.n = n
	if n >= 2*v.lanes {
		g.whole = v.cutting(m, 2*v.lanes)
	}
	g.last = v.cutting(m, n%(2*v.lanes))
	return g
}

// strided computes a product whose factors and results lie as w says, with b in its own layout.
func (v *vectors[M]) strided(c, a, b, init *float32, g *grid[M], w *walk) {
	wide := 2 * v.lanes
	for col := 0; col < g.n; col += wide {
		cut := &g.whole
		if g.n-col < wide {
			cut = &g.last
		}
		v.columns(at(c, col*word), a, at(b, col*word), at(init, col*word), cut, w)
	}
}

// sequence is how attention goes through one sequence: distances in bytes, and memory for one head.
type sequence[M any] struct {
	rows, d         int
	row, out, score int     // from row to row of qkv, of the result and of the weights
	square, thin    grid[M] // rows × rows weights and rows × d results
	tail            M       // mask of the last elements of a row of weights
	scale           float32
	p, dp, turned   []float32 // weights, their gradients, a head's keys or values with rows as columns
	sums            []float32 // of the weights of a row
}

func (v *vectors[M]) sequence(rows, width, heads int, scratch []float32) (s sequence[M]) {
	s.rows, s.d = rows, width/heads
	s.row, s.out, s.score = 3*width*word, width*word, rows*word
	s.square, s.thin = v.grid(rows, rows), v.grid(rows, s.d)
	s.tail, s.scale = v.mask(rows%v.lanes), float32(scaling(s.d))
	n := rows * rows
	s.p, s.dp, s.turned, s.sums = scratch[:n], scratch[n:2*n], scratch[2*n:2*n+rows*s.d],
		scratch[2*n+rows*s.d:2*n+rows*(s.d+1)]
	return s
}

// weights sets s.p to the softmax of a head's scaled scores. q and k begin at the head's part of the first row.
func (v *vectors[M]) weights(s *sequence[M], q, k []float32) {
	v.scores(s, s.p, &q[0], s.row, k)
	v.rowMax(&s.sums[0], &s.p[0], s.rows, s.rows, word, s.score, s.tail)
	v.expRows(&s.sums[0], &s.p[0], s.rows, s.rows, word, s.score, s.tail, s.scale)
	v.divideRows(&s.sums[0], &s.p[0], s.rows, s.rows, word, s.score, s.tail)
}

// scores sets dst [rows, rows] to a·bᵀ, with rows of a aRow bytes apart.
func (v *vectors[M]) scores(s *sequence[M], dst []float32, a *float32, aRow int, b []float32) {
	v.turn(s.turned, b, s.rows, s.d, s.rows, s.row/word)
	steps := walk{outer: 1, k: s.d, aRow: aRow, aStep: word, bStep: s.score, cRow: s.score}
	v.strided(&dst[0], a, &s.turned[0], nil, &s.square, &steps)
}

func (v *vectors[M]) attend(dst, qkv []float32, rows, width, heads int, scratch []float32) {
	if rows == 0 {
		return
	}
	s := v.sequence(rows, width, heads, scratch)
	mix := walk{outer: 1, k: rows, aRow: s.score, aStep: word, bStep: s.row, cRow: s.out}
	for head := 0; head < width; head += s.d {
		v.weights(&s, qkv[head:], qkv[width+head:])
		v.strided(&dst[head], &s.p[0], &qkv[2*width+head], nil, &s.thin, &mix)
	}
}

func (v *vectors[M]) attendGrad(dqkv, qkv, dy []float32, rows, width, heads int, scratch []float32) {
	if rows == 0 {
		return
	}
	s := v.sequence(rows, width, heads, scratch)
	across := walk{outer: 1, k: rows, aRow: word, aStep: s.score, bStep: s.out, cRow: s.row} // weightsᵀ·dy
	mix := walk{outer: 1, k: rows, aRow: s.score, aStep: word, bStep: s.row, cRow: s.row}
	back := walk{outer: 1, k: rows, aRow: word, aStep: s.score, bStep: s.row, cRow: s.row}
	for head := 0; head < width; head += s.d {
		q, k, val := qkv[head:], qkv[width+head:], qkv[2*width+head:]
		v.weights(&s, q, k)
		v.strided(&dqkv[2*width+head], &s.p[0], &dy[head], nil, &s.thin, &across)
		v.scores(&s, s.dp, &dy[head], s.out, val)
		v.softmaxGrad(&s.dp[0], &s.p[0], rows, rows, s.score, s.tail, s.scale)
		v.strided(&dqkv[head], &s.dp[0], &k[0], nil, &s.thin, &mix)
		v.strided(&dqkv[width+head], &s.dp[0], &q[0], nil, &s.thin, &back)
	}
}
