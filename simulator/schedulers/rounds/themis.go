package rounds

import (
	"cmp"
	"math"
	"slices"

	"clustergym/internal/grow"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// themis is finish-time fairness by auction (Mahajan et al., "Themis: fair and efficient GPU cluster scheduling",
// NSDI 2020), as far as it is publicly known: Themis-like, not the authors' program. Jobs hold their GPUs for a lease
// of 20 minutes. Whenever GPUs are free, or their leases have run out, while a job waits, they are offered to some of
// the jobs without a lease: the share 1 − f (f = 0.8) of them, at least one, that is worst off by
//
//	ρ = (elapsed + left) / alone,
//
// where elapsed is the time since the job was submitted, left its estimated remaining time and alone its estimated
// time alone. The GPUs go to the set of bidders with the greatest product of what a lease is worth to each. To one
// job it is worth (elapsed + lease + left) / (elapsed + left): its ρ without the lease over its ρ with it. What is
// left after that is auctioned in the same way to the remaining jobs, until none of them can use it.
//
// Differences: a job is an application with one gang and bids for all of it or nothing, so there is no part of a
// prize that the partial-allocation mechanism could hold back to make lies unprofitable. Bids name a number of GPUs,
// and the placement chooses which. A winner whose gang has no place drops out. The winners are found exactly, by
// dynamic programming, for up to maxKnapsack bidders × GPUs; beyond that, greedily by the gain per GPU.
type themis struct {
	*rounds
	lease  int64
	leases []lease       // by job
	line   []queue.Entry // those who may bid, key = −ρ
	bids   []bidder
	table  []float64
	took   []bool
}

// lease is the time until which the job at a position holds its GPUs.
type lease struct {
	pos  int
	ends int64
}

// bidder is a job in an auction.
type bidder struct {
	job  sim.Job
	need int64   // thousandths
	gain float64 // of a lease
	left bool    // it has left the auction
	wins bool
}

const (
	themisShare = 0.2 // 1 − f
	maxKnapsack = 1 << 22
)

func (t *themis) reset(*sim.View) { t.leases = t.leases[:0] }

func (t *themis) event(*sim.View, *sim.Event) {}

// leaseOf returns the lease of j, which runs.
func (t *themis) leaseOf(v *sim.View, j sim.Job) *lease {
	l := grow.Or(&t.leases, j, lease{pos: -1})
	if l.pos != v.Pos(j) || l.ends <= int64(v.Started(j)) {
		*l = lease{v.Pos(j), int64(v.Started(j)) + t.lease}
	}
	return l
}

func (t *themis) until(v *sim.View) (at int64) {
	if !busy(v, sim.Waiting) {
		return 0
	}
	for _, j := range v.Running() {
		if e := t.leaseOf(v, j).ends; v.Request(j).GPUs > 0 && e > int64(v.Now()) && (at == 0 || e < at) {
			at = e
		}
	}
	return at
}

func (t *themis) decide(v *sim.View) error {
	now := int64(v.Now())
	if !busy(v, sim.Waiting) {
		// Leases that have run out are renewed, one after the other.
		for _, j := range v.Running() {
			if l := t.leaseOf(v, j); l.ends <= now {
				l.ends += (now - l.ends + t.lease) / t.lease * t.lease
			}
		}
		return nil
	}
	t.Begin(v, func(j sim.Job) bool {
		l := t.leaseOf(v, j)
		if l.ends < now-1 { // no job waited when it ran out, otherwise there would have been a point
			l.ends += (now - l.ends + t.lease - 1) / t.lease * t.lease
		}
		return l.ends <= now
	})
	if t.On.FreeMilli() == 0 {
		return nil // there is nothing to bid for, and no lease has run out
	}
	t.line = t.line[:0]
	for _, j := range t.Loose {
		t.enter(v, j)
	}
	for _, j := range v.Waiting() {
		if v.Request(j).GPUs > 0 {
			t.enter(v, j)
		}
	}
	slices.SortFunc(t.line, func(a, b queue.Entry) int { return a.Compare(&b) })
	for line := t.line; len(line) > 0 && t.On.FreeMilli() > 0; {
		n := max(1, int(themisShare*float64(len(line))))
		t.bids = t.bids[:0]
		for i := range line[:n] {
			t.bids = append(t.bids, t.bid(v, line[i].Job))
		}
		t.auction(v, t.bids)
		stay := n
		for i := n - 1; i >= 0; i-- { // those who have not left stay the first
			if !t.bids[i].left {
				stay--
				line[stay] = line[i]
			}
		}
		line = line[stay:]
	}
	for _, j := range t.Placed {
		*grow.At(&t.leases, j) = lease{v.Pos(j), now + t.lease}
	}
	return nil
}

// enter adds j's bid.
func (t *themis) enter(v *sim.View, j sim.Job) {
	alone := float64(t.est.Of(v, j))
	t.line = append(t.line, queue.Entry{Key: -t.whole(v, j) / alone, Pos: v.Pos(j), Job: j})
}

// whole returns the time from the submit of j to its end if it ran from now on.
func (t *themis) whole(v *sim.View, j sim.Job) float64 {
	elapsed, left := float64(v.Now()-v.Trace(j).Submit), max(1, t.remaining(v, j))
	return elapsed + left
}

// bid returns what j, which has no lease, bids.
func (t *themis) bid(v *sim.View, j sim.Job) bidder {
	return bidder{
		job:  j,
		need: int64(v.Asked(j) * v.Request(j).Milli),
		gain: math.Log1p(float64(t.lease) / t.whole(v, j)),
	}
}

// auction gives the plan's free GPUs to the best set of bidders. Winners leave, even those whose gang has no place.
// If there are no winners, all bidders leave.
func (t *themis) auction(v *sim.View, bidders []bidder) {
	t.best(bidders, int64(t.On.FreeMilli()))
	found := false
	for i := range bidders {
		b := &bidders[i]
		found = found || b.wins
		b.left = b.wins && t.Keep(v, place.Gang(v, b.job))
	}
	// From the largest gang down, as everywhere that gangs are placed together.
	for {
		next := -1
		for i := range bidders {
			if b := &bidders[i]; b.wins && !b.left && (next < 0 || b.need > bidders[next].need) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		b := &bidders[next]
		t.Put(v, place.Gang(v, b.job))
		b.left = true
	}
	if !found {
		for i := range bidders {
			bidders[i].left = true
		}
	}
}

// best marks the set of bidders with the greatest sum of gains whose needs add up to at most free.
func (t *themis) best(bidders []bidder, free int64) {
	unit := int64(0)
	for i := range bidders {
		for a, b := bidders[i].need, unit; ; a, b = b, a%b {
			if b == 0 {
				unit = a
				break
			}
		}
	}
	n, room := len(bidders), int(free/max(1, unit))
	if n*(room+1) > maxKnapsack {
		t.greedy(bidders, free)
		return
	}
	t.table = append(t.table[:0], make([]float64, room+1)...)
	t.took = append(t.took[:0], make([]bool, n*(room+1))...)
	for i := range bidders {
		w := int(bidders[i].need / unit)
		for r := room; r >= w; r-- {
			if s := t.table[r-w] + bidders[i].gain; s > t.table[r] {
				t.table[r], t.took[i*(room+1)+r] = s, true
			}
		}
	}
	for i, r := n-1, room; i >= 0; i-- {
		if t.took[i*(room+1)+r] {
			bidders[i].wins = true
			r -= int(bidders[i].need / unit)
		}
	}
}

func (t *themis) greedy(bidders []bidder, free int64) {
	order := make([]int, len(bidders))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return -cmp.Compare(bidders[a].gain/float64(bidders[a].need), bidders[b].gain/float64(bidders[b].need))
	})
	for _, i := range order {
		if bidders[i].need <= free {
			free -= bidders[i].need
			bidders[i].wins = true
		}
	}
}
