package maml

import (
	"math"

	"golang.org/x/exp/constraints"
)

// Float is float32 or float64.
type Float interface{ constraints.Float }

// Gradient sets g to the gradient of a loss at x. It keeps neither.
type Gradient[T Float] func(g, x []T) error

// Path is the points of an inner loop: K+1 of them, the first of which is where it begins.
type Path[T Float] [][]T

// NewPath returns a path of the given numbers of steps and dimensions, all 0.
func NewPath[T Float](steps, size int) Path[T] {
	p := make(Path[T], steps+1)
	for k := range p {
		p[k] = make([]T, size)
	}
	return p
}

// Last returns the adapted point.
func (p Path[T]) Last() []T { return p[len(p)-1] }

// Step sets to = from − rate·g.
func Step[T Float](to, from, g []T, rate float64) {
	r := T(rate)
	for i, x := range from {
		to[i] = x - r*g[i]
	}
}

// Adapt fills p from its first point by gradient steps, p[k+1] = p[k] − rate·∇L_k(p[k]). loss(k) is the gradient of
// step k, whose loss may be over its own data. g is scratch.
func Adapt[T Float](p Path[T], rate float64, loss func(k int) Gradient[T], g []T) error {
	for k := range len(p) - 1 {
		if err := loss(k)(g, p[k]); err != nil {
			return err
		}
		Step(p[k+1], p[k], g, rate)
	}
	return nil
}

// Differ multiplies vectors by Hessians. It has its own buffers: use one per goroutine.
type Differ[T Float] struct {
	// Reach is how far from a point gradients are taken: ‖h·v‖.
	Reach float64

	up, down, at []T
}

// NewDiffer returns a Differ for n dimensions.
func NewDiffer[T Float](size int, reach float64) *Differ[T] {
	return &Differ[T]{Reach: reach, up: make([]T, size), down: make([]T, size), at: make([]T, size)}
}

// Product sets dst to the Hessian at x times v, (∇L(x+hv) − ∇L(x−hv))/2h with h = Reach/‖v‖. It is exact up to
// rounding for a quadratic loss. dst may be v.
func (d *Differ[T]) Product(dst, x, v []T, loss Gradient[T]) error {
	n := norm(v)
	if n == 0 {
		clear(dst)
		return nil
	}
	h := d.Reach / n
	move := func(g []T, sign float64) error {
		s := T(sign * h)
		for i := range x {
			d.at[i] = x[i] + s*v[i]
		}
		return loss(g, d.at)
	}
	if err := move(d.up, 1); err != nil {
		return err
	}
	if err := move(d.down, -1); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = T(float64(d.up[i]-d.down[i]) / (2 * h))
	}
	return nil
}

// AtRest is Product at an x where the gradient is 0, such as that of a divergence from the policy of x itself:
// ∇L(x+hv)/h, with one evaluation.
func (d *Differ[T]) AtRest(dst, x, v []T, loss Gradient[T]) error {
	n := norm(v)
	if n == 0 {
		clear(dst)
		return nil
	}
	h := d.Reach / n
	for i := range x {
		d.at[i] = x[i] + T(h)*v[i]
	}
	if err := loss(d.up, d.at); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = T(float64(d.up[i]) / h)
	}
	return nil
}

// Pull transforms a gradient u with respect to p's last point into that with respect to its first, u = Π_k (I −
// rate·H_k)·u beginning with the last step: the chain rule of MAML. buf is scratch.
func (d *Differ[T]) Pull(u []T, p Path[T], rate float64, loss func(k int) Gradient[T], buf []T) error {
	for k := len(p) - 2; k >= 0; k-- {
		if err := d.through(u, p[k], rate, loss(k), buf); err != nil {
			return err
		}
	}
	return nil
}

// Push transforms a direction v at p's first point into the resulting direction at its last. buf is scratch.
func (d *Differ[T]) Push(v []T, p Path[T], rate float64, loss func(k int) Gradient[T], buf []T) error {
	for k := range len(p) - 1 {
		if err := d.through(v, p[k], rate, loss(k), buf); err != nil {
			return err
		}
	}
	return nil
}

// through sets v = (I − rate·H)·v, H at x. It is symmetric.
func (d *Differ[T]) through(v, x []T, rate float64, loss Gradient[T], buf []T) error {
	if err := d.Product(buf, x, v, loss); err != nil {
		return err
	}
	Step(v, v, buf, rate)
	return nil
}

// Displacement sets u to p's first point minus its last: what Reptile uses as a gradient.
func Displacement[T Float](u []T, p Path[T]) {
	last := p.Last()
	for i, x := range p[0] {
		u[i] = x - last[i]
	}
}

func norm[T Float](v []T) float64 { return math.Sqrt(dot(v, v)) }

func dot[T Float](a, b []T) float64 {
	sum := 0.0
	for i, x := range a {
		sum += float64(x) * float64(b[i])
	}
	return sum
}

// Solve sets x to an approximate solution of A·x = b by conjugate gradients from 0 (Hestenes and Stiefel 1952), with
// at most iterations iterations, for a symmetric positive definite A given by its products: times sets dst to A·v.
func Solve[T Float](x, b []T, iterations int, times func(dst, v []T) error) error {
	r, p, z := append([]T(nil), b...), append([]T(nil), b...), make([]T, len(b))
	clear(x)
	rr := dot(r, r)
	end := 1e-10 * rr
	for range iterations {
		if rr <= end {
			return nil
		}
		if err := times(z, p); err != nil {
			return err
		}
		curvature := dot(p, z)
		if !(curvature > 0) { // rounding, or a matrix that is not positive definite: x is a direction of descent already
			return nil
		}
		a := rr / curvature
		for i := range x {
			x[i] += T(a * float64(p[i]))
			r[i] -= T(a * float64(z[i]))
		}
		next := dot(r, r)
		for i := range p {
			p[i] = T(float64(r[i]) + next/rr*float64(p[i]))
		}
		rr = next
	}
	return nil
}
