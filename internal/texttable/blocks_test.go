package texttable

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A table that is too wide is written in blocks, none of which is, with all columns and the labels in each.
func TestBlocksHaveAllColumnsAndFit(t *testing.T) {
	header := []string{"workload", "policy"}
	var rows [][]string
	for i := range 3 {
		rows = append(rows, []string{"a workload of a long name", fmt.Sprintf("policy-%d", i)})
	}
	for c := range 9 {
		header = append(header, fmt.Sprintf("column number %d", c))
		for i := range rows {
			rows[i] = append(rows[i], fmt.Sprintf("cell-%d-%d [0.1, 0.2]", i, c))
		}
	}
	with := func(i int) bool { return i == 5 } // 5 belongs to 4
	for _, width := range []int{60, 80, 120, 1000} {
		var b strings.Builder
		if err := WriteBlocks(&b, width, header, rows, 2, with); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if n := longest(text); n > width {
			t.Errorf("%d: a line has %d characters\n%s", width, n, text)
		}
		blocks := strings.Split(strings.TrimSpace(text), "\n\n")
		for c := range 9 {
			for i := range rows {
				if strings.Count(text, fmt.Sprintf("cell-%d-%d ", i, c)) != 1 {
					t.Errorf("%d: cell %d, %d is not there once\n%s", width, i, c, text)
				}
			}
		}
		for _, block := range blocks {
			if !strings.Contains(block, "policy-0") || !strings.Contains(block, "policy-2") {
				t.Errorf("%d: a block without labels\n%s", width, block)
			}
			if width >= 80 && strings.Contains(block, "cell-0-2 ") != strings.Contains(block, "cell-0-3 ") {
				t.Errorf("%d: column 3 is not beside column 2\n%s", width, text)
			}
		}
		if one := len(blocks) == 1; one != (width == 1000) {
			t.Errorf("%d: %d blocks", width, len(blocks))
		}
	}
	// Labels alone, and labels that are wider than everything.
	for _, rows := range [][][]string{{{strings.Repeat("x", 90), "y"}}, {{strings.Repeat("long words ", 20), "y"}}} {
		var b strings.Builder
		if err := WriteBlocks(&b, 40, []string{"a", "b"}, rows, 1, func(int) bool { return false }); err != nil {
			t.Fatal(err)
		}
		if n := longest(b.String()); n > 40 || !slices.Contains(strings.Fields(b.String()), "y") {
			t.Errorf("%d characters\n%s", n, b.String())
		}
	}
}
