package heuristic

import "math"

// fair shares GPUs of several types out among jobs. Job i, of which there are copies[i], is to get throughput need(i, z)
// in steps of time shares: with x[i][t] the share of the time that it holds its size[i] GPUs on type t,
//
//	Σ_t speed[i][t]·x[i][t] ≥ need(i, z),  Σ_t x[i][t] ≤ 1,  Σ_i copies[i]·size[i]·x[i][t] ≤ room[t],  x ≥ 0,
//
// and the level z is to be as high as can be. For a given z this is a linear program whose rows, but for one for each
// type, each concern one job alone. It is solved by Dantzig–Wolfe decomposition: given prices of the types, every job
// by itself finds the cheapest shares that satisfy it (on at most two types, in closed form); a master program with a
// row for each type mixes such answers so that the busiest type is used least; its duals are the next prices. Gonum's
// lp.Simplex solves the master program (see master). The answers to any prices bound from below how busy the busiest
// type must be, so that both "there are such shares" and "there are none" come with a proof that does not rest on the
// solver: the mixture is added up, and the prices are tried. The level is found by bisection between the two, to tolerance. Then, as progressive filling does
// for max-min fairness, whoever cannot get more keeps the level, and the others go on, up to maxLevels times: of the
// many optima of the program this is nearly the one in which nothing is left lying that somebody could use.
//
// A level whose master program lp.Simplex cannot solve is taken as one that cannot be had, and counted as unproved: the
// run goes on with the shares of the highest level for which there were any.
//
// A level costs some 25 bisections × a few rounds × jobs × types². The program as a whole needs a basis as large as the
// number of jobs, which is cubic in them at every pivot. speed[i][t] must be 0 where room[t] is.
type fair struct {
	types  int
	copies []float64
	size   []float64
	speed  []float64 // [job·types + type], 0 = not there
	room   []float64 // by type
	x      []float64 // the shares, as speed

	// unproved counts levels of which it was not proved that there are no shares, because lp.Simplex failed or the
	// decomposition did not come to an end.
	unproved int
	solved   int

	fixed []bool
	level []float64 // of those that are fixed
	want  []float64 // throughputs
	best  []float64 // shares of the last level for which there were any
	price []float64
	warm  [][]float64 // prices that the last programs ended with
	cols  [][]float64 // answers
	used  [][]float64 // what each uses of each type, as a share of room
	lp    master
	mix   []float64
}

const (
	tolerance  = 1e-7 // of levels, relative
	tight      = 1e-9 // of use: who uses so much more than there is is scaled down
	maxLevels  = 16
	maxColumns = 400
)

// demands are the needs of the jobs. need grows with the level from 0 on; most is the level at which need is what the
// job gets on its fastest type all the time.
type demands interface {
	need(i int, z float64) float64
	most(i int) float64
}

// solve fills x. low is a level that can be had.
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

// settle fixes those that cannot rise above low: who is at its most, and who pays for what it gets.
func (f *fair) settle(of demands, low, top float64) bool {
	any := false
	if low < top && !f.feasible(of, low*(1+2*tolerance)+math.SmallestNonzeroFloat64) {
		for i := range f.fixed {
			if !f.fixed[i] && f.pays(i) {
				f.fixed[i], f.level[i], any = true, low, true
			}
		}
	}
	for i := range f.fixed {
		if !f.fixed[i] && of.most(i) <= low*(1+2*tolerance) {
			f.fixed[i], f.level[i], any = true, low, true
		}
	}
	return any
}

// pays says whether at the present prices i's wants cost anything.
func (f *fair) pays(i int) bool {
	f.mix = append(f.mix[:0], make([]float64, f.types)...)
	return f.answer(i, f.mix) > 1e-6*f.size[i]*f.want[i]/f.fastest(i)*f.meanPrice()
}

func (f *fair) meanPrice() float64 { return 1 / sum(f.room) }

// reset forgets what was learnt of another cluster.
func (f *fair) reset() { f.warm, f.unproved, f.solved = f.warm[:0], 0, 0 }

func (f *fair) fastest(i int) (v float64) {
	for _, s := range f.speed[i*f.types : (i+1)*f.types] {
		v = max(v, s)
	}
	return v
}

// feasible says whether all who are not fixed can have level z; then x are shares with which they do.
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
					f.price[t] = 0 // nobody else stands in the way
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
		all := 0.0 // there may be more or fewer GPUs than when these were the prices
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
		if busy-bound < tight/10 { // a hair's breadth: it is as good as feasible
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

// column adds the answers to the prices, whose sum over all GPUs is 1. It returns what they cost: no shares can leave
// the busiest type less used than that.
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

// longer is list with one more row, whose memory is that of a row that was there before, if there was one.
func longer(list [][]float64) [][]float64 {
	if n := len(list); n < cap(list) {
		return list[:n+1]
	}
	return append(list, nil)
}

// answer finds the cheapest shares that give i what it wants, on one type or two, and returns the cost. Of equally
// cheap ones it takes those with the least GPU-time.
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

// blend makes x the mixture of the answers, scaled down by what it uses too much.
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
