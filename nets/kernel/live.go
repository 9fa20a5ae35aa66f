package kernel

import "math"

// Networks over tables compute only the rows that hold something, the live ones: they are packed, one below the other,
// the rows of one sequence after those of the one before. A list [n, 1+t] says which they are: for each of n sequences
// of at most t rows the number of its live rows, then which rows these are, ascending. Packed memory has room for n·t
// rows; what stands below the live ones has no meaning and is never read.

// Table is a part of a sequence: rows that are a table of the observation.
type Table struct {
	At, Rows, Columns int // in the observation, row after row; Columns 0 = they are all live, whatever they hold
	Filled            int // 1 + the column that is above 0 in live rows; 0 = rows of zeros are not live
}

// ListLive fills live [n, 1+t] for n observations x [n, width]: row 0 of a sequence is always live, the tables' rows
// follow in order. t is 1 + the number of the tables' rows.
func ListLive[T Float](live, x []T, n, width int, tables []Table, t int) {
	for i := range n {
		o, list := x[i*width:(i+1)*width], live[i*(1+t):(i+1)*(1+t)]
		list[1] = 0
		count, row := 1, 1
		for k := range tables {
			tab := &tables[k]
			for j := range tab.Rows {
				if liveRow(tab, o, j) {
					count++
					list[count] = T(row)
				}
				row++
			}
		}
		list[0] = T(count)
	}
}

func liveRow[T Float](tab *Table, o []T, j int) bool {
	if tab.Columns == 0 {
		return true
	}
	r := o[tab.At+j*tab.Columns : tab.At+(j+1)*tab.Columns]
	if tab.Filled > 0 {
		return r[tab.Filled-1] > 0
	}
	for _, x := range r {
		if x != 0 {
			return true
		}
	}
	return false
}

// CountLive returns the number of live rows of n sequences of at most t rows.
func CountLive[T Float](live []T, n, t int) int {
	m := 0
	for i := range n {
		m += int(live[i*(1+t)])
	}
	return m
}

// FillLive sets dst [n, len(rows)] to ln(1+k)/ln 1025 of each sequence, with k the number of live rows of each part:
// after row 0 come the parts, with that many rows each.
func FillLive[T Float](dst, live []T, n, t int, rows []int) {
	for i := range n {
		list, d := live[i*(1+t):(i+1)*(1+t)], dst[i*len(rows):(i+1)*len(rows)]
		at, end := 2, 1
		for k, r := range rows {
			end += r
			from := at
			for at <= int(list[0]) && int(list[at]) < end {
				at++
			}
			d[k] = T(math.Log1p(float64(at-from)) / math.Log(1025))
		}
	}
}

// Pack copies the live ones among part's rows [n·rows, h] to their places in packed memory dst [n·t, h]: part has the
// rows [from, from+rows) of each sequence. With alone, the other live rows are set to 0.
func Pack[T Float](dst, part, live []T, n, t, h, from, rows int, alone bool) {
	at := 0
	for i := range n {
		list := live[i*(1+t) : (i+1)*(1+t)]
		for _, f := range list[1 : 1+int(list[0])] {
			d := dst[at*h : (at+1)*h]
			if r := int(f) - from; r >= 0 && r < rows {
				copy(d, part[(i*rows+r)*h:(i*rows+r+1)*h])
			} else if alone {
				clear(d)
			}
			at++
		}
	}
}

// Unpack copies the live ones among the rows [from, from+rows) of each sequence from packed memory x [n·t, h] to dst
// [n·rows, h]. Rows that are not live become 0.
func Unpack[T Float](dst, x, live []T, n, t, h, from, rows int) {
	clear(dst[:n*rows*h])
	at := 0
	for i := range n {
		list := live[i*(1+t) : (i+1)*(1+t)]
		for _, f := range list[1 : 1+int(list[0])] {
			if r := int(f) - from; r >= 0 && r < rows {
				copy(dst[(i*rows+r)*h:(i*rows+r+1)*h], x[at*h:(at+1)*h])
			}
			at++
		}
	}
}

// PoolLive sets dst [n, 2h] to each sequence's first row and the mean of its live rows, side by side, from packed
// memory x [n·t, h].
func PoolLive[T Float](dst, x, live []T, n, t, h int) {
	at := 0
	for i := range n {
		count := int(live[i*(1+t)])
		copy(dst[2*i*h:(2*i+1)*h], x[at*h:(at+1)*h])
		SumRows(dst[(2*i+1)*h:(2*i+2)*h], x[at*h:(at+count)*h], 1, count, h, T(count))
		at += count
	}
}

// PoolLiveGrad sets the live rows of dx [n·t, h] to the gradient before PoolLive, whose result has gradient dy [n, 2h].
func PoolLiveGrad[T Float](dx, dy, live []T, n, t, h int) {
	at := 0
	for i := range n {
		first, mean, count := dy[2*i*h:(2*i+1)*h], dy[(2*i+1)*h:(2*i+2)*h], int(live[i*(1+t)])
		d := dx[at*h : (at+1)*h]
		for c, g := range mean {
			d[c] = g / T(count)
		}
		for j := 1; j < count; j++ {
			copy(dx[(at+j)*h:(at+j+1)*h], d)
		}
		Add(d, d, first)
		at += count
	}
}

// AttendLive is Attend over each of n sequences of at most t rows, in packed memory: dst [n·t, width] from qkv [n·t,
// 3·width]. scratch needs at least AttendScratch(t, width, heads) elements.
func AttendLive[T Float](dst, qkv, live []T, n, t, width, heads int, scratch []T) {
	at := 0
	for i := range n {
		count := int(live[i*(1+t)])
		Attend(dst[at*width:], qkv[3*at*width:], count, width, heads, scratch)
		at += count
	}
}

// AttendLiveGrad is AttendGrad over each of n sequences of at most t rows, in packed memory.
func AttendLiveGrad[T Float](dqkv, qkv, dy, live []T, n, t, width, heads int, scratch []T) {
	at := 0
	for i := range n {
		count := int(live[i*(1+t)])
		AttendGrad(dqkv[3*at*width:], qkv[3*at*width:], dy[at*width:], count, width, heads, scratch)
		at += count
	}
}
