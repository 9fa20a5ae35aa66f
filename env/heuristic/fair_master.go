package heuristic

// master mixes columns of use so that the busiest row is used least: min θ over the weights m ≥ 0 with Σ m = 1 and
// Σ_k m_k·used[k][t] ≤ θ for every row t. It is a primal simplex on a table with as many rows as there are types, and
// one for the weights; Bland's rule keeps it from cycling.
type master struct {
	table [][]float64
	basis []int
}

// solve returns θ, the weights, and in price the duals of the rows, which are 0 or more and sum up to 1.
func (l *master) solve(used [][]float64, weights *[]float64, price []float64) (busy float64) {
	rows, k := len(used[0]), len(used)
	theta, rhs := k+rows, k+rows+1 // columns: weights, slacks, θ, right-hand side
	l.table, l.basis = l.table[:0], l.basis[:0]
	for range rows + 2 {
		n := len(l.table)
		l.table = longer(l.table)
		l.table[n] = append(l.table[n][:0], make([]float64, rhs+1)...)
		l.basis = append(l.basis, -1)
	}
	for t := range rows {
		row := l.table[t]
		for i := range used {
			row[i] = used[i][t]
		}
		row[k+t], row[theta] = 1, -1
		l.basis[t] = k + t
	}
	sum, goal := l.table[rows], l.table[rows+1]
	for i := range used {
		sum[i] = 1
	}
	sum[rhs], goal[theta] = 1, 1
	// Begin with the column that is best by itself.
	first, top := 0, 0
	for i := range used {
		if peak(used[i]) < peak(used[first]) {
			first = i
		}
	}
	for t, u := range used[first] {
		if u > used[first][top] {
			top = t
		}
	}
	l.pivot(rows, first)
	l.pivot(top, theta)
	const eps = 1e-12
	for range 10_000 {
		in := -1
		for c := range rhs {
			if goal[c] < -eps {
				in = c
				break
			}
		}
		if in < 0 {
			break
		}
		out, least := -1, 0.0
		for r := range rows + 1 {
			if v := l.table[r][in]; v > eps {
				if q := l.table[r][rhs] / v; out < 0 || q < least || q == least && l.basis[r] < l.basis[out] {
					out, least = r, q
				}
			}
		}
		if out < 0 {
			break // cannot be: the weights are bounded
		}
		l.pivot(out, in)
	}
	*weights = append((*weights)[:0], make([]float64, k)...)
	for r := range rows + 1 {
		if b := l.basis[r]; b < k {
			(*weights)[b] = max(0, l.table[r][rhs])
		}
	}
	for t := range rows {
		price[t] = max(0, goal[k+t])
	}
	return -goal[rhs]
}

func peak(u []float64) (m float64) {
	for _, v := range u {
		m = max(m, v)
	}
	return m
}

// pivot makes column in basic in row out.
func (l *master) pivot(out, in int) {
	row := l.table[out]
	p := 1 / row[in]
	for c := range row {
		row[c] *= p
	}
	row[in] = 1
	for r, other := range l.table {
		if r == out || other[in] == 0 {
			continue
		}
		m := other[in]
		for c := range other {
			other[c] -= m * row[c]
		}
		other[in] = 0
	}
	l.basis[out] = in
}
