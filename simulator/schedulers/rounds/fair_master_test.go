package rounds

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Two columns, each of which uses another row wholly: half of each, at equal prices. A third that uses both rows by
// 0.4 is better than the mixture.
func TestMasterByHand(t *testing.T) {
	var l master
	var w []float64
	price := make([]float64, 2)
	for _, c := range []struct {
		used [][]float64
		busy float64
		w    []float64
	}{
		{[][]float64{{1, 0}, {0, 1}}, 0.5, []float64{0.5, 0.5}},
		{[][]float64{{1, 0}, {0, 1}, {0.4, 0.4}}, 0.4, []float64{0, 0, 1}},
		{[][]float64{{1, 0}, {0, 1}, {0.4, 0.4}, {0, 0}}, 0, []float64{0, 0, 0, 1}},
	} {
		busy, err := l.solve(c.used, &w, price)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(busy-c.busy) > 1e-12 || len(w) != len(c.w) || math.Abs(price[0]+price[1]-1) > 1e-12 {
			t.Errorf("got %g, weights %v, prices %v, want %g and %v", busy, w, price, c.busy, c.w)
		}
		for k := range w {
			if math.Abs(w[k]-c.w[k]) > 1e-12 {
				t.Errorf("weights %v, want %v", w, c.w)
			}
		}
	}
}

// For any columns, added one at a time, the mixture and the prices prove each other's optimum. Columns that are
// equal, zero or multiples of one another make many of the bases degenerate.
func TestMasterIsProved(t *testing.T) {
	degenerate, plain := 0, 0
	for seed := range uint64(100) { // fixed, so that the counts below are too
		r := rand.New(rand.NewPCG(seed, 4))
		rows, n := 1+r.IntN(6), 1+r.IntN(30)
		values, unit := [][]float64{{0, 1}, {0, 0.5, 1, 2}, nil}[r.IntN(3)], math.Exp(4*r.NormFloat64())
		l, w, price := new(master), []float64(nil), make([]float64, rows)
		var used [][]float64
		for range n {
			u := make([]float64, rows)
			for k := range u {
				if u[k] = unit * r.ExpFloat64(); values != nil {
					u[k] = unit * values[r.IntN(len(values))]
				}
			}
			used = append(used, u)
			busy, err := l.solve(used, &w, price)
			if err != nil {
				t.Fatal(err)
			}
			all, paid, top, cheapest := 0.0, 0.0, 0.0, math.Inf(1)
			use := make([]float64, rows)
			for k, m := range w {
				if m < 0 {
					t.Fatalf("seed %d: weight %g", seed, m)
				}
				all += m
				cost := 0.0
				for i, v := range used[k] {
					use[i] += m * v
					cost += price[i] * v
				}
				cheapest = min(cheapest, cost)
			}
			for i, p := range price {
				if p < 0 {
					t.Fatalf("seed %d: price %g", seed, p)
				}
				paid += p
				top = max(top, use[i])
			}
			if math.Abs(all-1) > 1e-12 || math.Abs(paid-1) > 1e-12 || math.Abs(top-busy) > 1e-12*top ||
				cheapest < busy*(1-1e-10) {
				t.Fatalf(
					"seed %d: weights sum up to %g, prices to %g; the busiest row is %g, said to be %g; the cheapest column costs %g",
					seed, all, paid, top, busy, cheapest)
			}
			if len(l.basis) == 0 {
				degenerate++
			} else {
				plain++
			}
		}
	}
	if degenerate < 100 || plain < 100 {
		t.Errorf("%d programs with a degenerate basis, %d without: this tests too little", degenerate, plain)
	}
}

// A program that lp.Simplex cannot solve, fails on, panics at or would never finish is an error.
func TestProgramsThatCannotBeSolved(t *testing.T) {
	for _, c := range []struct {
		name  string
		p     program
		basis []int
		want  string
	}{
		{"a column of zeros", program{rows: 1, columns: 2, table: []float64{1, 0}, cost: []float64{1, 1},
			right: []float64{1}}, []int{0}, "column of all zeros"},
		{"a row of zeros", program{rows: 2, columns: 2, table: []float64{1, 1, 0, 0}, cost: []float64{1, 1},
			right: []float64{1, 0}}, []int{0, 1}, "row of all zeros"},
		{"more rows than columns", program{rows: 2, columns: 1, table: []float64{1, 1}, cost: []float64{1},
			right: []float64{1, 1}}, []int{0, 0}, "more equality constraints"},
		{"a singular basis", program{rows: 2, columns: 3, table: []float64{1, 1, 1, 1, 1, 0}, cost: []float64{1, 1, 1},
			right: []float64{1, 1}}, []int{0, 1}, "singular"},
		{"a basis that is not feasible",
			program{rows: 1, columns: 2, table: []float64{-1, 1}, cost: []float64{1, 1}, right: []float64{1}}, []int{0},
			"not a feasible"},
		{"not a number", program{rows: 1, columns: 2, table: []float64{math.NaN(), math.NaN()}, cost: []float64{1, 2},
			right: []float64{1}}, []int{0}, "not a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if x, err := c.p.solve(c.basis); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v and %v, want an error with %q", x, err, c.want)
			}
		})
	}
	p := program{rows: 1, columns: 2, table: []float64{1, 1}}
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, errEndless) {
			t.Errorf("got %v, want %v", err, errEndless)
		}
	}()
	for range 10 {
		p.At(0, 0)
	}
	t.Error("no end")
}

// breaking is a demand whose programs cannot be solved above a level.
type breaking struct {
	linear
	copies, limit float64
}

func (d breaking) need(i int, z float64) float64 {
	if d.f.copies[0] = d.copies; z > d.limit {
		d.f.copies[0] = math.NaN()
	}
	return d.linear.need(i, z)
}

// A level whose programs cannot be solved counts as unproved, and the shares of the last feasible level stay.
func TestUnsolvedLevelsKeepTheLastShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, d := drawAny(t)
		f.solve(d, 0)
		level := math.Inf(1)
		for i := range f.size {
			level = min(level, f.throughput(i)/d.scale[i])
		}
		b := breaking{d, f.copies[0], level * 0.7}
		f.solve(b, 0)
		f.copies[0] = b.copies
		checkShares(t, f)
		if f.unproved == 0 {
			t.Fatal("all levels are proved")
		}
		for i := range f.size {
			if got := f.throughput(i) / d.scale[i]; got < b.limit*(1-1e-6) {
				t.Fatalf("job %d has level %g, want %g or more", i, got, b.limit)
			}
		}
	})
}
