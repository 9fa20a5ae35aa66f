package boost

import (
	"math/bits"
	"slices"
)

// quantile returns the quantile of v at level, between two values by their distance, and changes their order. It stands
// at position level·(n+1) of n values, counted from 1, but not before the first or behind the last. There the next
// value falls below it with a chance of level (Weibull). The position in LightGBM, level·(n-1) counted from 0, is
// nearer to the median, by most of a row at the outer levels; in leaves of 20 rows that makes forecasts too narrow.
func quantile(v []float64, level float64) float64 {
	at := max(0, level*float64(len(v)+1)-1)
	k := min(int(at), len(v)-1)
	nth(v, k)
	if k == len(v)-1 {
		return v[k]
	}
	return v[k] + (at-float64(k))*(slices.Min(v[k+1:])-v[k])
}

// nth moves the k-th smallest value of v to place k, the smaller ones before it and the greater ones behind it, by
// Hoare's FIND. It sorts what is left after too many rounds.
func nth(v []float64, k int) {
	for rounds := 2 * bits.Len(uint(len(v))); len(v) > 16 && rounds > 0; rounds-- {
		pivot := median(v[0], v[len(v)/2], v[len(v)-1])
		i, j := 0, len(v)-1
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch { // v[:j+1] <= pivot, v[i:] >= pivot, and what lies between equals it
		case k <= j:
			v = v[:j+1]
		case k >= i:
			v, k = v[i:], k-i
		default:
			return
		}
	}
	slices.Sort(v)
}

func median(a, b, c float64) float64 { return max(min(a, b), min(max(a, b), c)) }
