package heuristic

import "clustergym/env/sim"

// ranks are the classes of waiting jobs and the keys that rank them now.
type ranks struct {
	classes
	key    []float64 // by class
	change []int32   // classes with other keys since the last update
	moved  []bool    // by class: it is in change
	made   int       // how often a class was the greatest so far, at most the number of classes
}

func (r *ranks) reset() {
	r.classes.reset()
	r.key, r.change, r.moved, r.made = r.key[:0], r.change[:0], r.moved[:0], 0
}

// of returns the class of j, which waits from now on.
func (r *ranks) of(v *sim.View, j sim.Job) int32 {
	c := r.classes.of(v, j)
	if int(c) >= len(r.key) {
		r.made++
	}
	for int(c) >= len(r.key) {
		r.key, r.moved = append(r.key, 0), append(r.moved, false)
	}
	r.key[c] = r.classes.key(c)
	return c
}

// update gives classes their keys as of now and returns those whose keys are others than before.
func (r *ranks) update(v *sim.View) []int32 {
	for _, c := range r.change {
		r.moved[c] = false
	}
	all := r.classes.update(v, r.change[:0])
	r.change = all[:0]
	for _, c := range all {
		if int(c) >= len(r.key) {
			continue // no job of it has waited yet
		}
		if key := r.classes.key(c); key != r.key[c] {
			r.key[c], r.moved[c] = key, true
			r.change = append(r.change, c)
		}
	}
	return r.change
}

// deck holds the jobs of one line by class. Within a class they are in the order of the trace, whatever its key, so
// only classes move.
type deck struct {
	class []int32 // by slot
	lines []line  // by slot; keys are 0
	heads tourney // by slot
}

// cell is a line and a class of jobs in it.
type cell struct{ line, class int32 }

// deal adds e to the deck of line i.
func (l *lines) deal(i int, e entry) {
	c := (*l.marks)[e.job].class
	d, at := &l.decks[i], cell{int32(i), c}
	slot, ok := l.slots[at]
	if !ok {
		slot = d.add(c)
		l.enter(at, slot)
	}
	e.key = 0
	d.lines[slot].push(e)
	if d.lines[slot][0].job == e.job {
		d.play(slot, l.ranks)
		l.raise(i)
	}
}

// enter notes the slot of a cell.
func (l *lines) enter(at cell, slot int32) {
	l.slots[at] = slot
	for int(at.class) >= len(l.cells) {
		l.cells = append(l.cells, nil)
	}
	l.cells[at.class] = append(l.cells[at.class], at)
}

// add returns a new slot for jobs of class.
func (d *deck) add(class int32) int32 {
	n := len(d.class)
	d.class = append(d.class, class)
	if n < cap(d.lines) { // reuse the memory of an earlier slot
		d.lines = d.lines[:n+1]
		d.lines[n] = d.lines[n][:0]
	} else {
		d.lines = append(d.lines, nil)
	}
	return int32(n)
}

// play updates the search after a change of a slot or of its class's key.
func (d *deck) play(slot int32, r *ranks) {
	if len(d.lines[slot]) == 0 {
		d.heads.unset(int(slot))
		return
	}
	e := d.lines[slot][0]
	e.key = r.key[d.class[slot]]
	d.heads.set(int(slot), e)
}

// pop removes the first in rank.
func (d *deck) pop(r *ranks) {
	slot := int32(d.heads.first(unlimited))
	d.lines[slot].pop()
	d.play(slot, r)
}

// raise makes the first in rank of deck i the one entry of line i.
func (l *lines) raise(i int) {
	d := &l.decks[i]
	l.line[i] = l.line[i][:0]
	if slot := d.heads.first(unlimited); slot >= 0 {
		l.line[i] = append(l.line[i], d.heads.top[slot])
	}
	l.play(i)
}

// rerank gives the jobs of class their new key.
func (l *lines) rerank(class int32) {
	if int(class) >= len(l.cells) {
		return
	}
	for _, at := range l.cells[class] {
		slot := l.slots[at]
		d := &l.decks[at.line]
		if len(d.lines[slot]) > 0 {
			d.play(slot, l.ranks)
			l.raise(int(at.line))
		}
	}
}

// renumber enters all cells anew, after lines have got other numbers.
func (l *lines) renumber() {
	if l.ranks == nil {
		return
	}
	clear(l.slots)
	for c := range l.cells {
		l.cells[c] = l.cells[c][:0]
	}
	for i := range l.line {
		for slot, c := range l.decks[i].class {
			l.enter(cell{int32(i), c}, int32(slot))
		}
	}
}

// resetDecks empties all decks.
func (l *lines) resetDecks() {
	if l.ranks == nil {
		return
	}
	if l.slots == nil {
		l.slots = map[cell]int32{}
	}
	clear(l.slots)
	for c := range l.cells {
		l.cells[c] = l.cells[c][:0]
	}
	for i := range l.decks {
		d := &l.decks[i]
		d.class, d.lines = d.class[:0], d.lines[:0]
		d.heads.clear()
	}
}
