package rounds

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// master mixes columns of use so that the busiest row is used least: min θ over the weights m ≥ 0 with Σ m = 1 and
// Σ_k m_k·used[k][t] ≤ θ for every row t. Gonum's lp.Simplex solves it in units of the best column's peak, so that
// its absolute tolerances mean the same for every load.
//
// lp.Simplex returns the solution but not the duals. If as many unknowns are above 0 as there are rows, they are the
// basis, the duals follow from it, and the next program, which adds columns to this one, starts there. Otherwise the
// basis is degenerate, and lp.Simplex solves the dual program too.
type master struct {
	primal, dual program
	basis        []int // of the primal program's last solution; empty = unknown
	known        []int // columns that are in the dual program
	rows         [][]float64
	corner       []int // basis of the dual program
}

// zero is the value that an unknown must exceed to be in the basis for certain.
const zero = 1e-9

// forget must be called before a solve whose columns are not those of the last one plus new ones.
func (l *master) forget() { l.basis = l.basis[:0] }

var errPrices = errors.New("rounds: the duals of a linear program do not prove its optimum")

// solve returns θ, the weights, and in price the duals of the rows, which are 0 or more and add up to 1. The duals
// prove that no weights are better. With an error (lp.Simplex failed, or its result proves nothing) weights and
// prices are undefined. used must be that of the last call, possibly with columns added; otherwise call forget first.
func (l *master) solve(used [][]float64, weights *[]float64, price []float64) (busy float64, err error) {
	rows, first := len(used[0]), 0 // first is the best single column
	for k, u := range used {
		if peak(u) < peak(used[first]) {
			first = k
		}
	}
	unit := peak(used[first])
	if unit == 0 {
		unit = 1
	}
	l.state(used, unit)
	var x []float64
	if len(l.basis) == rows+1 {
		x, err = l.primal.solve(l.basis)
	}
	if x == nil || err != nil {
		if x, err = l.primal.solve(l.begin(used, first)); err != nil {
			l.forget()
			return 0, err
		}
	}
	w := append((*weights)[:0], x[rows+1:]...)
	*weights = w
	all := 0.0
	for k, m := range w {
		w[k] = max(0, m)
		all += w[k]
	}
	for k := range w {
		w[k] /= all
	}
	for t := range rows { // computed here, because the weights have been rounded
		u := 0.0
		for k, m := range w {
			u += m * used[k][t]
		}
		busy = max(busy, u)
	}
	if l.prices(x, price) {
		if _, cost := cheapest(used, price); cost >= enough(busy) {
			return busy, nil
		}
	}
	l.forget()
	return busy, l.prove(used, w, busy, unit, price)
}

// enough returns what every column must cost to prove, up to rounding, that no mixture has a less busy row.
func enough(busy float64) float64 { return busy * (1 - tight/20) }

// state writes the primal program. Its unknowns are θ, the slack of every row and the weights.
func (l *master) state(used [][]float64, unit float64) {
	rows, p := len(used[0]), &l.primal
	p.clear(rows+1, 1+rows+len(used))
	p.cost[0], p.right[rows] = 1, 1
	for t := range rows {
		p.set(t, 0, -1)
		p.set(t, 1+t, 1)
	}
	for k, u := range used {
		for t, v := range u {
			p.set(t, 1+rows+k, v/unit)
		}
		p.set(rows, 1+rows+k, 1)
	}
}

// begin returns the basis of the column first alone. It contains all slacks except that of the column's peak row.
func (l *master) begin(used [][]float64, first int) []int {
	rows, top := len(used[0]), 0
	for t, u := range used[first] {
		if u > used[first][top] {
			top = t
		}
	}
	l.basis = append(l.basis[:0], 0, 1+rows+first)
	for t := range rows {
		if t != top {
			l.basis = append(l.basis, 1+t)
		}
	}
	return l.basis
}

// prices keeps the basis of x and computes the duals from it. It returns false if x does not determine them.
func (l *master) prices(x, price []float64) bool {
	rows := len(price)
	l.basis = l.basis[:0]
	for c, v := range x {
		if v > zero {
			l.basis = append(l.basis, c)
		}
	}
	if len(l.basis) != rows+1 {
		return false
	}
	b, cost := mat.NewDense(rows+1, rows+1, nil), mat.NewVecDense(rows+1, nil)
	for i, c := range l.basis {
		for r := range rows + 1 {
			b.Set(i, r, l.primal.table[r*l.primal.columns+c])
		}
		cost.SetVec(i, l.primal.cost[c])
	}
	var y mat.VecDense
	if err := y.SolveVec(b, cost); err != nil {
		return false // nearly degenerate
	}
	for t := range price {
		price[t] = -y.AtVec(t)
	}
	normalise(price)
	return true
}

// prove finds prices by the dual program, which at first contains only the columns in the mixture. While another
// column costs too little, the cheapest is added. This keeps the columns few and distinct; nearly equal ones would
// make the program ill-conditioned.
func (l *master) prove(used [][]float64, weights []float64, busy, unit float64, price []float64) error {
	l.known, l.rows = l.known[:0], l.rows[:0]
	for k, m := range weights {
		if m > zero {
			l.known, l.rows = append(l.known, k), append(l.rows, used[k])
		}
	}
	for {
		x, err := l.dearest(l.rows, unit)
		if err != nil {
			return err
		}
		copy(price, x[1:])
		normalise(price)
		k, cost := cheapest(used, price)
		if cost >= enough(busy) {
			return nil
		}
		if slices.Contains(l.known, k) {
			return errPrices
		}
		l.known, l.rows = append(l.known, k), append(l.rows, used[k])
	}
}

// dearest solves the dual: the prices at which the cheapest column costs most, max v with v ≤ Σ_t price[t]·used[k][t]
// for every column k, prices ≥ 0 with sum 1. Its unknowns are v, the prices and one slack for each column.
func (l *master) dearest(used [][]float64, unit float64) (x []float64, err error) {
	rows, p := len(used[0]), &l.dual
	p.clear(len(used)+1, 1+rows+len(used))
	p.cost[0], p.right[len(used)] = -1, 1
	for k, u := range used {
		scale := max(unit, peak(u)) // rounding errors are in proportion to the row
		p.set(k, 0, unit/scale)
		for t, v := range u {
			p.set(k, 1+t, -v/scale)
		}
		p.set(k, 1+rows+k, 1)
	}
	for t := range rows {
		p.set(len(used), 1+t, 1)
	}
	// Begin with a price on one row alone. Simplex has been seen to cycle from one such corner and not from the
	// others.
	for t := range rows {
		low := 0
		for k, u := range used {
			if u[t] < used[low][t] {
				low = k
			}
		}
		l.corner = append(l.corner[:0], 0, 1+t)
		for k := range used {
			if k != low {
				l.corner = append(l.corner, 1+rows+k)
			}
		}
		if x, err = p.solve(l.corner); err == nil {
			return x, nil
		}
	}
	return nil, err
}

// normalise clips prices at 0 and scales them to sum 1.
func normalise(price []float64) {
	all := 0.0
	for t, v := range price {
		price[t] = max(0, v)
		all += price[t]
	}
	for t := range price {
		price[t] /= all
	}
}

// cheapest returns the column that costs least at these prices, and its cost.
func cheapest(used [][]float64, price []float64) (column int, least float64) {
	least = math.Inf(1)
	for k, u := range used {
		cost := 0.0
		for t, v := range u {
			cost += price[t] * v
		}
		if !(cost >= least) { // also true for NaN, which proves nothing
			column, least = k, cost
		}
	}
	return column, least
}

func peak(u []float64) (m float64) {
	for _, v := range u {
		m = max(m, v)
	}
	return m
}

// program is a linear program in standard form: min cost·x over x ≥ 0 with table·x = right. It is itself the matrix
// that lp.Simplex reads, so that it can count the reads: Simplex does not bound its pivots, and its rule against
// cycling does not cover all cases. Every pivot reads a column, so a limit on reads ends it.
type program struct {
	rows, columns int
	table         []float64 // [row·columns + column]
	cost, right   []float64
	looks         int // reads left
}

var (
	errEndless = errors.New("no end of pivots")
	errNumber  = errors.New("a coefficient is not a number")
)

func (p *program) clear(rows, columns int) {
	p.rows, p.columns = rows, columns
	p.table = append(p.table[:0], make([]float64, rows*columns)...)
	p.cost, p.right = append(p.cost[:0], make([]float64, columns)...), append(p.right[:0], make([]float64, rows)...)
}

func (p *program) set(row, column int, v float64) { p.table[row*p.columns+column] = v }

// solve starts from basis, one column for each row. If columns are nearly equal, rounding can make Simplex see gains
// at its finest tolerance that lead it in circles, so solve then tries again with a coarser one. The error is one of
// lp's (ErrSingular, ErrLinSolve, ErrBland, ErrZeroColumn and so on), or contains what lp panicked with.
func (p *program) solve(basis []int) (x []float64, err error) {
	if s := sum(p.table); math.IsNaN(s) || math.IsInf(s, 0) {
		return nil, errNumber // Simplex would never stop pivoting
	}
	for _, gain := range []float64{1e-12, 1e-10} {
		if x, err = p.pivot(basis, gain); err == nil {
			return x, nil
		}
	}
	return nil, fmt.Errorf("rounds: a linear program of %d rows and %d columns: %w", p.rows, p.columns, err)
}

// pivot calls lp.Simplex and returns its panics as errors.
func (p *program) pivot(basis []int, gain float64) (x []float64, err error) {
	defer func() {
		if r := recover(); r != nil {
			x, err = nil, fmt.Errorf("%v", r)
		}
	}()
	// Simplex reads everything three times before it begins. Few of the programs that it solves need 12·rows² more
	// reads.
	p.looks = (3*p.columns + 50*p.rows) * p.rows
	_, x, err = lp.Simplex(p.cost, p, p.right, gain, basis)
	return x, err
}

// Dims, At and T implement mat.Matrix.
func (p *program) Dims() (rows, columns int) { return p.rows, p.columns }

func (p *program) At(row, column int) float64 {
	if p.looks--; p.looks < 0 {
		panic(errEndless)
	}
	return p.table[row*p.columns+column]
}

func (p *program) T() mat.Matrix { return mat.Transpose{Matrix: p} }
