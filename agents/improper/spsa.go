package improper

import (
	"fmt"
	"math"
	"slices"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
)

// perturbed estimates the gradient of the return by perturbing theta: row 2j plays with θ + c·u_j, row 2j + 1 with θ −
// c·u_j, whole episodes. Rows that have played theirs play on until all have, and what they earn then does not count.
type perturbed struct {
	a     *Agent
	dim   int
	thick []float32 // [rows, dim]
	unit  []float64 // [rows/2, dim], the perturbations

	trial
	stale bool // thick and unit are not those of theta
}

func newPerturbed(a *Agent) (*perturbed, error) {
	if a.rows%2 != 0 {
		return nil, fmt.Errorf("improper: method spsa plays in pairs; got %d rows, want an even number", a.rows)
	}
	d := len(a.params.Data)
	t := &perturbed{
		a: a, dim: d, thick: make([]float32, a.rows*d), unit: make([]float64, a.rows/2*d),
		trial: trial{
			Episode: make([]int64, a.rows), Earned: make([]float64, a.rows), Running: make([]float64, a.rows),
			Discount: slices.Repeat([]float64{1}, a.rows),
		},
	}
	t.stale = true
	return t, nil
}

// theta returns the weights with which a row plays.
func (t *perturbed) theta(row int) []float32 {
	if t.stale {
		t.perturb()
	}
	return t.thick[row*t.dim : (row+1)*t.dim]
}

// perturb draws directions of length 1, uniformly, and gives every row its weights.
func (t *perturbed) perturb() {
	t.stale = false
	src := rng.Stream(rng.At(t.a.seed, uint64(t.a.updates)), "improper/spsa")
	for j := range t.a.rows / 2 {
		u := t.unit[j*t.dim : (j+1)*t.dim]
		for i := range u {
			u[i] = src.NormFloat64()
		}
		n := length(u)
		for i := range u {
			u[i] /= n
			t.thick[2*j*t.dim+i] = t.a.params.Data[i] + float32(t.a.cfg.Perturb*u[i])
			t.thick[(2*j+1)*t.dim+i] = t.a.params.Data[i] - float32(t.a.cfg.Perturb*u[i])
		}
	}
}

// counts reports whether a row's current episode counts.
func (t *perturbed) counts(row int) bool {
	return t.Episode[row] >= t.From && t.Episode[row] < t.From+int64(t.a.cfg.Episodes)
}

func (t *perturbed) observe(next *env.Batch) error {
	if next.N != t.a.rows {
		return fmt.Errorf("improper: a batch of %d rows for an agent of %d", next.N, t.a.rows)
	}
	for i := range t.a.rows {
		r, kind := next.Reward[i], next.Kind[i]
		if r-r != 0 {
			return fmt.Errorf("improper: row %d: reward is %v", i, r)
		}
		if kind == env.First {
			continue
		}
		t.Running[i] += t.Discount[i] * r
		t.Discount[i] *= t.a.spec.Discount(t.a.cfg.Gamma, next.Elapsed[i])
		if kind.Last() {
			if t.counts(i) {
				t.Earned[i] += t.Running[i]
			}
			t.Running[i], t.Discount[i] = 0, 1
			t.Episode[i]++
		}
	}
	return nil
}

// learn makes a step once all rows have played their episodes.
func (t *perturbed) learn() (agents.Stats, error) {
	a, latest := t.a, int64(0)
	for i := range t.Episode {
		if t.Episode[i] < t.From+int64(a.cfg.Episodes) {
			return nil, agents.ErrNotReady
		}
		latest = max(latest, t.Episode[i])
	}
	if t.stale { // a resumed run that has not acted
		t.perturb()
	}
	// Returns are divided by their deviation over all rows, so that lr does not depend on the unit of rewards.
	mean, squares, n := 0.0, 0.0, float64(a.rows)
	for _, r := range t.Earned {
		mean += r / n
	}
	for _, r := range t.Earned {
		squares += (r - mean) * (r - mean)
	}
	deviation := math.Sqrt(squares/n) + 1e-8
	grad := make([]float64, t.dim)
	for j := range a.rows / 2 {
		slope := (t.Earned[2*j] - t.Earned[2*j+1]) / (2 * a.cfg.Perturb * deviation) * float64(t.dim) / (n / 2)
		for i, u := range t.unit[j*t.dim : (j+1)*t.dim] {
			grad[i] += slope * u
		}
	}
	norm := length(grad)
	if step := a.rate() * norm; !(step <= math.MaxFloat32) {
		return nil,
			fmt.Errorf(
				"improper: the step of update %d has length %v and its gradient %v: lr is too large, or perturb too small",
				a.updates, step, norm)
	}
	for i, g := range grad {
		a.params.Data[i] += float32(a.rate() * g)
	}
	a.updates++
	clear(t.Earned)
	t.From = latest + 1 // a new episode in every row
	t.stale = true
	a.weights(a.p, a.params.Data, nil, nil)
	entropy := 0.0
	for _, p := range a.p {
		if p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	return a.report(entropy, slices.Max(a.p), norm, 0, 0), nil
}
