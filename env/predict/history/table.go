package history

// table finds the sample of a key: a hash table with open addressing, whose keys are hashes already. A look-up touches one
// place of memory, where those of a map of the language touch several; with thousands of users that is most of the cost.
type table struct {
	slots []slot // a power of two, at most half full
	n     int
}

type slot struct {
	key uint64
	at  int32 // number of the sample + 1; 0 = none
}

// find returns the number of the sample of a key.
func (t *table) find(key uint64) (i int32, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for k := key & mask; ; k = (k + 1) & mask {
		if s := &t.slots[k]; s.at == 0 {
			return 0, false
		} else if s.key == key {
			return s.at - 1, true
		}
	}
}

// add enters the sample number i of a key that has none.
func (t *table) add(key uint64, i int32) {
	if 2*(t.n+1) > len(t.slots) {
		old := t.slots
		t.slots = make([]slot, max(64, 2*len(old)))
		for _, s := range old {
			if s.at > 0 {
				t.put(s)
			}
		}
	}
	t.put(slot{key, i + 1})
	t.n++
}

func (t *table) put(s slot) {
	mask := uint64(len(t.slots) - 1)
	k := s.key & mask
	for t.slots[k].at > 0 {
		k = (k + 1) & mask
	}
	t.slots[k] = s
}

// clear forgets all keys.
func (t *table) clear() {
	clear(t.slots)
	t.n = 0
}
