package dally

// hashMap returns keys in the iteration order of a chained hash map of the authors' program: buckets from the last to
// the first, each from its newest key to its oldest.
type hashMap struct {
	next []int32 // by key: the next one in its bucket, −1 = none
	hash []uint32
	head []int32 // by bucket
	used int
	old  []int32
}

// spread is the map's supplementary hash. Its argument is the exclusive or of a key's parts.
func spread(h uint32) uint32 {
	h += ^(h << 9)
	h ^= h >> 14
	h += h << 4
	h ^= h >> 10
	return h
}

// machineHash and slotHash are the hashes of machine m and slot s of a cluster with perRack machines in a rack.
func machineHash(m, perRack int) uint32 { return spread(uint32(m/perRack) ^ uint32(m%perRack)) }

func slotHash(s, perRack int) uint32 {
	m := s / 2
	return spread(uint32(m/perRack) ^ uint32(m%perRack) ^ uint32(s%2))
}

const (
	noKey        = -1
	firstBuckets = 16
)

// clear empties the map, which may then hold keys 0 to keys−1.
func (h *hashMap) clear(keys int) {
	for len(h.next) < keys {
		h.next, h.hash = append(h.next, noKey), append(h.hash, 0)
	}
	h.buckets(firstBuckets)
	h.used = 0
}

func (h *hashMap) buckets(n int) {
	h.head = h.head[:0]
	for range n {
		h.head = append(h.head, noKey)
	}
}

// put adds a key that is not in the map.
func (h *hashMap) put(key int32, hash uint32) {
	h.hash[key] = hash
	h.front(key)
	if h.used++; 4*h.used >= 3*len(h.head) {
		h.grow()
	}
}

func (h *hashMap) front(key int32) {
	b := h.hash[key] & uint32(len(h.head)-1)
	h.next[key] = h.head[b]
	h.head[b] = key
}

// grow doubles the buckets. Keys are reinserted in iteration order, each at the front of its bucket.
func (h *hashMap) grow() {
	h.old = h.keys(h.old[:0])
	h.buckets(2 * len(h.head))
	for _, k := range h.old {
		h.front(k)
	}
}

// keys appends all keys in iteration order.
func (h *hashMap) keys(dst []int32) []int32 {
	for b := len(h.head) - 1; b >= 0; b-- {
		for k := h.head[b]; k != noKey; k = h.next[k] {
			dst = append(dst, k)
		}
	}
	return dst
}
