package csv

import (
	"bytes"
	"fmt"
	"io"

	"clustergym/traces"
)

// splitter cuts a file into rows of fields. The fields are valid until the next row.
type splitter struct {
	lines  *traces.Lines
	fields [][]byte
	row    []byte // fields of a row with quotes, without the quotes
	ends   []int  // of each field in row
}

// next reads one row; empty lines between rows are passed over. io.EOF at the end.
func (s *splitter) next() error {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = s.lines.Next(); err != nil {
			return err
		}
	}
	s.fields = s.fields[:0]
	if bytes.IndexByte(line, '"') >= 0 {
		return s.quoted(line)
	}
	for {
		i := bytes.IndexByte(line, ',')
		if i < 0 {
			break
		}
		s.fields = append(s.fields, line[:i])
		line = line[i+1:]
	}
	s.fields = append(s.fields, line)
	return nil
}

// quoted cuts a row with quotes in it (RFC 4180, section 2, rules 5 to 7), which may go on over several lines.
func (s *splitter) quoted(line []byte) error {
	s.row, s.ends = s.row[:0], s.ends[:0]
	for i := 0; ; {
		if i < len(line) && line[i] == '"' {
			first := s.lines.Line()
			i++
			for {
				k := bytes.IndexByte(line[i:], '"')
				if k < 0 {
					s.row = append(s.row, line[i:]...)
					if s.lines.CRLF() {
						s.row = append(s.row, '\r')
					}
					s.row = append(s.row, '\n')
					if len(s.row) > traces.MaxLine {
						return s.lines.Fault("", string(s.row[:40]), fmt.Sprintf("a row of at most %d bytes (a quote opened in line %d is not closed)", traces.MaxLine, first))
					}
					var err error
					if line, err = s.lines.Next(); err == io.EOF {
						return s.lines.Fault("", "the end of the file", fmt.Sprintf(`a closing quote for the one opened in line %d`, first))
					} else if err != nil {
						return err
					}
					i = 0
					continue
				}
				s.row = append(s.row, line[i:i+k]...)
				i += k + 1
				if i < len(line) && line[i] == '"' {
					s.row = append(s.row, '"')
					i++
					continue
				}
				break
			}
			if i < len(line) && line[i] != ',' {
				return s.lines.Fault("", string(line[i:]), "a comma or the end of the line after a closing quote (a quote inside is written twice)")
			}
		} else {
			k := bytes.IndexByte(line[i:], ',')
			if k < 0 {
				k = len(line) - i
			}
			if bytes.IndexByte(line[i:i+k], '"') >= 0 {
				return s.lines.Fault("", string(line[i:i+k]), "quotes around the whole field, those inside written twice")
			}
			s.row = append(s.row, line[i:i+k]...)
			i += k
		}
		s.ends = append(s.ends, len(s.row))
		if i == len(line) {
			break
		}
		i++ // the comma
	}
	from := 0
	for _, end := range s.ends { // only now, because row may have moved while it grew
		s.fields = append(s.fields, s.row[from:end])
		from = end
	}
	return nil
}
