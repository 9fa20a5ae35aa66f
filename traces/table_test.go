package traces

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"
)

func table(t *testing.T, text string, required ...string) *Table {
	t.Helper()
	d, err := NewTable(strings.NewReader(text), "t.csv", required...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestATableIsReadByTheNamesOfItsColumns(t *testing.T) {
	d := table(t, "\ufeff\n x ,b,\"a\",,\r\n1,2, 3 ,,\n\n\"4\",\"5,\"\"\",\" 6\",,\r\n\r\n \n", "a", "b")
	if got := d.Columns(); !slices.Equal(got, []string{"x", "b", "a", "", ""}) || d.Line() != 2 || d.Cell(0) != nil {
		t.Errorf("columns %q in line %d, cell %q", got, d.Line(), d.Cell(0))
	}
	at := d.At("a", "b", "c", "")
	if !slices.Equal(at, []int{2, 1, -1, 3}) {
		t.Fatalf("columns at %v", at)
	}
	for _, want := range []struct {
		raw, a, b string
		line      int
	}{{" 3 ", "3", "2", 3}, {" 6", "6", `5,"`, 5}} {
		err := d.Next()
		if string(d.Cell(at[0])) != want.raw || string(d.Text(at[0])) != want.a || string(d.Text(at[1])) != want.b ||
			err != nil || d.Line() != want.line {
			t.Errorf("%q, %q, %q, %v in line %d; want %+v", d.Cell(at[0]), d.Text(at[0]), d.Text(at[1]), err, d.Line(), want)
		}
		if d.Cell(-1) != nil || d.Text(-1) != nil || len(d.Cell(at[3])) != 0 || d.Cell(5) != nil {
			t.Error("a column that is not there has a value")
		}
	}
	for range 2 {
		if err := d.Next(); err != io.EOF {
			t.Errorf("%v at the end", err)
		}
	}
}

func TestFaultsOfATableSayWhereAndWhatWouldBeRight(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":            {"", `t.csv:1: got "", want a header with a, b`},
		"blank":            {"\n \n", `t.csv:1: got "", want a header with a, b`},
		"two missing":      {"c, x\n", `t.csv:1: got "c,x", want a header with also a, b`},
		"twice":            {"a,b,a\n", `t.csv:1: a: got "a", want each column once in the header`},
		"twice, not asked": {"a,b,c,c\n", `t.csv:1: c: got "c", want each column once in the header`},
		"a field too few":  {"a,b\n1,2\n\n1\n", `t.csv:4: got "1 fields", want 2, as in the header`},
		"a field too many": {"a,b\n1,2,3\n", `t.csv:2: got "3 fields", want 2, as in the header`},
		"quote in the text": {"a,b\n1,2\"3\n",
			`t.csv:2: got "2\"3", want quotes around the whole field, those inside written twice`},
		"text after a quote": {"a,b\n\"1\"x,2\n",
			`t.csv:2: got "x,2", want a comma or the end of the line after a closing quote`},
		"an open quote":      {"a,b\n1,\"2\n3\"\n", `t.csv:2: got "\"2", want a closing quote in the same line`},
		"open in the header": {"a,\"b\n", `t.csv:1: got "\"b", want a closing quote in the same line`},
	} {
		d, err := NewTable(strings.NewReader(c.text), "t.csv", "a", "b")
		for err == nil {
			err = d.Next()
		}
		var re *RowError
		if !errors.As(err, &re) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestQuotedFieldsOfTextGoOnOverLines(t *testing.T) {
	d, err := newTableOfText(strings.NewReader("a,\"b\nc\"\n1,\"x\r\n\n,\"\"y\"\"\"\n2,z\n"), "t.csv", "b\nc")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		text string
		line int
	}{{"x\r\n\n,\"y\"", 5}, {"z", 6}} {
		if err := d.Next(); err != nil || string(d.Cell(1)) != want.text || d.Line() != want.line {
			t.Errorf("%q, %v in line %d; want %+v", d.Cell(1), err, d.Line(), want)
		}
	}
	for text, want := range map[string]string{
		"a\n1\n\"2\n\n": `t.csv:4: got "the end of the file", want a closing quote for the one opened in line 3`,
		"a\n\"" + strings.Repeat("line\n",
			MaxLine/4): `want a row of at most 1048576 bytes (a quote opened in line 2 is not closed)`,
	} {
		d, err := newTableOfText(strings.NewReader(text), "t.csv", "a")
		for err == nil {
			err = d.Next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestTypedCellsNameColumnValueAndWhatWouldBeRight(t *testing.T) {
	d := table(t, "n,s,x\n 8.0 ,1e3,-1.25\n-1,-1,9\n1.5,nan,10\n3,9223372037,\n")
	type result struct {
		v   int64
		err string
	}
	read := func(v int64, err error) result {
		if err == nil {
			return result{v, ""}
		}
		var re *RowError
		if !errors.As(err, &re) || v != 0 {
			t.Errorf("%d with %v, want 0 with a RowError", v, err)
		}
		return result{0, err.Error()}
	}
	const seconds = "want seconds, 0 or more and below 292 years"
	for _, want := range [][4]result{
		{{8, ""}, {8, ""}, {int64(1000 * time.Second), ""}, {-125, ""}},
		{{0, `t.csv:3: n: got "-1", want a whole number, 0 or more`},
			{0, `t.csv:3: n: got "-1", want a whole number from 3 to 8`}, {0, `t.csv:3: s: got "-1", ` + seconds}, {900, ""}},
		{{0, `t.csv:4: n: got "1.5", want a whole number, 0 or more`},
			{0, `t.csv:4: n: got "1.5", want a whole number from 3 to 8`}, {0, `t.csv:4: s: got "nan", ` + seconds},
			{0, `t.csv:4: x: got "10", want up to nine`}},
		{{3, ""}, {3, ""}, {0, `t.csv:5: s: got "9223372037", ` + seconds}, {0, `t.csv:5: x: got "", want up to nine`}},
	} {
		if err := d.Next(); err != nil {
			t.Fatal(err)
		}
		at, err := d.Seconds(1)
		got := [4]result{read(d.Whole(0, 0, math.MaxInt64)), read(d.Whole(0, 3, 8)), read(int64(at), err),
			read(d.Number(2, 2, -200, 999, "up to nine"))}
		if got != want {
			t.Errorf("line %d: %v\nwant %v", d.Line(), got, want)
		}
	}
	if e := d.Fault(-1, "more"); e.Error() != `t.csv:5: got "", want more` {
		t.Error(e)
	}
	if _, err := d.Number(0, 0, 0, 2, "at most 2"); err == nil || err.Error() != `t.csv:5: n: got "3", want at most 2` {
		t.Error(err)
	}
	if _, err := d.Number(0, 0, 4, 5, "4 or 5"); err == nil {
		t.Error("3 passes for 4 or 5")
	}
}

func TestHeadsOfFilesTellTheirColumns(t *testing.T) {
	for _, c := range []struct {
		head        string
		has, strict bool
	}{
		{"b,a\n1", true, true}, {"\ufeffa,\"b\",c\r\n", true, true}, {"a,b", true, true}, {"a,b,d\n", true, false},
		{"a,b,\n", true, false},
		{"a,c\n", false, false}, {"", false, false}, {"a\nb\n", false, false}, {"a,b,a\n", false, false},
		{"a,\"b\n", false, false},
	} {
		if has, strict := HasColumns([]byte(c.head), "a", "b"),
			HasHeader([]byte(c.head), []string{"a", "b"}, []string{"c"}); has != c.has || strict != c.strict {
			t.Errorf("%q: %v, %v; want %v, %v", c.head, has, strict, c.has, c.strict)
		}
	}
}

func TestAFailureOfTheFileIsNoFaultOfARow(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, text := range []string{"", "a\n", "a\n\"x\n"} {
		d, err := newTableOfText(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), "t.csv", "a")
		if err == nil {
			err = d.Next()
		}
		var re *RowError
		if !errors.Is(err, broken) || errors.As(err, &re) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestReadingARowOfATableAllocatesNothing(t *testing.T) {
	d := table(t, "a,b,c\n"+strings.Repeat("12,\"x\"\"\",7.5\n 3 ,y,1\n", 1000), "a")
	row := func() {
		if err := d.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Whole(0, 0, 100); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Seconds(2); err != nil || len(d.Text(1)) == 0 {
			t.Fatal(err)
		}
	}
	for range 4 { // buffers grow to the longest row
		row()
	}
	if n := testing.AllocsPerRun(1000, row); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func TestWhatACSVWriterWritesIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(2, 5).Draw(t, "width")
		cells := rapid.SliceOfN(rapid.StringMatching(`[ab ",\n\t]{0,6}|.{0,6}`), width, width)
		rows := rapid.SliceOfN(cells, 0, 10).Draw(t, "rows")
		header := make([]string, width)
		for i := range header {
			header[i] = fmt.Sprint("c", i)
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		w.UseCRLF = rapid.Bool().Draw(t, "CRLF")
		if err := w.WriteAll(append([][]string{header}, rows...)); err != nil {
			t.Fatal(err)
		}
		d, err := newTableOfText(&b, "t.csv", header...)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if err := d.Next(); err != nil {
				t.Fatal(err)
			}
			for i, want := range row {
				got := string(d.Cell(i))
				if w.UseCRLF {
					got, want = strings.ReplaceAll(got, "\r", ""), strings.ReplaceAll(want, "\r", "")
				}
				if got != want {
					t.Fatalf("%q, want %q", got, want)
				}
			}
		}
		if err := d.Next(); err != io.EOF {
			t.Fatal(err)
		}
	})
}

func TestTextIsWithoutTheBlanksThatTheStandardLibraryKnows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[ \t\v\f\r\x{85}\x{a0}\x{2003}]{0,2}.{0,3}[ \t\r\x{85}\x{a0}\x{3000}]{0,2}`).Draw(t,
			"cell")
		if strings.ContainsAny(s, ",\"\n") {
			return
		}
		d, err := NewTable(strings.NewReader("a,b\n"+s+",x\n"), "t.csv")
		if err == nil {
			err = d.Next()
		}
		if want := strings.TrimSpace(s); err != nil || string(d.Cell(0)) != s || string(d.Text(0)) != want ||
			d.Given(0) != (want != "") || d.Given(-1) {
			t.Fatalf("%v: %q for %q, given %v", err, d.Text(0), s, d.Given(0))
		}
	})
}

// FuzzTable compares with encoding/csv, which differs in four ways: a line of blanks is a row to it, it drops a CR
// before a line end, it drops one at the end of the file, and it reads a file to its end where this table stops at a
// fault.
func FuzzTable(f *testing.F) {
	f.Add([]byte("a,b\n1,\"2\"\"\r\n3\"\n\n \n\"\",x y\r\n"), true)
	f.Add([]byte("\ufeff\"a\",b,\n1,2,\n"), false)
	f.Add([]byte("a,b\n\"1\"2,3\n"), false)
	f.Add([]byte("a,b\n1\n"), true)
	f.Fuzz(func(t *testing.T, b []byte, breaks bool) {
		open := NewTable
		if breaks {
			open = newTableOfText
		}
		d, err := open(bytes.NewReader(b), "f")
		if err != nil {
			return
		}
		if len(d.Columns()) < 2 {
			return // a line of blanks would be a row there
		}
		r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))))
		r.FieldsPerRecord = -1
		next := func() []string {
			for {
				row, err := r.Read()
				if err == io.EOF {
					return nil
				}
				if err != nil {
					t.Fatalf("encoding/csv does not read what was read: %v", err)
				}
				if len(row) > 1 || strings.TrimSpace(row[0]) != "" {
					return row
				}
			}
		}
		plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
		want := next()
		for i, c := range d.Columns() {
			if len(want) != len(d.Columns()) || plain(c) != plain(want[i]) {
				t.Fatalf("header %q, want %q", d.Columns(), want)
			}
		}
		for {
			err := d.Next()
			var re *RowError
			if errors.As(err, &re) {
				if re.Line < 1 || re.Want == "" {
					t.Fatalf("%+v", re)
				}
				return
			}
			if err == io.EOF {
				if row := next(); row != nil {
					t.Fatalf("%q is not read", row)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			row := next()
			if len(row) != len(d.Columns()) {
				t.Fatalf("%d fields, want %q", len(d.Columns()), row)
			}
			for i, want := range row {
				if got := string(d.Cell(i)); plain(got) != plain(want) {
					t.Fatalf("%q, want %q", got, want)
				}
			}
		}
	})
}

func BenchmarkTable(b *testing.B) {
	text := "a,b,c,d,e,f\n" + strings.Repeat("1234.5,977,8,job123,user,\n", 10000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		d, err := NewTable(strings.NewReader(text), "b", "a", "b")
		for err == nil {
			err = d.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*10000/b.Elapsed().Seconds(), "rows/s")
}

func between(delimiter byte, raw bool) func([]byte) (byte, bool) {
	return func([]byte) (byte, bool) { return delimiter, raw }
}

func TestTablesOfOtherDelimiters(t *testing.T) {
	for _, c := range []struct {
		text string
		o    TableOptions
		want string
	}{
		{"a;b;c\n1,5;x,y;\"q;\"\"r\"\"\"\n", TableOptions{Delimiter: between(';', false)}, `1,5/x,y/q;"r"`},
		{"a\tb\tc\n1\tx y\t\"q\tr\"\n", TableOptions{Delimiter: between('\t', false)}, "1/x y/q\tr"},
		{"\ufeffa|b|c\r\n1|x \"y\" z|,\r\n", TableOptions{Delimiter: between('|', true)}, `1/x "y" z/,`},
		{"a|b|c\n1|\"x|\"y\n", TableOptions{Delimiter: between('|', true)}, `1/"x/"y`},
	} {
		var seen string
		choose := c.o.Delimiter
		c.o.Delimiter = func(header []byte) (byte, bool) { seen = string(header); return choose(header) }
		table, err := OpenTable(strings.NewReader(c.text), "f", c.o, "a", "b", "c")
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if err := table.Next(); err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
		got := string(table.Cell(0)) + "/" + string(table.Cell(1)) + "/" + string(table.Cell(2))
		if got != c.want || len(seen) != 5 || table.delimiter != seen[1] {
			t.Errorf("%q: %q by the header %q, want %q", c.text, got, seen, c.want)
		}
	}
	table, err := OpenTable(strings.NewReader("a;b\n\"x\"y;1\n"), "f", TableOptions{Delimiter: between(';', false)})
	if err == nil {
		err = table.Next()
	}
	if err == nil || !strings.Contains(err.Error(), "want a semicolon or the end of the line after a closing quote") {
		t.Error(err)
	}
}

// A comma is a decimal comma only where it does not separate fields, and only once.
func TestDecimalCommas(t *testing.T) {
	for text, want := range map[string]int64{"1,5": 1500, "1.5": 1500, "-0,25": -250, "3": 3000, "1.000,5": 0,
		"1,000,5": 0, ",": 0} {
		table, err := OpenTable(strings.NewReader("a;b\n"+text+";\n"), "f", TableOptions{Delimiter: between(';', false)})
		if err != nil || table.Next() != nil {
			t.Fatal(err)
		}
		if v, _, err := table.Decimal(0, 3); v != want || (err == nil) != (want != 0) || string(table.Cell(0)) != text {
			t.Errorf("%q: %d, %v, cell %q", text, v, err, table.Cell(0))
		}
	}
	table, err := NewTable(strings.NewReader("a,b\n\"1,5\",\n"), "f")
	if err != nil || table.Next() != nil {
		t.Fatal(err)
	}
	if v, _, err := table.Decimal(0, 3); err == nil {
		t.Errorf("1,5 between commas is %d", v)
	}
}

// The shortcut for short whole numbers reads what Decimal reads.
func TestShortNumbersAreReadAsLongOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{0,11}|[-+]?[0-9]{1,3}([.][0-9]{0,3})?`).Draw(t, "text")
		places := rapid.IntRange(0, 12).Draw(t, "places")
		table, err := NewTable(strings.NewReader("a,b\n"+text+",\n"), "f")
		if err != nil || table.Next() != nil {
			t.Fatal(err)
		}
		got, exact, err := table.Decimal(0, places)
		want, wantExact, wantErr := Decimal(text, places)
		if got != want || exact != wantExact || err != wantErr {
			t.Fatalf("%q to %d places: %d, %v, %v; want %d, %v, %v", text, places, got, exact, err, want, wantExact, wantErr)
		}
	})
}

// newTableOfText is NewTable for a file whose quoted fields may hold line ends. A row longer than MaxLine, such as one
// whose quote is never closed, is a fault.
func newTableOfText(r io.Reader, file string, required ...string) (*Table, error) {
	return OpenTable(r, file, TableOptions{Text: true}, required...)
}
