package history

import (
	"hash/maphash"
	"math/bits"
)

// factor spreads keys over slots. It differs between processes, so that nobody can choose keys that share a slot; where
// a key stands changes nothing else.
var factor = maphash.String(maphash.MakeSeed(), "") | 1

// table finds the sample of a key: a hash table with open addressing, whose keys are hashes already. A look-up touches
// one place of memory, where those of a map of the language touch several; with thousands of users that is most of the
// cost.
type table struct {
	slots []slot // a power of two, at most half full
	n     int
}

type slot struct {
	key uint64
	at  int32 // number of the sample + 1; 0 = none
}

// first returns the slot of a key if no other has it: the upper bits of a product.
func (t *table) first(key uint64) uint64 {
	hi, _ := bits.Mul64(key*factor, uint64(len(t.slots)))
	return hi
}

// find returns the number of the sample of a key.
func (t *table) find(key uint64) (i int32, ok bool) {
	if t.n == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for k := t.first(key); ; k = (k + 1) & mask {
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
	k := t.first(s.key)
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
