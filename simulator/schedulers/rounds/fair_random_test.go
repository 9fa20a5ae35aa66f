package rounds

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawAny draws a program of up to six types and sixty jobs. Few distinct speeds and sizes make ties, and therefore
// degenerate bases, likely. Types may have no GPUs, and then no job can use them.
func drawAny(t *rapid.T) (*fair, linear) {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
	types, n := rapid.IntRange(1, 6).Draw(t, "types"), rapid.IntRange(1, 60).Draw(t, "jobs")
	f := &fair{types: types}
	most := []int{1, 8, 500}[r.IntN(3)]
	for range types {
		room := float64(1 + r.IntN(most))
		if r.IntN(5) == 0 {
			room = 0
		}
		f.room = append(f.room, room)
	}
	some := r.IntN(types)
	f.room[some] = max(1, f.room[some])
	speeds := [][]float64{{1}, {0, 1}, {0.5, 1}, {0, 0.3, 0.5, 1, 1, 2, 3.7}, nil}[r.IntN(5)]
	d := linear{f: f}
	for range n {
		f.copies, f.size = append(f.copies, float64(1+r.IntN(9))), append(f.size, float64(int(1)<<r.IntN(4)))
		from := len(f.speed)
		for k := range types {
			s := 0.0
			switch {
			case f.room[k] == 0:
			case speeds == nil:
				s = math.Exp(3 * r.NormFloat64())
			default:
				s = speeds[r.IntN(len(speeds))]
			}
			f.speed = append(f.speed, s)
		}
		if f.fastest(len(f.size)-1) == 0 {
			f.speed[from+some] = 1
		}
		d.scale = append(d.scale, []float64{0.2, 0.5, 1, 3}[r.IntN(4)])
	}
	return f, d
}

// For every program: lp.Simplex solves it, the shares are within the rows, and the prices prove that no shares give
// every job more than the level.
func TestSharesOfAnyProgram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, d := drawAny(t)
		f.solve(d, 0)
		checkShares(t, f)
		level := math.Inf(1)
		for i := range f.size {
			level = min(level, f.throughput(i)/d.scale[i])
		}
		if level <= 0 {
			t.Fatalf("level %g", level)
		}
		clear(f.fixed)
		if !f.feasible(d, level*(1-1e-6)) {
			t.Fatalf("no shares for level %g that somebody had", level)
		}
		checkShares(t, f)
		for i := range f.size {
			if got := f.throughput(i) / d.scale[i]; got < level*(1-2e-6) {
				t.Fatalf("job %d has level %g of %g", i, got, level)
			}
		}
		if f.feasible(d, level*(1+1e-6)) {
			t.Fatalf("%g is not the greatest level", level)
		}
		checkProof(t, f, d, level*(1+1e-6))
		if f.unproved > 0 {
			t.Fatalf("%d levels are not proved", f.unproved)
		}
	})
}

// checkProof fails if f's prices do not prove that there are no shares for level z: all GPUs together cost 1, and
// what all jobs want costs more. The dual of a job's own program bounds its costs from below: with a rent λ for
// throughput and μ for time such that λ·speed[t] − μ ≤ size·price[t] for all t, they are at least λ·want − μ.
func checkProof(t *rapid.T, f *fair, d linear, z float64) {
	for i := range f.size {
		if d.need(i, z) > f.fastest(i) {
			return // obvious without prices
		}
	}
	all, least := 0.0, 0.0
	for k, p := range f.price {
		if p < 0 {
			t.Fatalf("price %g", p)
		}
		all += p * f.room[k]
	}
	if math.Abs(all-1) > 1e-9 {
		t.Fatalf("all GPUs cost %g", all)
	}
	for i := range f.size {
		speed, bound := f.speed[i*f.types:(i+1)*f.types], 0.0
		try := func(rent float64) {
			mu := 0.0
			for k, s := range speed {
				if s > 0 {
					mu = max(mu, rent*s-f.size[i]*f.price[k])
				}
			}
			bound = max(bound, rent*d.need(i, z)-mu)
		}
		for a, s := range speed {
			if s > 0 {
				try(f.size[i] * f.price[a] / s)
			}
			for b, w := range speed[:a] {
				if s > 0 && w > 0 && s != w {
					if rent := f.size[i] * (f.price[a] - f.price[b]) / (s - w); rent > 0 {
						try(rent)
					}
				}
			}
		}
		least += f.copies[i] * bound
	}
	if least <= 1 {
		t.Fatalf("level %g costs %g of all GPUs: that is no proof that it cannot be had", z, least)
	}
}
