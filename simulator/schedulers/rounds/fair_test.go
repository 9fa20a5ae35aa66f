package rounds

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// linear is a demand that grows in proportion to the level.
type linear struct {
	f     *fair
	scale []float64
}

func (d linear) need(i int, z float64) float64 { return z * d.scale[i] }
func (d linear) most(i int) float64            { return d.f.fastest(i) / d.scale[i] }

// checkShares fails if x breaks a row of the program.
func checkShares(t *rapid.T, f *fair) {
	use := make([]float64, f.types)
	for i := range f.size {
		sum := 0.0
		for k, x := range f.x[i*f.types : (i+1)*f.types] {
			if x < 0 || x > 0 && f.speed[i*f.types+k] == 0 {
				t.Fatalf("job %d has share %g of type %d, where its speed is %g", i, x, k, f.speed[i*f.types+k])
			}
			sum += x
			use[k] += x * f.size[i] * f.copies[i]
		}
		if sum > 1+1e-9 {
			t.Fatalf("job %d has %g of the time", i, sum)
		}
	}
	for k, u := range use {
		if u > f.room[k]*(1+1e-9) {
			t.Fatalf("%g of %g GPUs of type %d", u, f.room[k], k)
		}
	}
}

func (f *fair) throughput(i int) (v float64) {
	for k := range f.types {
		v += f.speed[i*f.types+k] * f.x[i*f.types+k]
	}
	return v
}

func drawFair(r *rand.Rand, n, types int) (*fair, linear) {
	f := &fair{types: types}
	for range types {
		f.room = append(f.room, float64(1+r.IntN(6)))
	}
	d := linear{f: f}
	for range n {
		f.copies, f.size = append(f.copies, float64(1+r.IntN(2))), append(f.size, float64(int(1)<<r.IntN(3)))
		from := len(f.speed)
		for range types {
			f.speed = append(f.speed, []float64{0, 0.3, 0.5, 1, 1, 2, 3.7}[r.IntN(7)])
		}
		f.speed[from+r.IntN(types)] = 1
		d.scale = append(d.scale, []float64{0.2, 0.5, 1, 3}[r.IntN(4)])
	}
	return f, d
}

// The level is that of the program's best corner. All corners are examined: at each, as many rows and bounds as there
// are unknowns hold with equality.
func TestLevelIsThatOfTheBestCorner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n, types := 1+r.IntN(2), 1+r.IntN(3)
		if n*types > 4 {
			types = 2
		}
		f, d := drawFair(r, n, types)
		f.solve(d, 0)
		checkShares(t, f)
		if f.unproved > 0 {
			t.Fatal("not proved")
		}
		got := math.Inf(1)
		for i := range n {
			got = min(got, f.throughput(i)/d.scale[i])
		}
		want := bestCorner(f, d)
		if math.Abs(got-want) > 1e-6*want {
			t.Fatalf("level %g, the best corner has %g; %+v %v", got, want, f, d.scale)
		}
	})
}

// bestCorner returns the greatest level over all corners of the program.
func bestCorner(f *fair, d linear) (best float64) {
	n := len(f.size)
	unknowns := n*f.types + 1 // shares and the level
	var rows [][]float64      // Σ row·unknowns ≤ last
	row := func() []float64 {
		rows = append(rows, make([]float64, unknowns+1))
		return rows[len(rows)-1]
	}
	for i := range n {
		need, time := row(), row()
		need[unknowns-1], time[unknowns] = d.scale[i], 1
		for k := range f.types {
			need[i*f.types+k], time[i*f.types+k] = -f.speed[i*f.types+k], 1
			row()[i*f.types+k] = -1
		}
	}
	for k := range f.types {
		c := row()
		c[unknowns] = f.room[k]
		for i := range n {
			c[i*f.types+k] = f.size[i] * f.copies[i]
		}
	}
	var pick func(from int, chosen []int)
	pick = func(from int, chosen []int) {
		if len(chosen) == unknowns {
			if x, ok := corner(rows, chosen); ok && !slices.ContainsFunc(rows, func(r []float64) bool {
				sum := 0.0
				for c, v := range x {
					sum += r[c] * v
				}
				return sum > r[unknowns]+1e-9
			}) {
				best = max(best, x[unknowns-1])
			}
			return
		}
		for c := from; c < len(rows); c++ {
			pick(c+1, append(chosen, c))
		}
	}
	pick(0, nil)
	return best
}

// corner solves the chosen rows as equations by elimination.
func corner(rows [][]float64, chosen []int) ([]float64, bool) {
	n := len(chosen)
	m := make([][]float64, n)
	for i, c := range chosen {
		m[i] = slices.Clone(rows[c])
	}
	for c := range n {
		p := c
		for r := c; r < n; r++ {
			if math.Abs(m[r][c]) > math.Abs(m[p][c]) {
				p = r
			}
		}
		if math.Abs(m[p][c]) < 1e-12 {
			return nil, false
		}
		m[c], m[p] = m[p], m[c]
		for r := range n {
			if k := m[r][c] / m[c][c]; r != c && k != 0 {
				for i := c; i <= n; i++ {
					m[r][i] -= k * m[c][i]
				}
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = m[i][n] / m[i][i]
	}
	return x, true
}

// On one type the shares are those of water-filling: all jobs have the same level, except those that already have all
// the time they can use.
func TestOneTypeIsWaterFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		n := 1 + r.IntN(40)
		f := &fair{types: 1, room: []float64{float64(1 + r.IntN(64))}}
		d := linear{f: f}
		for range n {
			f.copies, f.size, f.speed = append(f.copies, 1), append(f.size, float64(int(1)<<r.IntN(6))), append(f.speed, 1)
			d.scale = append(d.scale, 1/f.size[len(f.size)-1])
		}
		f.solve(d, 0)
		checkShares(t, f)
		// The level at which the sum of min(size, level) over the jobs fills the room.
		left, level := f.room[0], 0.0
		sizes := slices.Sorted(slices.Values(f.size))
		for i, s := range sizes {
			if level = left / float64(n-i); level <= s {
				break
			}
			left -= s
			level = math.Inf(1)
		}
		for i, s := range f.size {
			if want := min(s, level); math.Abs(f.x[i]*s-want) > 1e-5*want {
				t.Fatalf("job %d of %g GPUs has %g of %g, want %g; all %v", i, s, f.x[i]*s, f.room[0], want, f.size)
			}
		}
	})
}

// Many jobs on six types: proved, within the rows, and, as the prices show, no job can have more than the level
// unless another has less.
func TestManyJobsOnSixTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	f, d := drawFair(r, 300, 6)
	for k := range f.room {
		f.room[k] = float64(20 + 7*k)
	}
	f.solve(d, 0)
	rapid.Check(t, func(t *rapid.T) { checkShares(t, f) })
	if f.unproved > 0 {
		t.Errorf("%d levels are not proved", f.unproved)
	}
	level := math.Inf(1)
	for i := range f.size {
		level = min(level, f.throughput(i)/d.scale[i])
	}
	clear(f.fixed)
	if !f.feasible(d, level*(1-1e-6)) || f.feasible(d, level*(1+1e-6)) {
		t.Errorf("%g is not the greatest level", level)
	}
}

func BenchmarkShares(b *testing.B) {
	for _, c := range []struct {
		name     string
		n, types int
	}{{"100x3", 100, 3}, {"500x3", 500, 3}, {"500x6", 500, 6}, {"5000x3", 5000, 3}} {
		b.Run(c.name, func(b *testing.B) {
			f, d := drawFair(rand.New(rand.NewPCG(1, 1)), c.n, c.types)
			for k := range f.room {
				f.room[k] = float64(c.n) / 3
			}
			for b.Loop() {
				f.solve(d, 0)
			}
			if f.unproved > 0 {
				b.Error(f.unproved, "levels not proved")
			}
		})
	}
}
