package queue

import (
	"clustergym/internal/grow"
	"clustergym/simulator/sim"
)

// Classes are the classes of waiting jobs and the keys that rank them now.
type Classes struct {
	Classifier
	Keys   []float64 // by class
	change []int32   // classes with other keys since the last update
	moved  []bool    // by class: it is in change
	Made   int       // how often a class was the greatest so far, at most the number of classes
}

// Reset forgets all classes.
func (r *Classes) Reset() {
	r.Classifier.Reset()
	r.Keys, r.change, r.moved, r.Made = r.Keys[:0], r.change[:0], r.moved[:0], 0
}

// Of returns the class of j, which waits from now on.
func (r *Classes) Of(v *sim.View, j sim.Job) int32 {
	c := r.Classifier.Of(v, j)
	if int(c) >= len(r.Keys) {
		r.Made++
	}
	for int(c) >= len(r.Keys) {
		r.Keys, r.moved = append(r.Keys, 0), append(r.moved, false)
	}
	r.Keys[c] = r.Classifier.Key(c)
	return c
}

// Update gives classes their keys as of now and returns those whose keys are others than before.
func (r *Classes) Update(v *sim.View) []int32 {
	for _, c := range r.change {
		r.moved[c] = false
	}
	all := r.Classifier.Update(v, r.change[:0])
	r.change = all[:0]
	for _, c := range all {
		if int(c) >= len(r.Keys) {
			continue // no job of it has waited yet
		}
		if key := r.Classifier.Key(c); key != r.Keys[c] {
			r.Keys[c], r.moved[c] = key, true
			r.change = append(r.change, c)
		}
	}
	return r.change
}

// classIndex holds the jobs of one row by class. Within a class they are in the order of the trace, whatever its key,
// so only classes move.
type classIndex struct {
	class []int32    // by slot
	heaps []Heap     // by slot; keys are 0
	heads tournament // by slot
}

// rowClass is a row and a class of jobs in it.
type rowClass struct{ row, class int32 }

// add adds e to the class index of row i.
func (l *rows) add(i int, e Entry) {
	c := (*l.marks)[e.Job].Class
	d, at := &l.index[i], rowClass{int32(i), c}
	slot, ok := l.slots[at]
	if !ok {
		slot = d.slot(c)
		l.enter(at, slot)
	}
	e.Key = 0
	d.heaps[slot].Push(e)
	if d.heaps[slot][0].Job == e.Job {
		d.update(slot, l.classes)
		l.raise(i)
	}
}

// enter notes the slot of a class in a row.
func (l *rows) enter(at rowClass, slot int32) {
	l.slots[at] = slot
	in := grow.At(&l.inRows, at.class)
	*in = append(*in, at)
}

// slot returns a new slot for jobs of class.
func (d *classIndex) slot(class int32) int32 {
	n := len(d.class)
	d.class = append(d.class, class)
	if n < cap(d.heaps) { // reuse the memory of an earlier slot
		d.heaps = d.heaps[:n+1]
		d.heaps[n] = d.heaps[n][:0]
	} else {
		d.heaps = append(d.heaps, nil)
	}
	return int32(n)
}

// update updates the search after a change of a slot or of its class's key.
func (d *classIndex) update(slot int32, r *Classes) {
	if len(d.heaps[slot]) == 0 {
		d.heads.unset(int(slot))
		return
	}
	e := d.heaps[slot][0]
	e.Key = r.Keys[d.class[slot]]
	d.heads.set(int(slot), e)
}

// pop removes the first in rank.
func (d *classIndex) pop(r *Classes) {
	slot := int32(d.heads.first(Unlimited))
	d.heaps[slot].Pop()
	d.update(slot, r)
}

// raise makes the first in rank of class index i the one entry of row i.
func (l *rows) raise(i int) {
	d := &l.index[i]
	l.row[i] = l.row[i][:0]
	if slot := d.heads.first(Unlimited); slot >= 0 {
		l.row[i] = append(l.row[i], d.heads.held[slot])
	}
	l.update(i)
}

// rerank gives the jobs of class their new key.
func (l *rows) rerank(class int32) {
	if int(class) >= len(l.inRows) {
		return
	}
	for _, at := range l.inRows[class] {
		slot := l.slots[at]
		d := &l.index[at.row]
		if len(d.heaps[slot]) > 0 {
			d.update(slot, l.classes)
			l.raise(int(at.row))
		}
	}
}

// renumber enters all slots again, after rows have got other numbers.
func (l *rows) renumber() {
	if l.classes == nil {
		return
	}
	clear(l.slots)
	for c := range l.inRows {
		l.inRows[c] = l.inRows[c][:0]
	}
	for i := range l.row {
		for slot, c := range l.index[i].class {
			l.enter(rowClass{int32(i), c}, int32(slot))
		}
	}
}

// resetIndex empties all class indices.
func (l *rows) resetIndex() {
	if l.classes == nil {
		return
	}
	if l.slots == nil {
		l.slots = map[rowClass]int32{}
	}
	clear(l.slots)
	for c := range l.inRows {
		l.inRows[c] = l.inRows[c][:0]
	}
	for i := range l.index {
		d := &l.index[i]
		d.class, d.heaps = d.class[:0], d.heaps[:0]
		d.heads.clear()
	}
}

// Classifier divides waiting jobs into classes that share a key, which follows from what runs and from nothing else.
type Classifier interface {
	// Reset forgets all classes.
	Reset()
	// Of returns the number of j's class, counted from 0.
	Of(v *sim.View, j sim.Job) int32
	// Update observes what runs and appends to dst the classes that may have another key than at the last call.
	Update(v *sim.View, dst []int32) []int32
	// Key returns the key of a class as of the last update.
	Key(class int32) float64
}

// Mark is what a scheduler notes about a job.
type Mark struct {
	Queued bool  // it is in a queue
	Odd    bool  // counting GPUs does not say whether it fits
	Class  int32 // among Classes, while it is queued
}
