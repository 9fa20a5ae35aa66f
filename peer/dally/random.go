package dally

// javaRandom is the linear congruential generator of java.util.Random.
type javaRandom uint64

const (
	lcgFactor = 0x5DEECE66D
	lcgMask   = 1<<48 - 1
)

func newJavaRandom(seed int64) javaRandom {
	return javaRandom((uint64(seed) ^ lcgFactor) & lcgMask)
}

// next31 returns the next 31 bits.
func (r *javaRandom) next31() uint32 {
	*r = (*r*lcgFactor + 11) & lcgMask
	return uint32(*r >> 17)
}

// below returns a number from 0 to n−1.
func (r *javaRandom) below(n uint32) uint32 {
	if n&(n-1) == 0 {
		return uint32(uint64(n) * uint64(r.next31()) >> 31)
	}
	for {
		u := r.next31()
		v := u % n
		if u-v+(n-1) < 1<<31 {
			return v
		}
	}
}

// shuffle is java.util.Collections.shuffle.
func (r *javaRandom) shuffle(list []int32) {
	for i := len(list); i > 1; i-- {
		k := r.below(uint32(i))
		list[i-1], list[k] = list[k], list[i-1]
	}
}
