package ppo

import "math"

// popart keeps the critic's output normalised (van Hasselt et al. 2016, "Learning values across many orders of
// magnitude", arXiv 1602.07714): V = Sigma·n + Mu, where n is what the network gives. Before the targets of an update
// change Mu and Sigma, the last layer is changed so that V stays the same in every state ("preserving outputs
// precisely, while adaptively rescaling targets", algorithm 1). The critic then has one learning rate whatever the size
// of returns, as they are or as it drifts.
type popart struct {
	Mu     float64 `json:"mu"`
	Square float64 `json:"square"` // mean of squared targets
	Sigma  float64 `json:"sigma"`
	Count  int64   `json:"count"` // updates
}

// popartRate is the share of an update's targets in the means: 1/k in update k, and not below this. The paper's rates
// are for single samples; an update here has thousands.
const popartRate = 0.1

// leastSigma keeps targets that do not vary from being blown up.
const leastSigma = 1e-4

func newPopart() *popart { return &popart{Sigma: 1} }

// value turns outputs of the network into values.
func (p *popart) value(n []float32) {
	if p == nil || p.Sigma == 1 && p.Mu == 0 {
		return
	}
	for i, x := range n {
		n[i] = float32(p.Sigma*float64(x) + p.Mu)
	}
}

// output is the inverse of value.
func (p *popart) output(v float32) float32 {
	if p == nil {
		return v
	}
	return float32((float64(v) - p.Mu) / p.Sigma)
}

// update counts targets by their number, sum and sum of squares, and changes the head, weights and bias, so that values
// stay.
func (p *popart) update(n, sum, squares float64, head [2][]float32) {
	if n == 0 {
		return
	}
	p.Count++
	rate := max(1/float64(p.Count), popartRate)
	mu, sigma := p.Mu, p.Sigma
	p.Mu += rate * (sum/n - p.Mu)
	p.Square += rate * (squares/n - p.Square)
	p.Sigma = max(math.Sqrt(max(p.Square-p.Mu*p.Mu, 0)), leastSigma)
	for i, w := range head[0] {
		head[0][i] = float32(float64(w) * sigma / p.Sigma)
	}
	for i, b := range head[1] {
		head[1][i] = float32((sigma*float64(b) + mu - p.Mu) / p.Sigma)
	}
}
