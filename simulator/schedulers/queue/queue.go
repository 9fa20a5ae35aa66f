package queue

import (
	"math"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// Queue holds the waiting jobs. Under strict, where only the first in rank matters, it is a single row. Under
// skip, which steps over jobs that do not fit, it has one row for each kind of request, because jobs with the same
// request fit or do not fit together. Requests for n whole GPUs and nothing else, which are the majority, are in row
// n, so that those for more GPUs than are free need not be looked at.
type Queue struct {
	Single bool // there is one row
	whole  rows // by GPUs; row 0 is the only one if single
	others rows
	kinds  []cluster.Request // of others
	index  map[cluster.Request]int
}

// Reset forgets all jobs. marks are kept by the caller, with a class for each job where classes are ranked.
func (q *Queue) Reset(marks *[]Mark, single bool) {
	if q.index == nil {
		q.index = map[cluster.Request]int{}
	}
	q.Single = single
	q.whole.reset(marks)
	q.others.reset(marks)
}

// Push adds e to the row of its request. Places from 0 up are the rows of whole, those from −2 down are the
// rows of others.
func (q *Queue) Push(e Entry, r *cluster.Request) {
	n := r.GPUs
	if q.Single {
		n = 0
	} else if !Plain(r) || n >= 1<<16 {
		i, ok := q.index[*r]
		if !ok {
			i = len(q.kinds)
			q.index[*r] = i
			q.kinds = append(q.kinds, *r)
		}
		q.others.push(i, e)
		return
	}
	q.whole.push(n, e)
}

// Open begins a pass. A row that was closed because nothing of its kind fitted stays closed until something is given
// back that could make room for it.
func (q *Queue) Open(c *cluster.Cluster, f *Freed) {
	q.others.reopen(c, f, q.kinds)
	if !f.Any {
		return
	}
	q.whole.open()
	empty := 0
	for i := range q.others.row {
		if len(q.others.row[i]) == 0 {
			empty++
		}
	}
	if empty > 64 && empty > len(q.others.row)/2 {
		q.compact()
	}
}

// compact forgets the kinds of requests that no job waits with: a workload may have a kind for every job.
func (q *Queue) compact() {
	o := &q.others
	clear(q.index)
	o.heads.clear()
	o.shut, o.again = o.shut[:0], o.again[:0]
	n := 0
	for i := range o.row {
		if len(o.row[i]) == 0 {
			continue
		}
		// Swap, so that the memory of empty rows is reused.
		o.row[n], o.row[i] = o.row[i], o.row[n]
		if o.classes != nil {
			o.index[n], o.index[i] = o.index[i], o.index[n]
		}
		o.closed[n], o.freed[n], q.kinds[n] = o.closed[i], o.freed[i], q.kinds[i]
		q.index[q.kinds[n]] = n
		if o.closed[n] {
			o.shut = append(o.shut, n)
		}
		if o.freed[n] {
			o.again = append(o.again, n)
		}
		n++
	}
	o.row, o.closed, o.freed, q.kinds = o.row[:n], o.closed[:n], o.freed[:n], q.kinds[:n]
	for i := range o.row {
		o.update(i)
	}
	o.renumber()
}

// RankBy sets the classes by which jobs are ranked from the next reset on; nil = by their own keys.
func (q *Queue) RankBy(r *Classes) { q.whole.classes, q.others.classes = r, r }

// Rerank gives the jobs of class their new key.
func (q *Queue) Rerank(class int32) {
	q.whole.rerank(class)
	q.others.rerank(class)
}

// Slots returns the number of classes that each row has had since the last reset, added up.
func (q *Queue) Slots() int { return len(q.whole.slots) + len(q.others.slots) }

// OpenAll opens every row.
func (q *Queue) OpenAll() {
	for _, i := range q.others.again {
		q.others.freed[i] = false
	}
	q.others.again = q.others.again[:0]
	q.whole.open()
	q.others.open()
}

// Close excludes the row at place from the pass.
func (q *Queue) Close(place int) {
	if place >= 0 {
		q.whole.close(place)
	} else {
		q.others.close(-2 - place)
	}
}

// Hopeless reports whether the row at place is known to have no room, without looking at the whole cluster.
func (q *Queue) Hopeless(c *cluster.Cluster, f *Freed, place int) bool {
	return place < 0 && q.others.freed[-2-place] && !f.mayFit(c, &q.kinds[-2-place])
}

// Top returns the first entry of the row at place.
func (q *Queue) Top(place int) *Entry {
	if place >= 0 {
		return &q.whole.row[place][0]
	}
	return &q.others.row[-2-place][0]
}

// Pop removes and returns the first entry of the row at place.
func (q *Queue) Pop(place int) Entry {
	if place >= 0 {
		return q.whole.pop(place)
	}
	return q.others.pop(-2 - place)
}

// Best returns the place of the open row whose first job ranks before all others, none if no open row has waiting
// jobs. Of the requests for whole GPUs only those for up to limit take part.
func (q *Queue) Best(v *sim.View, limit int) int {
	w := q.whole.first(v, limit)
	if len(q.others.row) == 0 {
		return w
	}
	if o := q.others.first(v, Unlimited); o >= 0 && (w < 0 || q.others.row[o][0].Before(&q.whole.row[w][0])) {
		return -2 - o
	}
	return w
}

// Heads appends the first entry of every row, open or closed, to dst.
func (q *Queue) Heads(dst []Entry) []Entry {
	for _, l := range [2]*rows{&q.whole, &q.others} {
		for i := range l.row {
			if len(l.row[i]) > 0 {
				dst = append(dst, l.row[i][0])
			}
		}
	}
	return dst
}

// Unlimited is a limit that no request exceeds.
const Unlimited = math.MaxInt
