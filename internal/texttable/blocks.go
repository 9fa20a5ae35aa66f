package texttable

import "io"

// WriteBlocks is Write for tables that keep all their columns. A table that is wider than width is written as several
// blocks, one below the other, each with the first left columns and as many of the others as fit. with reports whether
// column i must stand in the same block as the one before it, if both fit. No line is longer than width. A column that
// does not even fit beside the labels alone is left out, as by Write.
func WriteBlocks(w io.Writer, width int, header []string, rows [][]string, left int, with func(i int) bool) error {
	t := newTable(header, rows, left) // with one unit a column, also for those of different blocks
	if t.natural() <= width {
		return Write(w, header, rows, left)
	}
	for i := range t.columns {
		t.columns[i].least = t.columns[i].narrowest()
	}
	labels := 0
	for i := range left {
		labels += t.columns[i].least + gap
	}
	var blocks [][]int
	used := width + 1 // of the last block
	for i := left; i < len(header); {
		n, size := 1, t.columns[i].least+gap // a column and those that stay with it
		for i+n < len(header) && with(i+n) && labels+size+t.columns[i+n].least <= width {
			size += t.columns[i+n].least + gap
			n++
		}
		if used+size-gap > width || len(blocks) == 0 {
			blocks, used = append(blocks, nil), labels
		}
		last := &blocks[len(blocks)-1]
		for k := range n {
			*last = append(*last, i+k)
		}
		used += size
		i += n
	}
	if len(blocks) == 0 {
		blocks = [][]int{nil}
	}
	for k, block := range blocks {
		pick := func(words []string) []string {
			out := append([]string(nil), words[:left]...)
			for _, i := range block {
				out = append(out, words[i])
			}
			return out
		}
		some := make([][]string, len(rows))
		for i := range rows {
			some[i] = pick(rows[i])
		}
		if k > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := Write(&wide{w, width}, pick(header), some, left); err != nil {
			return err
		}
	}
	return nil
}
