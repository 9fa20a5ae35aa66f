package queue

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// rows are numbered heaps of waiting jobs. The open ones take part in the search for the first in rank.
type rows struct {
	marks  *[]Mark
	row    []Heap
	closed []bool
	freed  []bool // reopened in this pass because something was freed there, and has room nowhere else
	shut   []int  // the closed ones
	again  []int  // indices with freed set
	heads  tournament

	// If jobs are ranked by class, a row holds no more than the first in rank of its class index.
	classes *Classes
	index   []classIndex
	slots   map[rowClass]int32
	inRows  [][]rowClass // by class: the rows with a slot for it
}

func (l *rows) reset(marks *[]Mark) {
	l.marks = marks
	for i := range l.row {
		l.row[i], l.closed[i], l.freed[i] = l.row[i][:0], false, false
	}
	l.shut, l.again = l.shut[:0], l.again[:0]
	l.heads.clear()
	l.resetIndex()
}

// extend makes sure that row i exists.
func (l *rows) extend(i int) {
	for i >= len(l.row) {
		l.row, l.closed, l.freed = append(l.row, nil), append(l.closed, false), append(l.freed, false)
	}
	for l.classes != nil && i >= len(l.index) {
		l.index = append(l.index, classIndex{})
	}
}

func (l *rows) push(i int, e Entry) {
	l.extend(i)
	if l.classes != nil {
		l.add(i, e)
		return
	}
	l.row[i].Push(e)
	if !l.closed[i] && l.row[i][0].Job == e.Job {
		l.heads.set(i, e)
	}
}

// pop removes and returns the first entry of row i.
func (l *rows) pop(i int) Entry {
	e := l.row[i].Pop()
	if l.classes != nil {
		l.index[i].pop(l.classes)
		l.raise(i)
		return e
	}
	l.update(i)
	return e
}

// update updates the search after a change of row i.
func (l *rows) update(i int) {
	if l.closed[i] || len(l.row[i]) == 0 {
		l.heads.unset(i)
	} else {
		l.heads.set(i, l.row[i][0])
	}
}

// close excludes row i until it is opened again.
func (l *rows) close(i int) {
	l.closed[i] = true
	l.shut = append(l.shut, i)
	l.heads.unset(i)
}

// open opens all closed rows.
func (l *rows) open() {
	for _, i := range l.shut {
		l.closed[i] = false
		l.update(i)
	}
	l.shut = l.shut[:0]
}

// reopen opens the closed rows whose kinds may have room where something was freed.
func (l *rows) reopen(c *cluster.Cluster, f *Freed, kinds []cluster.Request) {
	for _, i := range l.again {
		l.freed[i] = false
	}
	l.again = l.again[:0]
	if !f.Any {
		return
	}
	still := l.shut[:0]
	for _, i := range l.shut {
		if !f.mayFit(c, &kinds[i]) {
			still = append(still, i)
			continue
		}
		l.closed[i] = false
		if !f.All {
			l.freed[i] = true
			l.again = append(l.again, i)
		}
		l.update(i)
	}
	l.shut = still
}

// first returns the open row, among rows 0 to limit, whose first waiting job has the best rank. It drops jobs that
// other code has started meanwhile.
func (l *rows) first(v *sim.View, limit int) int {
	for {
		i := l.heads.first(limit)
		if i < 0 || !Stale(v, &l.row[i][0]) {
			return i
		}
		if e := l.pop(i); v.Pos(e.Job) == e.Pos {
			(*l.marks)[e.Job].Queued = false
		}
	}
}
