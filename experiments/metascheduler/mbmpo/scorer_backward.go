package mbmpo

import (
	"clustergym/nets"
	"clustergym/nets/kernel"
)

// backward adds to g the gradient that dlogit and dwait of n states lead to.
func (m *Scorer) backward(g *nets.Params, n int) {
	z := &m.sizes
	r, in := len(m.pair), z.seen+2*z.h
	m.part, m.scratch = sized(m.part, max(z.wide, in)*z.h), sized(m.scratch, max(z.wide, in)*z.h)
	m.d1, m.d2 = sized(m.d1, r*z.h), sized(m.d2, r*z.h)
	m.dt, m.di, m.dc = sized(m.dt, n*z.h), sized(m.di, n*in), sized(m.dc, n*z.h)
	if r > 0 {
		m.backScores(g, r)
	}
	m.backStates(g, n)
	if r > 0 {
		m.backRows(g, n, r)
	}
}

// weight adds the gradient of a layer's weights [k, wide] to parameter i of g: a are its inputs, d the slopes of its
// outputs.
func (m *Scorer) weight(g *nets.Params, i int, a, d []float32, rows, wide, k int) {
	kernel.MatMulTN(m.part[:k*wide], a[:rows*k], d[:rows*wide], rows, wide, k)
	kernel.Add(g.Views[i].Data, g.Views[i].Data, m.part[:k*wide])
}

// bias adds the gradient of a layer's bias to parameter i of g.
func (m *Scorer) bias(g *nets.Params, i int, d []float32, rows, wide int) {
	kernel.ColSums(m.part[:wide], d[:rows*wide], rows, wide)
	kernel.Add(g.Views[i].Data, g.Views[i].Data, m.part[:wide])
}

// backScores goes from the scores of r rows to their second layer, d2, and from there to their first, d1.
func (m *Scorer) backScores(g *nets.Params, r int) {
	h := m.sizes.h
	m.weight(g, eachW, m.s, m.dlogit, r, 1, h)
	m.bias(g, eachB, m.dlogit, r, 1)
	for i, d := range m.dlogit[:r] {
		row := m.d2[i*h : (i+1)*h]
		for q, w := range m.v[eachW] {
			row[q] = d * w
		}
	}
	kernel.ActGrad(m.d2[:r*h], m.s[:r*h], m.d2[:r*h], kernel.Tanh)
	m.weight(g, slotW, m.h1, m.d2, r, h, h)
	kernel.MatMulNT(m.d1, m.d2, m.v[slotW], r, h, h, m.scratch)
}

// backStates goes from the rows' second layer and the scores of waiting through context and trunk to what the trunk
// sees, di.
func (m *Scorer) backStates(g *nets.Params, n int) {
	z := &m.sizes
	h, in := z.h, z.seen+2*z.h
	for i := range n {
		from, k := m.at[i], m.at[i+1]-m.at[i]
		if k == 0 {
			clear(m.dc[i*h : (i+1)*h])
			continue
		}
		kernel.SumRows(m.dc[i*h:(i+1)*h], m.d2[from*h:(from+k)*h], 1, k, h, 1)
	}
	m.weight(g, contextW, m.trunk, m.dc, n, h, h)
	m.bias(g, contextB, m.dc, n, h)
	m.weight(g, waitW, m.trunk, m.dwait, n, 1, h)
	m.bias(g, waitB, m.dwait, n, 1)
	kernel.MatMulNT(m.dt, m.dc, m.v[contextW], n, h, h, m.scratch)
	for i, d := range m.dwait[:n] {
		row := m.dt[i*h : (i+1)*h]
		for q, w := range m.v[waitW] {
			row[q] += d * w
		}
	}
	kernel.ActGrad(m.dt[:n*h], m.trunk[:n*h], m.dt[:n*h], kernel.Tanh)
	m.weight(g, trunkW, m.in, m.dt, n, h, in)
	m.bias(g, trunkB, m.dt, n, h)
	kernel.MatMulNT(m.di, m.dt, m.v[trunkW], n, in, h, m.scratch)
}

// backRows adds to d1 what the trunk sees of r rows, their mean and maximum, and goes from there to the rows' first
// layer.
func (m *Scorer) backRows(g *nets.Params, n, r int) {
	z := &m.sizes
	h, in := z.h, z.seen+2*z.h
	for i := range n {
		from, k := m.at[i], m.at[i+1]-m.at[i]
		if k == 0 {
			continue
		}
		d, top := m.di[i*in+z.seen:(i+1)*in], m.in[i*in+z.seen+h:(i+1)*in]
		mean, most := d[:h], d[h:]
		rows := m.d2[from*h : (from+k)*h] // free by now
		kernel.MaxRowsGrad(rows, m.h1[from*h:(from+k)*h], top, most, 1, k, h)
		for q := range mean {
			mean[q] /= float32(k)
		}
		kernel.AddRows(rows, rows, mean, 1, k, h, kernel.Identity)
	}
	kernel.Add(m.d1[:r*h], m.d1[:r*h], m.d2[:r*h])
	kernel.ActGrad(m.d1[:r*h], m.h1[:r*h], m.d1[:r*h], kernel.Tanh)
	m.weight(g, pairW, m.x, m.d1, r, h, z.wide)
	m.bias(g, pairB, m.d1, r, h)
}
