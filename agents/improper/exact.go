package improper

import (
	"fmt"
	"math"
)

// Process is a finite Markov decision process as the mixture sees it: what each controller does in each state.
type Process struct {
	States, Controllers int
	Gamma               float64
	Start               []float64 // [States], where episodes begin; sums to 1
	Reward              []float64 // [Controllers, States], expected
	// Next holds, for controller k in state s, the states that may follow, Next[k*States+s], each with its probability.
	Next [][]Branch
}

// Branch is a state that may follow, with its probability.
type Branch struct {
	State int
	P     float64
}

// validate returns an error if p is not a Markov decision process: sizes that do not fit, or probabilities that do not
// add up to 1.
func (p *Process) validate() error {
	if !(p.Gamma >= 0 && p.Gamma <= longest) {
		return fmt.Errorf("improper: a process has gamma %v, want 0 to %v", p.Gamma, longest)
	}
	if n := p.States * p.Controllers; p.States < 1 || p.Controllers < 1 || len(p.Start) != p.States ||
		len(p.Reward) != n || len(p.Next) != n {
		return fmt.Errorf(
			"improper: a process of %d states and %d controllers has %d starts, %d rewards and %d lists of branches, want as "+
				"many as states, and twice states × controllers",
			p.States, p.Controllers, len(p.Start), len(p.Reward), len(p.Next))
	}
	sum := 0.0
	for _, start := range p.Start {
		sum += start
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return fmt.Errorf("improper: the starts of a process sum to %v, want 1", sum)
	}
	for i, branches := range p.Next {
		sum := 0.0
		for _, b := range branches {
			if b.State < 0 || b.State >= p.States {
				return fmt.Errorf("improper: state %d, controller %d: state %d follows, want 0 to %d", i%p.States, i/p.States,
					b.State, p.States-1)
			}
			sum += b.P
		}
		if !(math.Abs(sum-1) < 1e-6) {
			return fmt.Errorf("improper: state %d, controller %d: the probabilities sum to %v, want 1", i%p.States, i/p.States,
				sum)
		}
	}
	return nil
}

// Exact is SoftMax PG with the true gradient: the policy gradient theorem over controllers, ∂V/∂θ_m = Σ_s
// d(s)·π_m·(Q(s, m) − V(s)), with d the discounted number of visits.
type Exact struct {
	p             *Process
	Theta, Weight []float64 // [Controllers]
	value, visits []float64 // [States]
	next          []float64
	grad          []float64
}

// NewExact begins with all controllers alike.
func NewExact(p *Process) (*Exact, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	col := func(n int) []float64 { return make([]float64, n) }
	e := &Exact{p: p, Theta: col(p.Controllers), Weight: col(p.Controllers), value: col(p.States), visits: col(p.States),
		next: col(p.States), grad: col(p.Controllers)}
	e.softmax()
	return e, nil
}

func (e *Exact) softmax() {
	top, sum := math.Inf(-1), 0.0
	for _, t := range e.Theta {
		top = max(top, t)
	}
	for k, t := range e.Theta {
		e.Weight[k] = math.Exp(t - top)
		sum += e.Weight[k]
	}
	for k := range e.Weight {
		e.Weight[k] /= sum
	}
}

// accuracy is that of values, relative, and of visits. It is reached within sweeps up to the discount longest.
const (
	accuracy = 1e-9
	sweeps   = 1_000_000
	longest  = 0.9999
)

// evaluate solves for the values of the mixture in place, from the last ones on.
func (e *Exact) evaluate() {
	for range sweeps {
		change, size := 0.0, 1.0
		for s := range e.p.States {
			v := 0.0
			for k, w := range e.Weight {
				v += w * e.q(s, k)
			}
			change, size = max(change, math.Abs(v-e.value[s])), max(size, math.Abs(v))
			e.value[s] = v
		}
		if change < accuracy*size*(1-e.p.Gamma) {
			return
		}
	}
}

// q returns the value of controller k in state s, with the mixture afterwards.
func (e *Exact) q(s, k int) float64 {
	i := k*e.p.States + s
	sum := 0.0
	for _, b := range e.p.Next[i] {
		sum += b.P * e.value[b.State]
	}
	return e.p.Reward[i] + e.p.Gamma*sum
}

// occupy fills visits.
func (e *Exact) occupy() {
	copy(e.visits, e.p.Start)
	for range sweeps {
		copy(e.next, e.p.Start)
		for s, d := range e.visits {
			if d == 0 {
				continue
			}
			for k, w := range e.Weight {
				for _, b := range e.p.Next[k*e.p.States+s] {
					e.next[b.State] += e.p.Gamma * d * w * b.P
				}
			}
		}
		change := 0.0
		for s := range e.next {
			change += math.Abs(e.next[s] - e.visits[s])
		}
		e.visits, e.next = e.next, e.visits
		if change < accuracy {
			return
		}
	}
}

// Gradient returns the gradient of the value of the mixture at the start. The slice is valid until the next call.
func (e *Exact) Gradient() []float64 {
	e.evaluate()
	e.occupy()
	for k, w := range e.Weight {
		g := 0.0
		for s, d := range e.visits {
			if d > 0 {
				g += d * w * (e.q(s, k) - e.value[s])
			}
		}
		e.grad[k] = g
	}
	return e.grad
}

// Step moves Theta by rate times the gradient, which counts with length 1 if it is longer. It returns the gradient's
// length.
func (e *Exact) Step(rate float64) float64 {
	g := e.Gradient()
	n := length(g)
	for k := range g {
		e.Theta[k] += rate * g[k] / max(1, n)
	}
	e.softmax()
	return n
}
