package maml

import (
	"fmt"
	"math"
	"testing"

	"clustergym/internal/rng"
)

// quadratic is L(x) = ½(x−c)ᵀA(x−c), with A symmetric and positive definite.
type quadratic[T Float] struct {
	a [][]T
	c []T
}

func newQuadratic[T Float](n int, name string) quadratic[T] {
	src := rng.Stream(1, name)
	b := make([][]float64, n)
	for i := range b {
		b[i] = make([]float64, n)
		for j := range b[i] {
			b[i][j] = src.NormFloat64() / math.Sqrt(float64(n))
		}
	}
	q := quadratic[T]{make([][]T, n), make([]T, n)}
	for i := range n {
		q.a[i], q.c[i] = make([]T, n), T(src.NormFloat64())
		for j := range n {
			for k := range n {
				q.a[i][j] += T(b[i][k] * b[j][k])
			}
		}
		q.a[i][i] += 0.1
	}
	return q
}

func (q quadratic[T]) times(v []T) []T {
	out := make([]T, len(v))
	for i := range out {
		for j, x := range v {
			out[i] += q.a[i][j] * x
		}
	}
	return out
}

func (q quadratic[T]) gradient(g, x []T) error {
	d := make([]T, len(x))
	for i := range x {
		d[i] = x[i] - q.c[i]
	}
	copy(g, q.times(d))
	return nil
}

// less is (I − rate·A)·v.
func (q quadratic[T]) less(v []T, rate float64) []T {
	out := q.times(v)
	for i := range out {
		out[i] = v[i] - T(rate)*out[i]
	}
	return out
}

// The closed forms: MAML (I−αA)^K A (I−αA)^K (θ−c), FOMAML A (I−αA)^K (θ−c), Reptile (I − (I−αA)^K)(θ−c).
func TestQuadraticTasksHaveTheirClosedForms(t *testing.T) {
	closedForms[float64](t, 1e-8, 1e-3)
	closedForms[float32](t, 2e-4, 0.5)
}

func closedForms[T Float](t *testing.T, tolerance, reach float64) {
	const n, rate = 12, 0.1
	for _, steps := range []int{1, 2, 5} {
		q := newQuadratic[T](n, "quadratic")
		src := rng.Stream(2, "start")
		p, d := NewPath[T](steps, n), NewDiffer[T](n, reach)
		away := make([]T, n)
		for i := range p[0] {
			p[0][i] = T(src.NormFloat64())
			away[i] = p[0][i] - q.c[i]
		}
		loss := func(int) Gradient[T] { return q.gradient }
		u, buf := make([]T, n), make([]T, n)
		if err := Adapt(p, rate, loss, buf); err != nil {
			t.Fatal(err)
		}
		end := away // φ − c
		for range steps {
			end = q.less(end, rate)
		}
		first := q.times(end)
		second := first
		for range steps {
			second = q.less(second, rate)
		}
		reptile := make([]T, n)
		for i := range reptile {
			reptile[i] = away[i] - end[i]
		}
		for _, c := range []struct {
			name string
			run  func() error
			want []T
		}{
			{"MAML", func() error { return metaGradient(d, u, p, rate, 2, loss, q.gradient, buf) }, second},
			{"FOMAML", func() error { return metaGradient(d, u, p, rate, 1, loss, q.gradient, buf) }, first},
			{"Reptile", func() error { Displacement(u, p); return nil }, reptile},
		} {
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
			for i := range u {
				if math.Abs(float64(u[i]-c.want[i])) > tolerance {
					t.Errorf("%T, %s, %d steps: [%d] is %v, want %v", u[i], c.name, steps, i, u[i], c.want[i])
				}
			}
		}
		// What Push does to a direction is what Pull does to a gradient: they are each other's transposes.
		v, w := append([]T(nil), first...), append([]T(nil), away...)
		if err := d.Push(v, p, rate, loss, buf); err != nil {
			t.Fatal(err)
		}
		a := dot(v, away)
		if err := d.Pull(w, p, rate, loss, buf); err != nil {
			t.Fatal(err)
		}
		if b := dot(w, first); math.Abs(a-b) > tolerance*10 {
			t.Errorf("Push and Pull: %v and %v", a, b)
		}
	}
}

// A loss that is not quadratic, with a Hessian that is known: L = Σ x⁴/12 + sin(x₀·x₁).
func TestProductsAreThoseOfTheHessian(t *testing.T) {
	gradient := func(g, x []float64) error {
		for i, v := range x {
			g[i] = v * v * v / 3
		}
		g[0] += x[1] * math.Cos(x[0]*x[1])
		g[1] += x[0] * math.Cos(x[0]*x[1])
		return nil
	}
	x, v := []float64{0.7, -1.1, 2}, []float64{0.3, 5, -2}
	s, c := math.Sincos(x[0] * x[1])
	h := [][]float64{
		{x[0]*x[0] - x[1]*x[1]*s, c - x[0]*x[1]*s, 0},
		{c - x[0]*x[1]*s, x[1]*x[1] - x[0]*x[0]*s, 0},
		{0, 0, x[2] * x[2]},
	}
	got := make([]float64, 3)
	if err := NewDiffer[float64](3, 1e-4).Product(got, x, v, gradient); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		want := h[i][0]*v[0] + h[i][1]*v[1] + h[i][2]*v[2]
		if math.Abs(got[i]-want) > 1e-6 {
			t.Errorf("[%d] is %v, want %v", i, got[i], want)
		}
	}
	// At rest one gradient is enough.
	rest := func(g, y []float64) error {
		at := make([]float64, 3)
		if err := gradient(at, x); err != nil {
			return err
		}
		err := gradient(g, y)
		for i := range g {
			g[i] -= at[i]
		}
		return err
	}
	once := make([]float64, 3)
	if err := NewDiffer[float64](3, 1e-6).AtRest(once, x, v, rest); err != nil {
		t.Fatal(err)
	}
	for i := range once {
		if math.Abs(once[i]-got[i]) > 1e-4 {
			t.Errorf("at rest [%d] is %v, want %v", i, once[i], got[i])
		}
	}
	if err := NewDiffer[float64](3, 1e-4).Product(got, x, make([]float64, 3), gradient); err != nil || got[0] != 0 {
		t.Errorf("times 0: %v, %v", got, err)
	}
}

func TestTheGradientThroughTheInnerLoopIsThatOfTheWhole(t *testing.T) {
	// The loss after two steps, as a function of where they began, by central differences.
	task := func(g, x []float64) error {
		for i, v := range x {
			g[i] = math.Tanh(v-0.3*float64(i)) + 0.1*x[(i+1)%len(x)]*x[(i+1)%len(x)]
			g[i] += 0.2 * v * x[(i+len(x)-1)%len(x)] // the gradient of 0.1·Σ x_i·x_(i+1)² + Σ ln cosh
		}
		return nil
	}
	value := func(x []float64) float64 {
		sum := 0.0
		for i, v := range x {
			sum += math.Log(math.Cosh(v-0.3*float64(i))) + 0.1*v*x[(i+1)%len(x)]*x[(i+1)%len(x)]
		}
		return sum
	}
	const n, rate = 4, 0.2
	start := []float64{1, -0.5, 0.2, 0.8}
	p, buf, u := NewPath[float64](2, n), make([]float64, n), make([]float64, n)
	loss := func(int) Gradient[float64] { return task }
	whole := func(x []float64) float64 {
		copy(p[0], x)
		if err := Adapt(p, rate, loss, buf); err != nil {
			t.Fatal(err)
		}
		return value(p.Last())
	}
	var want [n]float64
	for i := range n {
		const h = 1e-5
		x := append([]float64(nil), start...)
		x[i] += h
		up := whole(x)
		x[i] -= 2 * h
		want[i] = (up - whole(x)) / (2 * h)
	}
	whole(start)
	if err := metaGradient(NewDiffer[float64](n, 1e-4), u, p, rate, 2, loss, task, buf); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Abs(u[i]-want[i]) > 1e-7 {
			t.Errorf("[%d] is %v, want %v", i, u[i], want[i])
		}
	}
}

func TestSolveFindsTheSolutionOfAQuadratic(t *testing.T) {
	const n = 12
	q := newQuadratic[float64](n, "solve")
	x, b := make([]float64, n), make([]float64, n)
	for i := range b {
		b[i] = float64(i%5) - 2
	}
	if err := Solve(x, b, n+3, func(dst, v []float64) error { copy(dst, q.times(v)); return nil }); err != nil {
		t.Fatal(err)
	}
	for i, v := range q.times(x) {
		if math.Abs(v-b[i]) > 1e-3 {
			t.Errorf("[%d] is %v, want %v", i, v, b[i])
		}
	}
	failing := fmt.Errorf("no product")
	if err := Solve(x, b, 3, func([]float64, []float64) error { return failing }); err != failing {
		t.Errorf("got %v", err)
	}
}

// metaGradient sets u to the gradient of after at the end of p with respect to p's first point: exactly that of MAML
// with order 2; with order 1 as if the inner steps did not depend on where they began. Adapt must have filled p.
func metaGradient[T Float](d *Differ[T], u []T, p Path[T], rate float64, order int, loss func(k int) Gradient[T],
	after Gradient[T], buf []T) error {
	if err := after(u, p.Last()); err != nil {
		return err
	}
	if order == 1 {
		return nil
	}
	return d.Pull(u, p, rate, loss, buf)
}
