package queuenet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Bounds of a network: a slot's links fit into a word, and a set's number into a byte.
const (
	maxQueues = 64
	maxSets   = 256
)

// Network is queues, what may be served together, and base controllers.
type Network struct {
	Name string
	// Rates are the probabilities of an arrival in each queue in a slot. Several rows alternate, Slots slots each.
	Rates [][]float64
	Slots int
	Up    []float64 // the probability that a queue's link is up in a slot; nil = always. Nobody sees it beforehand
	Sets  [][]int   // the sets of queues that may be served together
	Bases []Base
}

// Base is a base controller.
type Base struct {
	Name string
	Rule Rule
	Set  int // of Fixed
}

// Rule is how a base controller chooses a set.
type Rule uint8

// The rules: a set that is always the same; the one with the most packets in its queues (with sets of one queue, the
// longest queue; in general MaxWeight); the one with the most queues that hold a packet (maximum egress rate), of equal
// ones that with the most packets.
const (
	Fixed Rule = iota
	MostPackets
	MostQueues
)

// Queues returns the number of queues.
func (n *Network) Queues() int { return len(n.Rates[0]) }

// Validate returns an error for a network that makes no sense.
func (n *Network) Validate() error {
	if len(n.Rates) == 0 || len(n.Rates[0]) == 0 || len(n.Rates) > 1 && n.Slots < 1 {
		return fmt.Errorf("queuenet: %s has %d loads of %d slots, want one, or several of one slot or more", n.Name,
			len(n.Rates), n.Slots)
	}
	q := n.Queues()
	if q > maxQueues || len(n.Sets) == 0 || len(n.Sets) > maxSets || len(n.Bases) == 0 {
		return fmt.Errorf(
			"queuenet: %s has %d queues, %d sets and %d base controllers, want at most %d queues, 1 to %d sets and 1 or more "+
				"base controllers",
			n.Name, q, len(n.Sets), len(n.Bases), maxQueues, maxSets)
	}
	for _, rates := range append(slices.Clone(n.Rates), n.Up) {
		if rates != nil && len(rates) != q {
			return fmt.Errorf("queuenet: %s has %d queues and a list of %d probabilities", n.Name, q, len(rates))
		}
		for _, p := range rates {
			if !(p >= 0 && p <= 1) {
				return fmt.Errorf("queuenet: %s has the probability %v, want 0 to 1", n.Name, p)
			}
		}
	}
	for _, set := range n.Sets {
		for at, i := range set {
			if i < 0 || i >= q || slices.Contains(set[:at], i) {
				return fmt.Errorf("queuenet: %s has the set %v, want queues of 0 to %d, each once", n.Name, set, q-1)
			}
		}
	}
	for _, b := range n.Bases {
		if b.Rule > MostQueues || b.Rule == Fixed && (b.Set < 0 || b.Set >= len(n.Sets)) {
			return fmt.Errorf("queuenet: %s has the base controller %s of rule %d and set %d of %d", n.Name, b.Name, b.Rule,
				b.Set, len(n.Sets))
		}
	}
	return nil
}

// load returns the row of Rates of a slot.
func (n *Network) load(slot int) []float64 {
	if len(n.Rates) == 1 {
		return n.Rates[0]
	}
	return n.Rates[slot/n.Slots%len(n.Rates)]
}

// Choose returns the set that a base controller serves. Of equally good ones it is the first.
func (n *Network) Choose(b Base, queues []int) int {
	if b.Rule == Fixed {
		return b.Set
	}
	at, most, next := 0, -1, 0
	for k, set := range n.Sets {
		packets, busy := 0, 0
		for _, i := range set {
			packets += queues[i]
			if queues[i] > 0 {
				busy++
			}
		}
		first, second := packets, 0
		if b.Rule == MostQueues {
			first, second = busy, packets
		}
		if cmp.Or(cmp.Compare(first, most), cmp.Compare(second, next)) > 0 {
			at, most, next = k, first, second
		}
	}
	return at
}

// BestShares returns the shares of one server for queues of the given rates with which the fewest packets wait, and
// how many. A queue of a rate that is served with probability share, the service first, has rate·(1−rate)/(share−rate)
// of them (a birth and death chain): shares beyond the rates are in proportion to √(rate·(1−rate)). If no rate is
// strictly between 0 and 1, all queues get equally much beyond theirs. If the rates sum to 1 or more, the packets are
// infinite and the shares are the rates.
func BestShares(rates []float64) (shares []float64, packets float64) {
	sum, roots := 0.0, 0.0
	for _, r := range rates {
		sum += r
		roots += math.Sqrt(r * (1 - r))
	}
	if sum >= 1 {
		return slices.Clone(rates), math.Inf(1)
	}
	for _, r := range rates {
		part := 1 / float64(len(rates))
		if roots > 0 {
			part = math.Sqrt(r*(1-r)) / roots
		}
		shares = append(shares, r+(1-sum)*part)
	}
	return shares, roots * roots / (1 - sum)
}

// Busy returns the mean number of packets of queues that share one server, if it serves a queue that holds a packet
// whenever there is one. No scheduler has fewer. All queues together are one with A arrivals in a slot, whose mean is
// E[A] + (E[A²] − E[A])/(2(1 − E[A])). It is infinite if the rates sum to 1 or more.
func Busy(rates []float64) float64 {
	mean, squares := 0.0, 0.0
	for _, r := range rates {
		squares += 2 * mean * r // E[A²] − E[A] is twice the sum over pairs
		mean += r
	}
	if mean >= 1 {
		return math.Inf(1)
	}
	return mean + squares/(2*(1-mean))
}
