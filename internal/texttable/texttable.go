// Package texttable writes tables and sentences as plain text. On a terminal they fit its width; elsewhere they are
// written as they are, whatever their length.
package texttable

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"clustergym/internal/plain"
)

// Terminal is a writer that shows its lines to people on a screen of limited width.
type Terminal interface {
	io.Writer
	// Width is how many characters a line can have, 0 = any number. It may change between two calls.
	Width() int
}

// WidthOf returns how many characters a line on w can have, 0 = any number.
func WidthOf(w io.Writer) int {
	if t, ok := w.(Terminal); ok {
		return t.Width()
	}
	return 0
}

// AtMost returns w as a Terminal of width characters, unless it is a Terminal that knows its own.
func AtMost(w io.Writer, width int) Terminal {
	if t, ok := w.(Terminal); ok && t.Width() > 0 {
		return t
	}
	return &wide{w, width}
}

type wide struct {
	io.Writer
	width int
}

func (w *wide) Width() int { return w.width }

// gap is the number of blanks between two columns.
const gap = 2

// Write writes rows below header, with two blanks between columns. The first left columns are aligned left, the others
// right. Every row must have as many cells as header. Cells are cleaned (package plain), since a name of others may
// hold what a terminal obeys, and quantities get one unit a column (OneUnit).
//
// A table that is too wide for the Terminal w is made narrower: headers and texts are broken into several lines, long
// names are shortened in the middle. If that is not enough, columns are left out, and a line below the table names
// them. least names the columns that go first, the least important one first; "JCT p50" also stands for "JCT p50 (h)".
// After them go the last columns. The first column always stays.
func Write(w io.Writer, header []string, rows [][]string, left int, least ...string) error {
	t := newTable(header, rows, left)
	var b strings.Builder
	if width := WidthOf(w); width > 0 && t.natural() > width {
		t.fit(width, least)
		t.write(&b)
		if len(t.out) > 0 {
			names := make([]string, len(t.out))
			for i := range t.out {
				names[i] = t.out[i].cells[0]
			}
			b.WriteString("\n" + Wrapped(fmt.Sprintf("Left out to fit %d characters a line: %s. --json has them.", width,
				strings.Join(names, ", ")), width) + "\n")
		}
	} else {
		t.write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table is a table being laid out, column by column.
type table struct {
	columns []column
	rows    int
	out     []column // left out, in the order of the table
}

// column is one column: its header is the first cell.
type column struct {
	cells []string
	left  bool
	at    int // position in the whole table
	width int // what it has
	want  int // its longest cell
	least int // what it can do with
}

func newTable(header []string, rows [][]string, left int) *table {
	t := &table{rows: 1 + len(rows)}
	OneUnit(rows)
	for i, h := range header {
		c := column{cells: make([]string, 0, t.rows), left: i < left, at: i}
		c.cells = append(c.cells, h)
		for _, row := range rows {
			c.cells = append(c.cells, plain.Line(row[i]))
		}
		for _, s := range c.cells {
			c.want = max(c.want, utf8.RuneCountInString(s))
		}
		c.width = c.want
		t.columns = append(t.columns, c)
	}
	return t
}

// natural is the width of the table with every cell on one line.
func (t *table) natural() int { return t.sum(func(c *column) int { return c.want }) }

func (t *table) sum(of func(c *column) int) int {
	n := -gap
	for i := range t.columns {
		n += of(&t.columns[i]) + gap
	}
	return n
}

// fit gives every column a width, so that the table is at most so many characters wide, and leaves columns out where
// that cannot be.
func (t *table) fit(width int, least []string) {
	for i := range t.columns {
		t.columns[i].least = t.columns[i].narrowest()
	}
	minimum := func(c *column) int { return c.least }
	for len(t.columns) > 1 && t.sum(minimum) > width {
		i := t.leastImportant(least)
		t.out = append(t.out, t.columns[i])
		t.columns = slices.Delete(t.columns, i, i+1)
	}
	slices.SortFunc(t.out, func(a, b column) int { return a.at - b.at })
	free := width - t.sum(minimum)
	for i := range t.columns {
		t.columns[i].width = t.columns[i].least
	}
	if free < 0 { // the only column left; its cells are cut
		t.columns[0].width = max(1, width)
	}
	// Names first: the first column widens until it has what it wants, then the next one. A long text must not take what
	// a name needs, so texts come last.
	for _, texts := range []bool{false, true} {
		for i := range t.columns {
			if c := &t.columns[i]; c.text() == texts && free > 0 {
				more := min(free, c.want-c.width)
				c.width += more
				free -= more
			}
		}
	}
	for i := range t.columns { // no wider than what is in it needs, once it is broken
		c := &t.columns[i]
		most := 0
		for k := range c.cells {
			for _, line := range c.lines(k) {
				most = max(most, utf8.RuneCountInString(line))
			}
		}
		c.width = most
	}
}

// leastImportant returns the index of the column to leave out next.
func (t *table) leastImportant(least []string) int {
	for _, name := range least {
		for i := 1; i < len(t.columns); i++ {
			if h := t.columns[i].cells[0]; h == name || strings.HasPrefix(h, name+" (") {
				return i
			}
		}
	}
	return len(t.columns) - 1
}

const (
	shortName = 12 // the shortest that a name is made, if it stays unlike the others
	firstText = 16 // the width that a text in the first column is given at least
	shortText = 28 // and one in another column
)

// text reports whether the column holds texts of three words or more, which are broken between words, rather than names
// or numbers.
func (c *column) text() bool {
	return c.left && slices.ContainsFunc(c.cells[1:], func(s string) bool { return len(strings.Fields(s)) > 2 })
}

// narrowest returns the least width at which the column can be read.
func (c *column) narrowest() int {
	header := longestWord(c.cells[0])
	if !c.left {
		cells := 0
		for _, s := range c.cells[1:] {
			cells = max(cells, utf8.RuneCountInString(s))
		}
		return max(header, cells)
	}
	if c.text() {
		if c.at == 0 {
			return min(c.want, max(header, firstText))
		}
		return min(c.want, max(header, shortText))
	}
	// As many characters as keep different names different.
	for width := min(c.want, max(header, shortName)); ; width++ {
		seen, same := map[string]string{}, false
		for _, s := range c.cells[1:] {
			short := Short(s, width)
			if was, ok := seen[short]; ok && was != s {
				same = true
			}
			seen[short] = s
		}
		if !same || width >= c.want {
			return width
		}
	}
}

// lines returns the lines of a cell at the column's width.
func (c *column) lines(i int) []string {
	s := c.cells[i]
	switch {
	case utf8.RuneCountInString(s) <= c.width:
		return []string{s}
	case i == 0 || c.text():
		return strings.Split(broken(s, c.width), "\n")
	}
	return []string{Short(s, c.width)}
}

func (t *table) write(b *strings.Builder) {
	put := func(cell func(c *column) string) {
		var l strings.Builder
		for i := range t.columns {
			c := &t.columns[i]
			s := cell(c)
			pad := strings.Repeat(" ", max(0, c.width-utf8.RuneCountInString(s)))
			if i > 0 {
				l.WriteString("  ")
			}
			if c.left {
				l.WriteString(s + pad)
			} else {
				l.WriteString(pad + s)
			}
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	lines := make([][]string, len(t.columns))
	for row := range t.rows {
		most := 1
		for i := range t.columns {
			lines[i] = t.columns[i].lines(row)
			most = max(most, len(lines[i]))
		}
		for k := range most {
			i := -1
			put(func(*column) string {
				if i++; k < len(lines[i]) {
					return lines[i][k]
				}
				return ""
			})
		}
		if row == 0 {
			put(func(c *column) string { return strings.Repeat("-", c.width) })
		}
	}
}
