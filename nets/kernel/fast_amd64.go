package kernel

import (
	"slices"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C gen . -isa avx512 -pkg kernel -out ../avx512_amd64.s -stubs ../avx512_amd64.go
//go:generate go run -C gen . -isa avx2 -pkg kernel -out ../avx2_amd64.s -stubs ../avx2_amd64.go

// vectors is one instruction set. M is its mask of a register's first elements.
type vectors[M any] struct {
	name       string
	lanes      int
	mask       func(n int) M // the first n elements
	tiles      []tile[M]     // by rows, then by columns, both descending
	thin       []tile[M]     // more tiles with one register of columns
	strips     [3][]tile[M]  // tiles with one and with two registers of columns, by rows
	tanh       func(dst, src *float32, n int, mask M)
	exp        func(dst, src *float32, n int, mask M)
	relu       func(dst, src *float32, n int, mask M)
	reluGrad   func(dst, y, dy *float32, n int, mask M)
	tanhGrad   func(dst, y, dy *float32, n int, mask M)
	add        func(dst, a, b *float32, n int, mask M)
	adam       func(p, g, m, v *float32, n int, mask M, beta1, beta2, rest1, rest2, rate, root, eps float32)
	colSums4   func(dst, a *float32, rows, stride int, mask M)
	colSums1   func(dst, a *float32, rows, stride int, mask M)
	copyRows   func(dst, src *float32, rows, dstRow, srcRow, n int, mask M)
	square     int // rows that transpose handles at once, and the columns of a block
	transpose  func(dst, src *float32, blocks, dstRow, srcRow int)
	sumSquares func(x *float32, blocks int) float64

	rowMax        func(top, x *float32, rows, n, topRow, row int, mask M)
	expRows       func(top, x *float32, rows, n, topRow, row int, mask M, scale float32)
	divideRows    func(sum, x *float32, rows, n, sumRow, row int, mask M)
	softmaxGrad   func(d, p *float32, rows, n, row int, mask M, scale float32)
	layerNorm     func(dst, x, gamma, beta *float32, rows, n, row, gammaRow int, mask M, size, eps float32)
	layerNormGrad func(dx, x, gamma, dy *float32, rows, n, row int, mask M, size, eps float32)

	// Only in AVX-512; otherwise nil.

	nonZero func(index *int32, x *float32, blocks int) int

	picked func(c, a, b, init *float32, index *int32, count, bStep int, mask M, relu int)

	addRows     func(dst, x, context *float32, groups, k, h int, mask M, relu int)
	sumRows     func(x, dst *float32, groups, k, h int, mask M, div float32)
	maxRows     func(x, dst *float32, groups, k, h int, mask M)
	maxRowsGrad func(dst, x, top, dy *float32, groups, k, h int, mask M)
}

var avx512 = vectors[uint64]{
	name: "avx512", lanes: 16,
	mask: func(n int) uint64 { return 1<<n - 1 },
	tiles: []tile[uint64]{
		{12, 2, avx512Gemm12x2}, {12, 1, avx512Gemm12x1},
		{8, 2, avx512Gemm8x2}, {8, 1, avx512Gemm8x1},
		{4, 4, avx512Gemm4x4}, {4, 2, avx512Gemm4x2}, {4, 1, avx512Gemm4x1},
		{2, 8, avx512Gemm2x8}, {2, 4, avx512Gemm2x4}, {2, 2, avx512Gemm2x2}, {2, 1, avx512Gemm2x1},
		{1, 16, avx512Gemm1x16}, {1, 8, avx512Gemm1x8}, {1, 4, avx512Gemm1x4}, {1, 2, avx512Gemm1x2}, {1, 1, avx512Gemm1x1},
	},
	thin: []tile[uint64]{{16, 1, avx512Gemm16x1}, {9, 1, avx512Gemm9x1}, {3, 1, avx512Gemm3x1}},
	tanh: avx512Tanh, exp: avx512Exp, relu: avx512ReLU, reluGrad: avx512ReLUGrad, tanhGrad: avx512TanhGrad,
	add: avx512Add, adam: avx512Adam, colSums4: avx512ColSums4, colSums1: avx512ColSums1,
	copyRows: avx512CopyRows, square: 16, transpose: avx512Transpose16,
	sumSquares: avx512SumSquares, nonZero: avx512NonZero, picked: avx512Picked4,
	rowMax: avx512RowMax, expRows: avx512ExpRows, divideRows: avx512DivideRows, softmaxGrad: avx512SoftmaxGrad,
	layerNorm: avx512LayerNorm, layerNormGrad: avx512LayerNormGrad,
	addRows: avx512AddRows, sumRows: avx512SumRows, maxRows: avx512MaxRows, maxRowsGrad: avx512MaxRowsGrad,
}

// masks[8-n:] is the mask of the first n elements.
var masks = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

var avx2 = vectors[*int32]{
	name: "avx2", lanes: 8,
	mask: func(n int) *int32 { return &masks[8-n] },
	tiles: []tile[*int32]{
		{6, 2, avx2Gemm6x2}, {6, 1, avx2Gemm6x1},
		{4, 2, avx2Gemm4x2}, {4, 1, avx2Gemm4x1},
		{2, 4, avx2Gemm2x4}, {2, 2, avx2Gemm2x2}, {2, 1, avx2Gemm2x1},
		{1, 8, avx2Gemm1x8}, {1, 4, avx2Gemm1x4}, {1, 2, avx2Gemm1x2}, {1, 1, avx2Gemm1x1},
	},
	tanh: avx2Tanh, exp: avx2Exp, relu: avx2ReLU, reluGrad: avx2ReLUGrad, tanhGrad: avx2TanhGrad,
	add: avx2Add, adam: avx2Adam, colSums4: avx2ColSums4, colSums1: avx2ColSums1,
	copyRows: avx2CopyRows, square: 8, transpose: avx2Transpose8,
	sumSquares: avx2SumSquares,
	rowMax:     avx2RowMax, expRows: avx2ExpRows, divideRows: avx2DivideRows, softmaxGrad: avx2SoftmaxGrad,
	layerNorm: avx2LayerNorm, layerNormGrad: avx2LayerNormGrad,
	addRows: avx2AddRows, sumRows: avx2SumRows, maxRows: avx2MaxRows, maxRowsGrad: avx2MaxRowsGrad,
}

// fast returns the sets that this machine can run, the fastest first.
func fast() []*set[float32] {
	var all []*set[float32]
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		all = append(all, avx512.set())
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, avx2.set())
	}
	return all
}

// set returns the portable set with the loops of v in place of its own.
func (v *vectors[M]) set() *set[float32] {
	for _, t := range append(slices.Clone(v.tiles), v.thin...) {
		if t.cols <= 2 {
			v.strips[t.cols] = append(v.strips[t.cols], t)
		}
	}
	for _, s := range v.strips {
		slices.SortFunc(s, func(a, b tile[M]) int { return b.rows - a.rows })
	}
	s := portable
	s.name = v.name
	s.matMul, s.matMulTN, s.matMulNT = v.matMul, v.matMulTN, v.matMulNT
	s.colSums, s.activate, s.actGrad, s.exp = v.colSums, v.activate, v.actGrad, v.expAll
	s.logSoftmax = v.logSoftmax
	s.add, s.adam, s.sumSquares = v.addAll, v.adamAll, v.sumSquaresAll
	s.addRows, s.sumRows, s.maxRows, s.maxRowsGrad = v.addRowsAll, v.sumRowsAll, v.maxRowsAll, v.maxRowsGradAll
	s.layerNorm, s.layerNormGrad, s.layerNormGradGamma = v.layerNormAll, v.layerNormGradAll, v.layerNormGradGamma
	s.attend, s.attendGrad = v.attend, v.attendGrad
	s.convolve, s.convGradW, s.convGradX = v.convolve, v.convGradW, v.convGradX
	return &s
}

func (v *vectors[M]) colSums(dst, a []float32, m, n int) {
	for col := 0; col < n; {
		run, width := v.colSums1, v.lanes
		if n-col > 3*v.lanes {
			run, width = v.colSums4, 4*v.lanes
		}
		width = min(width, n-col)
		var from *float32
		if m > 0 {
			from = &a[col]
		}
		run(&dst[col], from, m, n*word, v.mask((width-1)%v.lanes+1))
		col += width
	}
}

func (v *vectors[M]) activate(dst, src []float32, act Act) {
	dst = dst[:len(src)]
	if len(src) == 0 {
		return
	}
	tail := v.mask(len(src) % v.lanes)
	switch act {
	case ReLU:
		v.relu(&dst[0], &src[0], len(src), tail)
	case Tanh:
		v.tanh(&dst[0], &src[0], len(src), tail)
	default:
		activate(dst, src, act)
	}
}

func (v *vectors[M]) actGrad(dst, y, dy []float32, act Act) {
	dst, dy = dst[:len(y)], dy[:len(y)]
	if len(y) == 0 {
		return
	}
	tail := v.mask(len(y) % v.lanes)
	switch act {
	case ReLU:
		v.reluGrad(&dst[0], &y[0], &dy[0], len(y), tail)
	case Tanh:
		v.tanhGrad(&dst[0], &y[0], &dy[0], len(y), tail)
	default:
		actGrad(dst, y, dy, act)
	}
}

func (v *vectors[M]) expAll(dst, src []float32) {
	dst = dst[:len(src)]
	if len(src) > 0 {
		v.exp(&dst[0], &src[0], len(src), v.mask(len(src)%v.lanes))
	}
}

// logSoftmax computes the exponentials of as many elements at a time as fit the buffer, because rows are often short.
func (v *vectors[M]) logSoftmax(dst, src, mask []float32, m, n int) {
	shifted(dst, src, mask, m, n)
	room := spareStrips.take()
	defer spareStrips.give(room)
	dst = dst[:m*n]
	var sum float32
	at, left := 0, n // start of the row, and how much of it is not summed yet
	for from := 0; from < len(dst); {
		k := min(len(dst)-from, len(room))
		v.expAll(room[:k], dst[from:from+k])
		for p := room[:k]; len(p) > 0; {
			some := min(left, len(p))
			for _, x := range p[:some] {
				sum += x
			}
			p, left = p[some:], left-some
			if left == 0 { // the row has been read completely
				normalise(dst[at:at+n], sum)
				at, left, sum = at+n, n, 0
			}
		}
		from += k
	}
}

func (v *vectors[M]) addAll(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	if len(dst) > 0 {
		v.add(&dst[0], &a[0], &b[0], len(dst), v.mask(len(dst)%v.lanes))
	}
}

func (v *vectors[M]) adamAll(p, g, m, w []float32, s AdamStep) {
	g, m, w = g[:len(p)], m[:len(p)], w[:len(p)]
	if len(p) > 0 {
		v.adam(&p[0], &g[0], &m[0], &w[0], len(p), v.mask(len(p)%v.lanes),
			s.Beta1, s.Beta2, s.Rest1, s.Rest2, s.Rate, s.Root, s.Eps)
	}
}

// sumSquaresAll adds the remaining elements to the sum over whole registers.
func (v *vectors[M]) sumSquaresAll(x []float32) float64 {
	total := 0.0
	blocks := len(x) / v.lanes
	if blocks > 0 {
		total = v.sumSquares(&x[0], blocks)
	}
	for _, y := range x[blocks*v.lanes:] {
		total += float64(y) * float64(y)
	}
	return total
}

func (v *vectors[M]) addRowsAll(dst, x, context []float32, n, k, h int, act Act) {
	all := n * k * h
	if all == 0 {
		return
	}
	dst, x, context = dst[:all], x[:all], context[:n*h]
	relu := 0
	if act == ReLU {
		relu = 1
	}
	v.addRows(&dst[0], &x[0], &context[0], n, k, h, v.mask(h%v.lanes), relu)
	if act == Tanh {
		v.activate(dst, dst, act)
	}
}

func (v *vectors[M]) sumRowsAll(dst, x []float32, n, k, h int, div float32) {
	if n*k*h == 0 {
		clear(dst[:n*h])
		return
	}
	dst, x = dst[:n*h], x[:n*k*h]
	v.sumRows(&x[0], &dst[0], n, k, h, v.mask(h%v.lanes), div)
}

func (v *vectors[M]) maxRowsAll(dst, x []float32, n, k, h int) {
	if n*k*h == 0 {
		return
	}
	dst, x = dst[:n*h], x[:n*k*h]
	v.maxRows(&x[0], &dst[0], n, k, h, v.mask(h%v.lanes))
}

func (v *vectors[M]) maxRowsGradAll(dst, x, top, dy []float32, n, k, h int) {
	all := n * k * h
	if all == 0 {
		return
	}
	dst, x, top, dy = dst[:all], x[:all], top[:n*h], dy[:n*h]
	v.maxRowsGrad(&dst[0], &x[0], &top[0], &dy[0], n, k, h, v.mask(h%v.lanes))
}
