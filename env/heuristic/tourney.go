package heuristic

// tourney finds the first in rank among numbered places that hold one entry or none, in time logarithmic in the
// number of places. It is a tree of matches: every node knows the winner of the places below it.
type tourney struct {
	top  []entry // by place
	tree []int32 // node k has children 2k and 2k+1; the winner's place, none = no entry. Leaves are the second half
}

// none means no place, or no node.
const none = -1

// clear empties every place.
func (t *tourney) clear() {
	for i := range t.tree {
		t.tree[i] = none
	}
}

// set puts e in place i and replaces what was there.
func (t *tourney) set(i int, e entry) {
	for i >= len(t.top) {
		t.grow()
	}
	t.top[i] = e
	k := len(t.top) + i
	t.tree[k] = int32(i)
	t.up(k, int32(i))
}

// unset empties place i.
func (t *tourney) unset(i int) {
	if i >= len(t.top) {
		return
	}
	if k := len(t.top) + i; t.tree[k] != none {
		t.tree[k] = none
		t.up(k, int32(i))
	}
}

// grow doubles the places.
func (t *tourney) grow() {
	old := t.tree[len(t.top):]
	leaves := max(1, 2*len(t.top))
	t.top = append(t.top, make([]entry, leaves-len(t.top))...)
	tree := make([]int32, 2*leaves)
	for i := range tree {
		tree[i] = none
	}
	copy(tree[leaves:], old)
	t.tree = tree
	for k := leaves - 1; k > 0; k-- {
		t.tree[k] = t.winner(t.tree[2*k], t.tree[2*k+1])
	}
}

func (t *tourney) up(k int, i int32) {
	for k >>= 1; k > 0; k >>= 1 {
		was, won := t.tree[k], t.winner(t.tree[2*k], t.tree[2*k+1])
		t.tree[k] = won
		if was != i && won != i {
			return // i is irrelevant here and above
		}
	}
}

func (t *tourney) winner(a, b int32) int32 {
	if a < 0 || b >= 0 && t.top[b].before(&t.top[a]) {
		return b
	}
	return a
}

// first returns the place of the first in rank among places 0 to limit, none if they are empty.
func (t *tourney) first(limit int) int {
	leaves := len(t.top)
	if leaves == 0 || limit < 0 {
		return none
	}
	if limit >= leaves-1 {
		return int(t.tree[1])
	}
	won := int32(none)
	for r := leaves + limit + 1; r > 1; r >>= 1 { // subtrees that end right before r
		if r&1 == 1 {
			won = t.winner(won, t.tree[r-1])
		}
		if r&(r-1) == 0 {
			break // the left edge: there is nothing before it
		}
	}
	return int(won)
}
