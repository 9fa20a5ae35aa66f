package queuenet

import (
	"fmt"
	"math"
)

// Optimum is the best scheduler of a network with one load, among all that see the queues.
type Optimum struct {
	Packets float64 // its mean number of packets that wait
	bound   int
	sets    []uint8 // by state
}

// Set returns the set to serve. Longer queues than the bound count as the bound.
func (o *Optimum) Set(queues []int) int {
	at := 0
	for _, q := range queues {
		at = at*(o.bound+1) + min(q, o.bound)
	}
	return int(o.sets[at])
}

// sweeps bounds the iteration; settled is the span of differences at which it ends, in packets.
const (
	sweeps  = 100_000
	settled = 1e-7
)

// Solve finds the optimum by relative value iteration (White 1963) over queues of at most bound packets: packets that
// arrive at a full queue are lost, which bound must make rare.
func Solve(n Network, bound int) (*Optimum, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	q := n.Queues()
	states := math.Pow(float64(bound+1), float64(q))
	if len(n.Rates) != 1 || bound < 1 || !(states <= 1<<22) {
		return nil,
			fmt.Errorf(
				"queuenet: %s has %d loads and %v states of %d queues of at most %d packets, want one load, queues of at least "+
					"one packet and at most 2^22 states",
				n.Name, len(n.Rates), states, q, bound)
	}
	size := int(states)
	stride := make([]int, q)
	for i, s := q-1, 1; i >= 0; i-- {
		stride[i] = s
		s *= bound + 1
	}
	// cost is the number of packets in a state.
	cost, value, after, next := make([]float64, size), make([]float64, size), make([]float64, size), make([]float64, size)
	for s := range cost {
		for i := range q {
			cost[s] += float64(s / stride[i] % (bound + 1))
		}
	}
	o := &Optimum{bound: bound, sets: make([]uint8, size)}
	for range sweeps {
		for s := range after {
			after[s] = cost[s] + value[s]
		}
		// The expectation over arrivals, queue by queue and in place: the state with a packet more comes later, so it still
		// has its old value.
		for i, p := range n.Rates[0] {
			for s := range after {
				if s/stride[i]%(bound+1) < bound {
					after[s] = (1-p)*after[s] + p*after[s+stride[i]]
				}
			}
		}
		low, high := math.Inf(1), math.Inf(-1)
		for s := range next {
			best, at := math.Inf(1), 0 // a tie goes to the first set, whatever rounding does
			for k, set := range n.Sets {
				if v := n.served(after, s, set, stride, bound); v < best-1e-12 {
					best, at = v, k
				}
			}
			next[s], o.sets[s] = best, uint8(at)
			low, high = min(low, best-value[s]), max(high, best-value[s])
		}
		zero := next[0]
		for s := range next {
			next[s] -= zero
		}
		value, next = next, value
		o.Packets = (low + high) / 2
		if high-low < settled {
			return o, nil
		}
	}
	return nil, fmt.Errorf("queuenet: %s has no optimum after %d sweeps over %d states: is its load below 1?", n.Name,
		sweeps, size)
}

// served returns the expectation of after, by state, over which links of set are up.
func (n *Network) served(after []float64, s int, set, stride []int, bound int) float64 {
	if len(set) == 0 {
		return after[s]
	}
	i := set[0]
	if s/stride[i]%(bound+1) == 0 {
		return n.served(after, s, set[1:], stride, bound)
	}
	gone := n.served(after, s-stride[i], set[1:], stride, bound)
	if n.Up == nil || n.Up[i] == 1 {
		return gone
	}
	return n.Up[i]*gone + (1-n.Up[i])*n.served(after, s, set[1:], stride, bound)
}

// Follow calls emit with the states that may follow queues when base controller k chooses, and their probabilities,
// under the first load. Queues hold at most bound packets; others are lost. A state may come more than once. emit must
// not change or keep its slice.
func (n *Network) Follow(k int, queues []int, bound int, emit func(queues []int, p float64)) {
	set := n.Sets[n.Choose(n.Bases[k], queues)]
	state := append([]int(nil), queues...)
	var arrive func(i int, p float64)
	arrive = func(i int, p float64) {
		if p == 0 {
			return
		}
		if i == len(state) {
			emit(state, p)
			return
		}
		rate := n.Rates[0][i]
		if state[i] == bound {
			arrive(i+1, p)
			return
		}
		arrive(i+1, p*(1-rate))
		state[i]++
		arrive(i+1, p*rate)
		state[i]--
	}
	var serve func(left []int, p float64)
	serve = func(left []int, p float64) {
		if len(left) == 0 || p == 0 {
			arrive(0, p)
			return
		}
		i, up := left[0], 1.0
		if n.Up != nil {
			up = n.Up[i]
		}
		if state[i] == 0 {
			serve(left[1:], p)
			return
		}
		serve(left[1:], p*(1-up))
		state[i]--
		serve(left[1:], p*up)
		state[i]++
	}
	serve(set, 1)
}
