package rlscheduler

import (
	"slices"

	"clustergym/env/queuerank"
	"clustergym/simulator/sim"
)

// peerQueue is RLScheduler's list and its two sorted orders. Its slots are those of that program,
// which differ from QueueRank-v1's when more jobs wait than are visible, and between jobs of one second.
type peerQueue struct {
	list   []queuerank.Waiting // in order of submit; jobs of one second in the order in which the program leaves them
	byTime []queuerank.Waiting // by request, submit, processors
	bySize []queuerank.Waiting // by processors, submit, request
	seen   []uint32            // by job: the last look at which it was visible
	look   uint32
	saved  *peerQueue
}

var _ queuerank.Queue = (*peerQueue)(nil)

func compareTime(a, b *queuerank.Waiting) int {
	return compare4(a.E, b.E, a.Submit, b.Submit, a.Milli, b.Milli, a.Pos-b.Pos)
}

func compareSize(a, b *queuerank.Waiting) int {
	return compare4(a.Milli, b.Milli, a.Submit, b.Submit, a.E, b.E, a.Pos-b.Pos)
}

// compare4 compares three pairs in turn, and says last if all are equal.
func compare4(a1, b1, a2, b2, a3, b3 int64, last int) int {
	for _, p := range [3][2]int64{{a1, b1}, {a2, b2}, {a3, b3}} {
		if p[0] < p[1] {
			return -1
		}
		if p[0] > p[1] {
			return 1
		}
	}
	return last
}

// Reset implements queuerank.Queue.
func (p *peerQueue) Reset() {
	p.list, p.byTime, p.bySize = p.list[:0], p.byTime[:0], p.bySize[:0]
	clear(p.seen)
	p.look = 0
}

// Add implements queuerank.Queue.
func (p *peerQueue) Add(j queuerank.Waiting) {
	p.list = append(p.list, j) // the latest
	i, _ := slices.BinarySearchFunc(p.byTime, j, func(a, b queuerank.Waiting) int { return compareTime(&a, &b) })
	p.byTime = slices.Insert(p.byTime, i, j)
	i, _ = slices.BinarySearchFunc(p.bySize, j, func(a, b queuerank.Waiting) int { return compareSize(&a, &b) })
	p.bySize = slices.Insert(p.bySize, i, j)
	for int(j.Job) >= len(p.seen) {
		p.seen = append(p.seen, 0)
	}
}

// Drop implements queuerank.Queue.
func (p *peerQueue) Drop(j queuerank.Waiting) {
	i := slices.IndexFunc(p.list, func(w queuerank.Waiting) bool { return w.Job == j.Job })
	t, ok1 := slices.BinarySearchFunc(p.byTime, j, func(a, b queuerank.Waiting) int { return compareTime(&a, &b) })
	s, ok2 := slices.BinarySearchFunc(p.bySize, j, func(a, b queuerank.Waiting) int { return compareSize(&a, &b) })
	if i < 0 || !ok1 || !ok2 {
		panic("rlscheduler: a job that waits is not in the queue")
	}
	p.list = slices.Delete(p.list, i, i+1)
	p.byTime = slices.Delete(p.byTime, t, t+1)
	p.bySize = slices.Delete(p.bySize, s, s+1)
}

// Fill implements queuerank.Queue: it appends the visible jobs to dst. Up to k jobs are all visible, in order of
// submit. Of more, the next of byTime, if it is not visible yet, and the next of bySize alternate. The program then
// leaves its list in the second order: when it sorts by submit again, jobs of one second remain in that order.
func (p *peerQueue) Fill(dst []sim.Job, k int) []sim.Job {
	if len(p.list) <= k {
		for i := range p.list {
			dst = append(dst, p.list[i].Job)
		}
		return dst
	}
	p.look++
	from := len(dst)
	for i := 0; ; i++ {
		for _, j := range [2]sim.Job{p.byTime[i].Job, p.bySize[i].Job} {
			if len(dst)-from == k {
				p.settle()
				return dst
			}
			if p.seen[j] != p.look {
				p.seen[j] = p.look
				dst = append(dst, j)
			}
		}
	}
}

// Len implements queuerank.Queue.
func (p *peerQueue) Len() int { return len(p.list) }

// InOrder implements queuerank.Queue: in the order of the program's list.
func (p *peerQueue) InOrder(dst []sim.Job, _ sim.Job) []sim.Job {
	for i := range p.list {
		dst = append(dst, p.list[i].Job)
	}
	return dst
}

// Save implements queuerank.Queue.
func (p *peerQueue) Save() {
	if p.saved == nil {
		p.saved = new(peerQueue)
	}
	p.saved.copyFrom(p)
}

// Restore implements queuerank.Queue.
func (p *peerQueue) Restore() { p.copyFrom(p.saved) }

func (p *peerQueue) copyFrom(o *peerQueue) {
	p.list, p.byTime, p.bySize = append(p.list[:0],
		o.list...), append(p.byTime[:0], o.byTime...), append(p.bySize[:0], o.bySize...)
	p.seen, p.look = append(p.seen[:0], o.seen...), o.look
}

// settle puts jobs of one second in the order of bySize.
func (p *peerQueue) settle() {
	for i := 1; i < len(p.list); i++ {
		for k := i; k > 0 && p.list[k-1].Submit == p.list[k].Submit && compareSize(&p.list[k], &p.list[k-1]) < 0; k-- {
			p.list[k-1], p.list[k] = p.list[k], p.list[k-1]
		}
	}
}
