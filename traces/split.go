package traces

import (
	"bytes"
	"fmt"
	"io"
)

// read splits the next line that is not blank into fields; a quoted field may continue on the lines after it. It
// returns io.EOF at the end.
func (t *Table) read() error {
	line, err := t.line()
	for err == nil && line[0] == '#' && t.comment(line) {
		line, err = t.line()
	}
	if err != nil {
		return err
	}
	return t.split(line)
}

// line returns the next line that is neither blank nor drawn.
func (t *Table) line() ([]byte, error) {
	for {
		line, err := t.lines.Next()
		switch {
		case err != nil:
			return nil, err
		case len(trim(line)) == 0:
		case drawn(line):
			t.aligned = true
		default:
			return line, nil
		}
	}
}

// split splits a row of which line is the first line.
func (t *Table) split(line []byte) error {
	if !t.raw && bytes.IndexByte(line, '"') >= 0 {
		return t.quoted(line)
	}
	fields, from, delimiter := t.fields[:0], 0, t.delimiter
	for i, c := range line {
		if c == delimiter {
			fields = append(fields, line[from:i])
			from = i + 1
		}
	}
	t.fields = append(fields, line[from:])
	return nil
}

// quoted splits a row that contains quotes (RFC 4180, section 2, rules 5 to 7).
func (t *Table) quoted(line []byte) (err error) {
	t.fields, t.row, t.ends = t.fields[:0], t.row[:0], t.ends[:0]
	for i := 0; ; {
		if i < len(line) && line[i] == '"' {
			if line, i, err = t.unquote(line, i+1); err != nil {
				return err
			}
			if i < len(line) && line[i] != t.delimiter {
				return t.FaultIn("", string(line[i:]),
					t.named()+" or the end of the line after a closing quote (a quote inside is written twice)")
			}
		} else {
			k := bytes.IndexByte(line[i:], t.delimiter)
			if k < 0 {
				k = len(line) - i
			}
			if bytes.IndexByte(line[i:i+k], '"') >= 0 {
				return t.FaultIn("", string(line[i:i+k]), "quotes around the whole field, those inside written twice")
			}
			t.row = append(t.row, line[i:i+k]...)
			i += k
		}
		t.ends = append(t.ends, len(t.row))
		if i == len(line) {
			break
		}
		i++ // the delimiter
	}
	from := 0
	for _, end := range t.ends { // only now, because appending may have moved row
		t.fields = append(t.fields, t.row[from:end])
		from = end
	}
	return nil
}

// unquote appends the text of a quoted field to row, starting at line[i], just after the opening quote. It returns the
// line that holds the closing quote and the index after that quote.
func (t *Table) unquote(line []byte, i int) ([]byte, int, error) {
	first, opened := t.lines.Line(), i-1
	for {
		k := bytes.IndexByte(line[i:], '"')
		if k < 0 {
			if !t.breaks {
				return nil, 0, t.FaultIn("", string(line[opened:]), "a closing quote in the same line")
			}
			t.row = append(t.row, line[i:]...)
			if t.lines.CRLF() {
				t.row = append(t.row, '\r')
			}
			t.row = append(t.row, '\n')
			if len(t.row) > MaxLine {
				return nil, 0, t.FaultIn("", string(t.row[:40]),
					fmt.Sprintf("a row of at most %d bytes (a quote opened in line %d is not closed)", MaxLine, first))
			}
			var err error
			if line, err = t.lines.Next(); err == io.EOF {
				return nil, 0, t.FaultIn("", "the end of the file",
					fmt.Sprintf("a closing quote for the one opened in line %d", first))
			} else if err != nil {
				return nil, 0, err
			}
			i = 0
			continue
		}
		t.row = append(t.row, line[i:i+k]...)
		i += k + 1
		if i == len(line) || line[i] != '"' {
			return line, i, nil
		}
		t.row = append(t.row, '"')
		i++
	}
}

// named returns the delimiter in words.
func (t *Table) named() string {
	switch t.delimiter {
	case ',':
		return "a comma"
	case ';':
		return "a semicolon"
	case '\t':
		return "a tab"
	}
	return fmt.Sprintf("a %q", t.delimiter)
}
