package queuerank

import (
	"slices"

	"clustergym/env/sim"
)

// peerQueue is the queue of Config.Peer: RLScheduler's list and its two sorted orders. Its slots are those of that program,
// which differ from QueueRank-v1's when more jobs wait than are visible, and between jobs of one second.
type peerQueue struct {
	list   []peerJob // in order of submit; jobs of one second in the order in which the program leaves them
	byTime []peerJob // by request, submit, processors
	bySize []peerJob // by processors, submit, request
	seen   []uint32  // by job: the last look at which it was visible
	look   uint32
}

// peerJob is a waiting job. All times are in ns.
type peerJob struct {
	submit, e, milli int64
	pos              int
	job              sim.Job
}

func (a *peerJob) compareTime(b *peerJob) int {
	return compare4(a.e, b.e, a.submit, b.submit, a.milli, b.milli, a.pos-b.pos)
}

func (a *peerJob) compareSize(b *peerJob) int {
	return compare4(a.milli, b.milli, a.submit, b.submit, a.e, b.e, a.pos-b.pos)
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

func (p *peerQueue) reset() {
	p.list, p.byTime, p.bySize = p.list[:0], p.byTime[:0], p.bySize[:0]
	clear(p.seen)
	p.look = 0
}

func (p *peerQueue) add(j peerJob) {
	p.list = append(p.list, j) // the latest
	i, _ := slices.BinarySearchFunc(p.byTime, j, func(a, b peerJob) int { return a.compareTime(&b) })
	p.byTime = slices.Insert(p.byTime, i, j)
	i, _ = slices.BinarySearchFunc(p.bySize, j, func(a, b peerJob) int { return a.compareSize(&b) })
	p.bySize = slices.Insert(p.bySize, i, j)
	for int(j.job) >= len(p.seen) {
		p.seen = append(p.seen, 0)
	}
}

func (p *peerQueue) drop(j peerJob) {
	i := slices.IndexFunc(p.list, func(w peerJob) bool { return w.job == j.job })
	t, ok1 := slices.BinarySearchFunc(p.byTime, j, func(a, b peerJob) int { return a.compareTime(&b) })
	s, ok2 := slices.BinarySearchFunc(p.bySize, j, func(a, b peerJob) int { return a.compareSize(&b) })
	if i < 0 || !ok1 || !ok2 {
		panic("queuerank: a job that waits is not in the queue")
	}
	p.list = slices.Delete(p.list, i, i+1)
	p.byTime = slices.Delete(p.byTime, t, t+1)
	p.bySize = slices.Delete(p.bySize, s, s+1)
}

// fill appends the visible jobs to dst. Up to k jobs are all visible, in order of submit. Of more, the next of byTime, if it
// is not visible yet, and the next of bySize alternate. The program then leaves its list in the second order: when it
// sorts by submit again, jobs of one second remain in that order.
func (p *peerQueue) fill(dst []sim.Job, k int) []sim.Job {
	if len(p.list) <= k {
		for i := range p.list {
			dst = append(dst, p.list[i].job)
		}
		return dst
	}
	p.look++
	from := len(dst)
	for i := 0; ; i++ {
		for _, j := range [2]sim.Job{p.byTime[i].job, p.bySize[i].job} {
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

// settle puts jobs of one second in the order of bySize.
func (p *peerQueue) settle() {
	for i := 1; i < len(p.list); i++ {
		for k := i; k > 0 && p.list[k-1].submit == p.list[k].submit && p.list[k].compareSize(&p.list[k-1]) < 0; k-- {
			p.list[k-1], p.list[k] = p.list[k], p.list[k-1]
		}
	}
}
