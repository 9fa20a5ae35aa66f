package replay

import "clustergym/env"

// nowhere means that a row has no current observation: its episode has not begun.
const nowhere = ^uint64(0)

// nstep holds, for every row, the transitions that have begun and wait for their n-th step: the return so far, R = r_0
// + d_0·r_1 + d_0·d_1·r_2 + …, and the product of the discounts d. The end of an episode completes them all.
type nstep struct {
	n, factors, conts int

	cur  []uint64 // [rows], the current observation, or nowhere
	head []int    // [rows], the oldest transition in the row's ring
	len  []int    // [rows], number of waiting transitions

	// [rows, n]
	obs  []uint64
	disc []int32   // × factors
	cont []float32 // × conts
	sum  []float64
	prod []float64
}

func newNstep(s env.Spec, rows, n int) nstep {
	a := nstep{
		n: n, factors: len(s.Action.Sizes), conts: len(s.Action.Low),
		cur: make([]uint64, rows), head: make([]int, rows), len: make([]int, rows),
		obs: make([]uint64, rows*n), sum: make([]float64, rows*n), prod: make([]float64, rows*n),
	}
	a.disc = make([]int32, rows*n*a.factors)
	a.cont = make([]float32, rows*n*a.conts)
	for i := range a.cur {
		a.cur[i] = nowhere
	}
	return a
}

// begin adds a transition that starts at row i's current observation with action act.
func (a *nstep) begin(i int, act env.Action) {
	k := i*a.n + (a.head[i]+a.len[i])%a.n
	a.len[i]++
	a.obs[k], a.sum[k], a.prod[k] = a.cur[i], 0, 1
	copy(a.disc[k*a.factors:(k+1)*a.factors], act.Disc)
	copy(a.cont[k*a.conts:(k+1)*a.conts], act.Cont)
}

// extend adds one step's reward and discount to all of row i's waiting transitions.
func (a *nstep) extend(i int, reward, discount float64) {
	for j := 0; j < a.len[i]; j++ {
		k := i*a.n + (a.head[i]+j)%a.n
		a.sum[k] += a.prod[k] * reward
		a.prod[k] *= discount
	}
}

// pop removes row i's oldest transition and returns its index in the columns.
func (a *nstep) pop(i int) (k int) {
	k = i*a.n + a.head[i]
	a.head[i] = (a.head[i] + 1) % a.n
	a.len[i]--
	return k
}

// floor returns the lowest number of an observation that a row still refers to, or next if there is none.
func (a *nstep) floor(next uint64) uint64 {
	low := next
	for i, cur := range a.cur {
		if a.len[i] > 0 {
			cur = a.obs[i*a.n+a.head[i]] // the oldest transition's observation is no newer than the current one
		}
		low = min(low, cur) // nowhere exceeds every number
	}
	return low
}
