package queue

import (
	"math"
	"slices"
)

// Sample is an ascending list of numbers with the sums of its first numbers, for a list that grows in the middle: a
// number costs about the square root of their count. A sum is what adding one by one in ascending order gives, to the
// last bit, although sums of GPU-times in nanoseconds pass 2^53 and are rounded.
//
// The list is cut into blocks, which know the sum before them. What a block adds to it is known without adding again:
// between two powers of two a sum is a whole number of units, rounding of each addition depends only on the number
// added and, for ties, on whether the units are even, and so the units that the block adds depend only on the latter.
type Sample struct {
	blocks []sampleBlock
	N      int // numbers
	good   int // blocks up to this one know what is before them
}

type sampleBlock struct {
	of        []float64
	before    int     // numbers before the block
	sum       float64 // of these
	shift     int     // 2^shift is the unit of even and odd; unknown = they have to be computed
	even, odd []int64 // units that the first 1, 2, … numbers add to an even and to an odd sum; unknown = add one by one
}

const (
	fullBlock = 256
	unknown   = -1
)

// Reset forgets all numbers.
func (s *Sample) Reset() {
	s.blocks, s.N, s.good = s.blocks[:0], 0, 0
}

// Add adds x to the list.
func (s *Sample) Add(x float64) {
	if len(s.blocks) == 0 {
		s.insert(0)
	}
	i := s.blockOf(x)
	b := &s.blocks[i]
	at, _ := slices.BinarySearch(b.of, x)
	b.of = slices.Insert(b.of, at, x)
	b.shift = unknown
	s.N++
	s.good = min(s.good, i)
	if len(b.of) == fullBlock {
		s.insert(i + 1)
		a, b := &s.blocks[i], &s.blocks[i+1]
		b.of = append(b.of, a.of[fullBlock/2:]...)
		a.of = a.of[:fullBlock/2]
	}
}

// insert makes an empty block with number i, from the memory of one that an earlier run has left if there is one.
func (s *Sample) insert(i int) {
	n := len(s.blocks)
	if n < cap(s.blocks) {
		s.blocks = s.blocks[:n+1]
	} else {
		s.blocks = append(s.blocks, sampleBlock{})
	}
	b := s.blocks[n]
	copy(s.blocks[i+1:], s.blocks[i:n])
	if b.of == nil {
		b.of, b.even, b.odd = make([]float64, 0, fullBlock), make([]int64, fullBlock), make([]int64, fullBlock)
	}
	b.of, b.before, b.sum, b.shift = b.of[:0], 0, 0, unknown
	s.blocks[i] = b
}

// blockOf returns the number of the last block that begins with at most x, the first if there is none.
func (s *Sample) blockOf(x float64) int {
	i, to := 0, len(s.blocks)
	for to-i > 1 {
		if mid := (i + to) / 2; s.blocks[mid].of[0] <= x {
			i = mid
		} else {
			to = mid
		}
	}
	return i
}

// know makes block i know what is before it.
func (s *Sample) know(i int) {
	for ; s.good < i; s.good++ {
		a, b := &s.blocks[s.good], &s.blocks[s.good+1]
		b.before, b.sum = a.before+len(a.of), a.sumOf(len(a.of))
	}
}

// UpTo returns the number of numbers that are at most x, and their sum.
func (s *Sample) UpTo(x float64) (n int, sum float64) {
	if s.N == 0 {
		return 0, 0
	}
	i := s.blockOf(x)
	s.know(i)
	b := &s.blocks[i]
	n, to := 0, len(b.of)
	for n < to {
		if mid := (n + to) / 2; b.of[mid] <= x {
			n = mid + 1
		} else {
			to = mid
		}
	}
	return b.before + n, b.sumOf(n)
}

// sumOf returns the sum of all numbers before the block and of its first n.
func (b *sampleBlock) sumOf(n int) float64 {
	if n == 0 {
		return b.sum
	}
	shift := 0
	if b.sum >= 1<<53 {
		shift = int(math.Float64bits(b.sum)>>52) - 1023 - 52
	}
	if shift < 62 && b.sum >= 0 {
		if b.shift != shift {
			b.count(shift)
		}
		unit := float64(int64(1) << shift)
		units := int64(b.sum / unit) // exact
		more := b.even[n-1]
		if units&1 == 1 {
			more = b.odd[n-1]
		}
		if more != unknown && units+more <= 1<<53 {
			return float64(units+more) * unit
		}
	}
	sum := b.sum
	for _, x := range b.of[:n] {
		sum += x
	}
	return sum
}

// count computes even and odd.
func (b *sampleBlock) count(shift int) {
	b.shift = shift
	unit := int64(1) << shift
	for parity, list := range [2][]int64{b.even, b.odd} {
		more := int64(0)
		for i, x := range b.of {
			if more == unknown || !(x >= 0 && x < 1<<62) || x != math.Trunc(x) {
				more = unknown
				list[i] = unknown
				continue
			}
			whole, rest := int64(x)>>shift, int64(x)&(unit-1)
			more += whole
			if shift > 0 && (rest > unit/2 || rest == unit/2 && (more+int64(parity))&1 == 1) {
				more++
			}
			if more > 1<<53 {
				more = unknown
			}
			list[i] = more
		}
	}
}
