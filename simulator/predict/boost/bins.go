package boost

import (
	"context"
	"math"
	"slices"

	"clustergym/internal/par"
)

// table holds the rows of a fit as bins. Features that have the same bin in every row cannot split and are left out.
type table struct {
	rows    int
	columns []column
	cells   []uint8 // bins, row after row
}

// column is a feature as bins. Bin b holds the values above bounds[b-1] up to bounds[b]; the last bound is +Inf. Rows
// without a value are in bin len(bounds).
type column struct {
	feature int
	bounds  []float32
}

// missing returns the bin of rows without a value.
func (c *column) missing() uint8 { return uint8(len(c.bounds)) }

// bin returns the bin of x.
func (c *column) bin(x float32) uint8 {
	if x != x {
		return c.missing()
	}
	b, _ := slices.BinarySearch(c.bounds, x)
	return uint8(b)
}

// newTable bins rows, which have this many features each.
func newTable(ctx context.Context, values []float32, features, bins, workers int) (*table, error) {
	t := &table{rows: len(values) / features}
	all := make([]column, features)
	scratch := make([][]float32, max(1, min(workers, features)))
	err := par.For(ctx, workers, features, func(worker, f int) error {
		known := scratch[worker][:0]
		for i := f; i < len(values); i += features {
			if x := values[i]; x == x {
				known = append(known, x)
			}
		}
		scratch[worker] = known
		all[f].feature = f
		if lacking := len(known) < t.rows; len(known) > 0 {
			all[f].bounds = bounds(known, bins)
			if len(all[f].bounds) == 1 && !lacking {
				all[f].bounds = nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if len(c.bounds) > 0 {
			t.columns = append(t.columns, c)
		}
	}
	width := len(t.columns)
	t.cells = make([]uint8, t.rows*width)
	err = par.For(ctx, workers, width, func(_, k int) error {
		c := &t.columns[k]
		for r := range t.rows {
			t.cells[r*width+k] = c.bin(values[r*features+c.feature])
		}
		return nil
	})
	return t, err
}

// bounds returns the upper bounds of at most limit bins of nearly equal numbers of values, the last of them +Inf. It
// sorts the values. A value that alone would fill a bin gets one, and does not count where the others are shared out.
func bounds(values []float32, limit int) []float32 {
	slices.Sort(values)
	distinct, counts := runs(values)
	heavy := func(i int) bool { return len(distinct) <= limit || counts[i]*limit >= len(values) }
	left, rows := float64(limit), 0.0 // bins and rows of the values that are not heavy
	for i, n := range counts {
		if heavy(i) {
			left--
		} else {
			rows += float64(n)
		}
	}
	var to []float32
	filled, full := 0.0, rows/left // rows of the present bin, and of one that is full
	for i := 0; i+1 < len(distinct) && len(to)+1 < limit; i++ {
		n := float64(counts[i])
		filled += n
		if !heavy(i) {
			rows -= n
		}
		if heavy(i) || filled >= full || heavy(i+1) && 2*filled >= full {
			to = append(to, between(distinct[i], distinct[i+1]))
			if !heavy(i) {
				left--
				full = rows / left
			}
			filled = 0
		}
	}
	return append(to, float32(math.Inf(1)))
}

// runs returns the distinct ones of sorted values, which it overwrites, and how often each occurs.
func runs(values []float32) (distinct []float32, counts []int) {
	distinct = values[:0]
	for _, x := range values {
		if n := len(distinct); n > 0 && distinct[n-1] == x {
			counts[n-1]++
			continue
		}
		distinct, counts = append(distinct, x), append(counts, 1)
	}
	return distinct, counts
}

// between returns the middle of a and b, where a < b, or a if there is none: the result is below b.
func between(a, b float32) float32 {
	if middle := float32((float64(a) + float64(b)) / 2); middle > a && middle < b {
		return middle
	}
	return a
}
