package queuerank

import (
	"slices"

	"clustergym/env/sim"
)

// queue keeps the waiting jobs, without the held one, in three orders. It does not allocate in steady state.
type queue struct {
	bySubmit, byTime, bySize []waiting
	shown                    []bool // by index in bySubmit
	slots                    []sim.Job

	peer  *peerQueue  // with Config.Peer, in place of the three orders
	tuned *tunedQueue // with Config.RLTune, likewise
}

// waiting is one job with its sort key; ties are broken by pos.
type waiting struct {
	key int64
	pos int
	job sim.Job
}

func (a waiting) compare(b waiting) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return a.pos - b.pos
}

func (q *queue) reset() {
	q.bySubmit, q.byTime, q.bySize, q.slots = q.bySubmit[:0], q.byTime[:0], q.bySize[:0], q.slots[:0]
	if q.peer != nil {
		q.peer.reset()
	}
	if q.tuned != nil {
		q.tuned.list = q.tuned.list[:0]
	}
}

// len returns how many jobs wait.
func (q *queue) len() int {
	if q.tuned != nil {
		return len(q.tuned.list)
	}
	if q.peer != nil {
		return len(q.peer.list)
	}
	return len(q.bySubmit)
}

// at returns the i-th waiting job in order of submit.
func (q *queue) at(i int) sim.Job {
	if q.peer != nil {
		return q.peer.list[i].job
	}
	return q.bySubmit[i].job
}

func insert(list []waiting, w waiting) []waiting {
	i, _ := slices.BinarySearchFunc(list, w, waiting.compare)
	return slices.Insert(list, i, w)
}

func remove(list []waiting, w waiting) []waiting {
	i, ok := slices.BinarySearchFunc(list, w, waiting.compare)
	if !ok {
		panic("queuerank: a job that waits is not in the queue")
	}
	return slices.Delete(list, i, i+1)
}

// add adds j, at position pos in the workload and submitted at submit, with estimate e and n thousandths of GPUs.
func (q *queue) add(j sim.Job, pos int, submit, e, n int64) {
	if q.tuned != nil {
		q.tuned.list = append(q.tuned.list, j)
		return
	}
	if q.peer != nil {
		q.peer.add(peerJob{submit, e, n, pos, j})
		return
	}
	q.bySubmit = insert(q.bySubmit, waiting{int64(pos), pos, j}) // positions are in order of submit
	q.byTime = insert(q.byTime, waiting{e, pos, j})
	q.bySize = insert(q.bySize, waiting{n, pos, j})
}

func (q *queue) drop(j sim.Job, pos int, submit, e, n int64) {
	if q.tuned != nil {
		i := slices.Index(q.tuned.list, j)
		q.tuned.list = slices.Delete(q.tuned.list, i, i+1)
		return
	}
	if q.peer != nil {
		q.peer.drop(peerJob{submit, e, n, pos, j})
		return
	}
	q.bySubmit = remove(q.bySubmit, waiting{int64(pos), pos, j})
	q.byTime = remove(q.byTime, waiting{e, pos, j})
	q.bySize = remove(q.bySize, waiting{n, pos, j})
}

// fill chooses up to k visible jobs, in order of submit. If more than k wait, these are the oldest and then, alternately,
// the shortest and the smallest not chosen yet.
func (q *queue) fill(k int) {
	q.slots = q.slots[:0]
	if q.tuned != nil {
		q.tuned.sort()
		q.slots = append(q.slots, q.tuned.list[:min(k, len(q.tuned.list))]...)
		return
	}
	if q.peer != nil {
		q.slots = q.peer.fill(q.slots, k)
		return
	}
	if len(q.bySubmit) <= k {
		for _, w := range q.bySubmit {
			q.slots = append(q.slots, w.job)
		}
		return
	}
	q.shown = slices.Grow(q.shown[:0], len(q.bySubmit))[:len(q.bySubmit)]
	clear(q.shown)
	q.shown[0] = true
	lists := [2][]waiting{q.byTime, q.bySize}
	var next [2]int
	for have, turn := 1, 0; have < k; have, turn = have+1, 1-turn {
		for {
			w := lists[turn][next[turn]]
			next[turn]++
			if i := q.place(w.pos); !q.shown[i] {
				q.shown[i] = true
				break
			}
		}
	}
	for i, w := range q.bySubmit {
		if q.shown[i] {
			q.slots = append(q.slots, w.job)
		}
	}
}

// place returns the index in bySubmit of the job at position pos.
func (q *queue) place(pos int) int {
	i, _ := slices.BinarySearchFunc(q.bySubmit, int64(pos), func(w waiting, key int64) int {
		switch {
		case w.key < key:
			return -1
		case w.key > key:
			return 1
		}
		return 0
	})
	return i
}
