package texttable

import "io"

// Sheet is a table with what is said about it.
type Sheet struct {
	Title  string // in a few words
	Header []string
	Rows   [][]string
	Left   int      // columns that are aligned left
	Least  []string // columns that go first where there is little room, the least important one first
	Above  string   // text before the table
	Below  string   // text after the table, with its last newline
}

// WriteSheets writes sheets one below the other.
func WriteSheets(w io.Writer, sheets []Sheet) error {
	for i := range sheets {
		s := &sheets[i]
		above := s.Above
		if above != "" {
			above += "\n"
		}
		if i > 0 {
			above = "\n" + above
		}
		if _, err := io.WriteString(w, above); err != nil {
			return err
		}
		if err := Write(w, s.Header, s.Rows, s.Left, s.Least...); err != nil {
			return err
		}
		if s.Below == "" {
			continue
		}
		if _, err := io.WriteString(w, "\n"+s.Below); err != nil {
			return err
		}
	}
	return nil
}
