package heuristic

import (
	"math"

	"clustergym/env/cluster"
	"clustergym/env/sim"
)

// lines is a set of lines. The open ones take part in the search for the first in rank.
type lines struct {
	marks  *[]jobMark
	line   []line
	closed []bool
	freed  []bool // reopened in this pass because something was freed there, and has room nowhere else
	shut   []int  // the closed ones
	again  []int  // indices with freed set
	heads  tourney

	// If jobs are ranked by class, a line holds no more than the first in rank of its deck.
	ranks *ranks
	decks []deck
	slots map[cell]int32
	cells [][]cell // by class: the lines with a slot for it
}

func (l *lines) reset(marks *[]jobMark) {
	l.marks = marks
	for i := range l.line {
		l.line[i], l.closed[i], l.freed[i] = l.line[i][:0], false, false
	}
	l.shut, l.again = l.shut[:0], l.again[:0]
	l.heads.clear()
	l.resetDecks()
}

// extend makes sure that line i exists.
func (l *lines) extend(i int) {
	for i >= len(l.line) {
		l.line, l.closed, l.freed = append(l.line, nil), append(l.closed, false), append(l.freed, false)
	}
	for l.ranks != nil && i >= len(l.decks) {
		l.decks = append(l.decks, deck{})
	}
}

func (l *lines) push(i int, e entry) {
	l.extend(i)
	if l.ranks != nil {
		l.deal(i, e)
		return
	}
	l.line[i].push(e)
	if !l.closed[i] && l.line[i][0].job == e.job {
		l.heads.set(i, e)
	}
}

// pop removes and returns the first entry of line i.
func (l *lines) pop(i int) entry {
	e := l.line[i].pop()
	if l.ranks != nil {
		l.decks[i].pop(l.ranks)
		l.raise(i)
		return e
	}
	l.play(i)
	return e
}

// play updates the search after a change of line i.
func (l *lines) play(i int) {
	if l.closed[i] || len(l.line[i]) == 0 {
		l.heads.unset(i)
	} else {
		l.heads.set(i, l.line[i][0])
	}
}

// close excludes line i until it is opened again.
func (l *lines) close(i int) {
	l.closed[i] = true
	l.shut = append(l.shut, i)
	l.heads.unset(i)
}

// open opens all closed lines.
func (l *lines) open() {
	for _, i := range l.shut {
		l.closed[i] = false
		l.play(i)
	}
	l.shut = l.shut[:0]
}

// reopen opens the closed lines whose kinds may have room where something was freed.
func (l *lines) reopen(c *cluster.Cluster, f *freed, kinds []cluster.Request) {
	for _, i := range l.again {
		l.freed[i] = false
	}
	l.again = l.again[:0]
	if !f.any {
		return
	}
	still := l.shut[:0]
	for _, i := range l.shut {
		if !f.mayFit(c, &kinds[i]) {
			still = append(still, i)
			continue
		}
		l.closed[i] = false
		if !f.all {
			l.freed[i] = true
			l.again = append(l.again, i)
		}
		l.play(i)
	}
	l.shut = still
}

// first returns the open line, among lines 0 to limit, whose first waiting job has the best rank. It drops jobs that
// other code has started meanwhile.
func (l *lines) first(v *sim.View, limit int) int {
	for {
		i := l.heads.first(limit)
		if i < 0 || !stale(v, &l.line[i][0]) {
			return i
		}
		if e := l.pop(i); v.Pos(e.job) == e.pos {
			(*l.marks)[e.job].queued = false
		}
	}
}

// waitQueue holds the waiting jobs. Under strict, where only the first in rank matters, it is a single line. Under
// skip, which steps over jobs that do not fit, it has one line for each kind of request, because jobs with the same
// request fit or do not fit together. Requests for n whole GPUs and nothing else, which are the majority, are in line
// n, so that those for more GPUs than are free need not be looked at.
type waitQueue struct {
	single bool
	whole  lines // by GPUs; line 0 is the only one if single
	others lines
	kinds  []cluster.Request // of others
	index  map[cluster.Request]int
}

func (q *waitQueue) reset(marks *[]jobMark, single bool) {
	if q.index == nil {
		q.index = map[cluster.Request]int{}
	}
	q.single = single
	q.whole.reset(marks)
	q.others.reset(marks)
}

// push adds e to the line of its request. Line numbers from 0 up are those of whole, those from −2 down are those of
// others.
func (q *waitQueue) push(e entry, r *cluster.Request) {
	n := r.GPUs
	if q.single {
		n = 0
	} else if r.Milli != 1000 || r.Types != 0 || r.CPUMilli != 0 || r.MemBytes != 0 || n >= 1<<16 {
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

// open begins a pass. A line that was closed because nothing of its kind fitted stays closed until something is given
// back that could make room for it.
func (q *waitQueue) open(c *cluster.Cluster, f *freed) {
	q.others.reopen(c, f, q.kinds)
	if !f.any {
		return
	}
	q.whole.open()
	empty := 0
	for i := range q.others.line {
		if len(q.others.line[i]) == 0 {
			empty++
		}
	}
	if empty > 64 && empty > len(q.others.line)/2 {
		q.compact()
	}
}

// compact forgets the kinds of requests that no job waits with: a workload may have a kind for every job.
func (q *waitQueue) compact() {
	o := &q.others
	clear(q.index)
	o.heads.clear()
	o.shut, o.again = o.shut[:0], o.again[:0]
	n := 0
	for i := range o.line {
		if len(o.line[i]) == 0 {
			continue
		}
		// Swap, so that the memory of empty lines is reused.
		o.line[n], o.line[i] = o.line[i], o.line[n]
		if o.ranks != nil {
			o.decks[n], o.decks[i] = o.decks[i], o.decks[n]
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
	o.line, o.closed, o.freed, q.kinds = o.line[:n], o.closed[:n], o.freed[:n], q.kinds[:n]
	for i := range o.line {
		o.play(i)
	}
	o.renumber()
}

// rankBy sets the classes by which jobs are ranked from the next reset on; nil = by their own keys.
func (q *waitQueue) rankBy(r *ranks) { q.whole.ranks, q.others.ranks = r, r }

// rerank gives the jobs of class their new key.
func (q *waitQueue) rerank(class int32) {
	q.whole.rerank(class)
	q.others.rerank(class)
}

// cells returns the number of classes that each line has had since the last reset, added up.
func (q *waitQueue) cells() int { return len(q.whole.slots) + len(q.others.slots) }

// openAll opens every line.
func (q *waitQueue) openAll() {
	for _, i := range q.others.again {
		q.others.freed[i] = false
	}
	q.others.again = q.others.again[:0]
	q.whole.open()
	q.others.open()
}

// close excludes the line at place from the pass.
func (q *waitQueue) close(place int) {
	if place >= 0 {
		q.whole.close(place)
	} else {
		q.others.close(-2 - place)
	}
}

// hopeless reports whether the line at place is known to have no room, without looking at the whole cluster.
func (q *waitQueue) hopeless(c *cluster.Cluster, f *freed, place int) bool {
	return place < 0 && q.others.freed[-2-place] && !f.mayFit(c, &q.kinds[-2-place])
}

// top returns the first entry of the line at place.
func (q *waitQueue) top(place int) *entry {
	if place >= 0 {
		return &q.whole.line[place][0]
	}
	return &q.others.line[-2-place][0]
}

// pop removes and returns the first entry of the line at place.
func (q *waitQueue) pop(place int) entry {
	if place >= 0 {
		return q.whole.pop(place)
	}
	return q.others.pop(-2 - place)
}

// best returns the place of the open line whose first job ranks before all others, none if no open line has waiting
// jobs. Of the requests for whole GPUs only those for up to limit take part.
func (q *waitQueue) best(v *sim.View, limit int) int {
	w := q.whole.first(v, limit)
	if len(q.others.line) == 0 {
		return w
	}
	if o := q.others.first(v, unlimited); o >= 0 && (w < 0 || q.others.line[o][0].before(&q.whole.line[w][0])) {
		return -2 - o
	}
	return w
}

// heads appends the first entry of every line, open or closed, to dst.
func (q *waitQueue) heads(dst []entry) []entry {
	for _, l := range [2]*lines{&q.whole, &q.others} {
		for i := range l.line {
			if len(l.line[i]) > 0 {
				dst = append(dst, l.line[i][0])
			}
		}
	}
	return dst
}

// unlimited is a limit that no request exceeds.
const unlimited = math.MaxInt

func stale(v *sim.View, e *entry) bool {
	return v.State(e.job) != sim.Waiting || v.Pos(e.job) != e.pos
}
