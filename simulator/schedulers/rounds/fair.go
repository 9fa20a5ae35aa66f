package rounds

import "math"

// fair divides GPUs of several types among jobs as max-min fair time shares. Let x[i][t] be the share of the time
// that job i, of which there are copies[i], holds its size[i] GPUs on type t. Every job must reach its needed
// throughput:
//
//	Σ_t speed[i][t]·x[i][t] ≥ need(i, z),  Σ_t x[i][t] ≤ 1,  Σ_i copies[i]·size[i]·x[i][t] ≤ room[t],  x ≥ 0,
//
// and the level z is to be as high as possible. For a given z this is a linear program. Each of its rows concerns one
// job alone, except one row for each type. It is solved by Dantzig–Wolfe decomposition: given a price for each type,
// every job by itself finds the cheapest shares that satisfy it (on at most two types, in closed form). A master
// program with a row for each type mixes such answers so that the busiest type is used least, and its duals are the
// next prices. Gonum's lp.Simplex solves the master program (see master). The answers to any prices give a lower
// bound on how busy the busiest type must be. Both "such shares exist" and "no such shares exist" therefore come with
// a proof that does not rely on the solver: the mixture is added up, or the prices are tried. Bisection between the
// two finds the level, to tolerance. Then, as in progressive filling for max-min fairness, jobs that cannot get more
// keep the level and the others go on, up to maxLevels times. Of the program's many optima, the result is
// approximately Pareto-efficient.
//
// A level whose master program lp.Simplex cannot solve is treated as infeasible and counted in unproved. The run goes
// on with the shares of the highest level found feasible.
//
// A level costs some 25 bisections × a few rounds × jobs × types². The undecomposed program would need a basis as
// large as the number of jobs, which costs its cube at every pivot. speed[i][t] must be 0 where room[t] is 0.
type fair struct {
	types  int
	copies []float64
	size   []float64
	speed  []float64 // [job·types + type], 0 = cannot run there
	room   []float64 // by type
	x      []float64 // the shares, indexed like speed

	// unproved counts levels that were treated as infeasible without proof, because lp.Simplex failed or the
	// decomposition did not terminate.
	unproved int
	solved   int

	fixed []bool
	level []float64 // of the fixed jobs
	want  []float64 // wanted throughputs
	best  []float64 // shares of the last feasible level
	price []float64
	warm  [][]float64 // final prices of the last programs
	cols  [][]float64 // answers
	used  [][]float64 // by answer and type: the share of room that it uses
	lp    master
	mix   []float64
}

const (
	tolerance  = 1e-7 // of levels, relative
	tight      = 1e-9 // of use, relative: shares that exceed the room by less are scaled down
	maxLevels  = 16
	maxColumns = 400
)

// demands are the needs of the jobs. need grows with the level z, starting at level 0. most returns the level at
// which need equals what the job gets on its fastest type all the time.
type demands interface {
	need(i int, z float64) float64
	most(i int) float64
}

// solve fills x. low must be a feasible level.
func (f *fair) solve(of demands, low float64) {
	n := len(f.size)
	f.solved++
	f.fixed, f.level = append(f.fixed[:0], make([]bool, n)...), append(f.level[:0], make([]float64, n)...)
	f.want, f.best = append(f.want[:0], make([]float64, n)...), append(f.best[:0], make([]float64, n*f.types)...)
	f.x = append(f.x[:0], f.best...)
	if !f.feasible(of, low) {
		low = 0 // rounding
	} else {
		copy(f.best, f.x)
	}
	for range maxLevels {
		high := math.Inf(1)
		for i := range n {
			if !f.fixed[i] {
				high = min(high, of.most(i))
			}
		}
		if math.IsInf(high, 1) {
			break
		}
		top := high
		if f.feasible(of, high) {
			low = high
			copy(f.best, f.x)
		}
		for high-low > tolerance*high {
			mid := (low + high) / 2
			if f.feasible(of, mid) {
				low = mid
				copy(f.best, f.x)
			} else {
				high = mid
			}
		}
		if !f.settle(of, low, top) {
			break
		}
	}
	copy(f.x, f.best)
}

// settle fixes the jobs that cannot rise above low: those at their most, and those for which the GPUs that they use
// have a price. It reports whether it fixed any.
func (f *fair) settle(of demands, low, top float64) bool {
	found := false
	if low < top && !f.feasible(of, low*(1+2*tolerance)+math.SmallestNonzeroFloat64) {
		for i := range f.fixed {
			if !f.fixed[i] && f.pays(i) {
				f.fixed[i], f.level[i], found = true, low, true
			}
		}
	}
	for i := range f.fixed {
		if !f.fixed[i] && of.most(i) <= low*(1+2*tolerance) {
			f.fixed[i], f.level[i], found = true, low, true
		}
	}
	return found
}

// pays reports whether what i wants has a cost at the current prices.
func (f *fair) pays(i int) bool {
	f.mix = append(f.mix[:0], make([]float64, f.types)...)
	return f.answer(i, f.mix) > 1e-6*f.size[i]*f.want[i]/f.fastest(i)*f.meanPrice()
}

func (f *fair) meanPrice() float64 { return 1 / sum(f.room) }

// reset forgets what was learnt on another cluster.
func (f *fair) reset() { f.warm, f.unproved, f.solved = f.warm[:0], 0, 0 }

func (f *fair) fastest(i int) (v float64) {
	for _, s := range f.speed[i*f.types : (i+1)*f.types] {
		v = max(v, s)
	}
	return v
}

// feasible reports whether every job that is not fixed can have level z. If so, x holds shares that achieve it.
func (f *fair) feasible(of demands, z float64) bool {
	for i := range f.want {
		l := z
		if f.fixed[i] {
			l = f.level[i]
		}
		most := f.fastest(i)
		f.want[i] = of.need(i, l)
		if f.want[i] > most {
			if f.want[i] > most*(1+tight) {
				for t := range f.price {
					f.price[t] = 0 // no other job is in the way
				}
				return false
			}
			f.want[i] = most
		}
	}
	f.cols, f.used = f.cols[:0], f.used[:0]
	f.lp.forget()
	if len(f.warm) == 0 {
		p := make([]float64, f.types)
		for t := range p {
			p[t] = f.meanPrice()
		}
		f.warm = append(f.warm, p)
	}
	f.price = append(f.price[:0], f.warm[0]...)
	for _, p := range f.warm {
		all := 0.0 // the number of GPUs may have changed since these were the prices
		for t, v := range p {
			all += v * f.room[t]
		}
		if all == 0 {
			continue
		}
		for t, v := range p {
			f.price[t] = v / all
		}
		if f.column() > 1+tight {
			return false
		}
	}
	for len(f.cols) < maxColumns {
		busy, err := f.lp.solve(f.used, &f.mix, f.price)
		if err != nil {
			break
		}
		if busy <= 1+tight {
			f.blend(busy)
			f.remember()
			return true
		}
		for t := range f.price {
			if f.room[t] > 0 {
				f.price[t] /= f.room[t]
			} else {
				f.price[t] = 0
			}
		}
		bound := f.column()
		if bound > 1+tight {
			f.remember()
			return false
		}
		if busy-bound < tight/10 { // close enough to count as feasible
			f.blend(busy)
			return true
		}
	}
	f.unproved++
	return false
}

// remember keeps the prices for the next program.
func (f *fair) remember() {
	if len(f.warm) > 2*f.types {
		f.warm = append(f.warm[:1], f.warm[2:]...)
	}
	f.warm = append(f.warm, append([]float64(nil), f.price...))
}

// column adds the answers to the prices, which must add up to 1 over all GPUs. It returns their cost, a lower bound
// on the use of the busiest type.
func (f *fair) column() (cost float64) {
	k := len(f.cols)
	f.cols, f.used = longer(f.cols), longer(f.used)
	x := append(f.cols[k][:0], make([]float64, len(f.speed))...)
	u := append(f.used[k][:0], make([]float64, f.types)...)
	for i := range f.size {
		at := x[i*f.types : (i+1)*f.types]
		cost += f.copies[i] * f.answer(i, at)
		for t, v := range at {
			u[t] += f.copies[i] * f.size[i] * v
		}
	}
	for t := range u {
		if f.room[t] > 0 {
			u[t] /= f.room[t]
		}
	}
	f.cols[k], f.used[k] = x, u
	return cost
}

// longer returns list with one more row, which reuses the memory of an earlier row if there is one.
func longer(list [][]float64) [][]float64 {
	if n := len(list); n < cap(list) {
		return list[:n+1]
	}
	return append(list, nil)
}

// answer finds the cheapest shares, on one type or two, that give i the throughput it wants, and returns their cost.
// Of equally cheap shares it takes those with the least GPU-time.
func (f *fair) answer(i int, x []float64) (cost float64) {
	want, speed := f.want[i], f.speed[i*f.types:(i+1)*f.types]
	cost = math.Inf(1)
	a, b, xa, xb := 0, 0, 0.0, 0.0
	for t, v := range speed {
		if v <= 0 {
			continue
		}
		if v >= want {
			if c := f.size[i] * f.price[t] * want / v; c < cost || c == cost && want/v < xa+xb {
				cost, a, b, xa, xb = c, t, t, want/v, 0
			}
			continue
		}
		for u, w := range speed {
			if w < want || w <= v {
				continue
			}
			y := (want - v) / (w - v)
			if c := f.size[i] * (f.price[t]*(1-y) + f.price[u]*y); c < cost {
				cost, a, b, xa, xb = c, t, u, 1-y, y
			}
		}
	}
	x[a] += xa
	x[b] += xb
	return cost
}

// blend makes x the mixture of the answers, scaled down if busy exceeds 1.
func (f *fair) blend(busy float64) {
	clear(f.x)
	for k, m := range f.mix {
		if m > 0 {
			m /= max(1, busy)
			for i, v := range f.cols[k] {
				f.x[i] += m * v
			}
		}
	}
}
