package queue

// tournament finds the first in rank among numbered places that hold one entry or none, in time logarithmic in the
// number of places. It is a tree of matches: every node knows the winner of the places below it.
type tournament struct {
	held []Entry // by place
	tree []int32 // node k has children 2k and 2k+1; the winner's place, none = no entry. Leaves are the second half
}

// None means no place, or no node.
const None = -1

// clear empties every place.
func (t *tournament) clear() {
	for i := range t.tree {
		t.tree[i] = None
	}
}

// set puts e in place i and replaces what was there.
func (t *tournament) set(i int, e Entry) {
	for i >= len(t.held) {
		t.grow()
	}
	t.held[i] = e
	k := len(t.held) + i
	t.tree[k] = int32(i)
	t.up(k, int32(i))
}

// unset empties place i.
func (t *tournament) unset(i int) {
	if i >= len(t.held) {
		return
	}
	if k := len(t.held) + i; t.tree[k] != None {
		t.tree[k] = None
		t.up(k, int32(i))
	}
}

// grow doubles the places.
func (t *tournament) grow() {
	old := t.tree[len(t.held):]
	leaves := max(1, 2*len(t.held))
	t.held = append(t.held, make([]Entry, leaves-len(t.held))...)
	tree := make([]int32, 2*leaves)
	for i := range tree {
		tree[i] = None
	}
	copy(tree[leaves:], old)
	t.tree = tree
	for k := leaves - 1; k > 0; k-- {
		t.tree[k] = t.winner(t.tree[2*k], t.tree[2*k+1])
	}
}

func (t *tournament) up(k int, i int32) {
	for k >>= 1; k > 0; k >>= 1 {
		was, won := t.tree[k], t.winner(t.tree[2*k], t.tree[2*k+1])
		t.tree[k] = won
		if was != i && won != i {
			return // i is irrelevant here and above
		}
	}
}

func (t *tournament) winner(a, b int32) int32 {
	if a < 0 || b >= 0 && t.held[b].Before(&t.held[a]) {
		return b
	}
	return a
}

// first returns the place of the first in rank among places 0 to limit, none if they are empty.
func (t *tournament) first(limit int) int {
	leaves := len(t.held)
	if leaves == 0 || limit < 0 {
		return None
	}
	if limit >= leaves-1 {
		return int(t.tree[1])
	}
	won := int32(None)
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
