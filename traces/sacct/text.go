package sacct

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"clustergym/traces"
)

// AsText returns the file in r as sacct -P prints it. Every document of sacct --json in it, at its beginning or behind
// others and behind rows, becomes a header and rows, with times as seconds since 1970 and the columns that NewReader
// reads; in names of jobs, vertical bars and line breaks become blanks. A document is also a list of documents, or of
// jobs, or a job on a line of its own, as jq makes them. Rows stay as they are. Messages of sacct, which stand among
// its rows if its standard error went into the same file, become empty lines, and those of errors are a fault, because
// then jobs may lack. It holds one job in memory. A fault is a *traces.RowError of file, whose lines are those of the
// result.
func AsText(r io.Reader, file string) io.Reader {
	return &asText{src: &source{r: r}, file: file, start: true}
}

type asText struct {
	src   *source
	file  string
	start bool // of a line
	line  int  // lines in out so far
	json  *documents
	out   bytes.Buffer
	err   error
}

// Read implements io.Reader.
func (t *asText) Read(p []byte) (int, error) {
	for t.out.Len() == 0 && t.err == nil {
		t.err = t.next()
	}
	if t.out.Len() > 0 {
		return t.out.Read(p)
	}
	return 0, t.err
}

// next writes at most a line.
func (t *asText) next() error {
	if t.json == nil && t.start {
		if bytes.HasPrefix(t.src.peek(len(mark)), []byte(mark)) {
			t.src.take(len(mark))
		}
		if document(t.src.peek(128)) {
			t.json = newDocuments(t)
			t.out.WriteString(jsonColumns)
			t.line++
			return nil
		}
	}
	if t.json != nil {
		err := t.json.next()
		if err == io.EOF {
			t.json = nil
			return nil
		}
		return err
	}
	b, err := t.src.line()
	if err != nil {
		return err
	}
	if t.start && message(b) {
		if fails(b) {
			return &traces.RowError{File: t.file, Line: t.line + 1,
				Says: fmt.Sprintf("sacct says that it failed, so jobs may lack: %.300q; want its output alone and whole",
					bytes.TrimSpace(b))}
		}
		b = []byte{'\n'}
	}
	t.start = b[len(b)-1] == '\n'
	if t.start {
		t.line++
	}
	t.out.Write(b)
	return nil
}

// mark is the byte order mark with which some programs begin a file.
const mark = "\xef\xbb\xbf"

// document reports whether head, at the beginning of a line, begins with a JSON object or a list.
func document(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	next := bytes.TrimLeft(head[1:], " \t\r\n")
	return len(next) == 0 || strings.IndexByte(`"{[]}`, next[0]) >= 0
}

// message reports whether a line is one of sacct's own, as it writes them on standard error.
func message(line []byte) bool {
	return bytes.HasPrefix(line, []byte("sacct: ")) || bytes.HasPrefix(line, []byte("slurm_load"))
}

func fails(message []byte) bool {
	return bytes.Contains(message, []byte("error")) || bytes.Contains(message, []byte("fatal"))
}

// part is the rows under one header. It ends before the next header, which a file that was joined of several has.
type part struct {
	of     *parts
	header []byte
	apart  string // between the fields, if that is more than a byte
	line   []byte // what is left of the line read last
	err    error
}

// parts divides a file at its headers.
type parts struct {
	src    *source
	o      Options
	lines  int    // read so far
	header []byte // of the next part, nil = none
	start  bool   // of a line
}

func newParts(r io.Reader, o Options) *parts {
	return &parts{src: &source{r: r}, o: o, start: true}
}

// next returns the next part and how many lines there are before it, io.EOF after the last. The part before must have
// been read to its end. The first part of an empty file is empty.
func (p *parts) next() (*part, int, error) {
	if p.header == nil && p.lines > 0 {
		return nil, 0, io.EOF
	}
	before := max(0, p.lines-1)
	if p.header == nil {
		for len(bytes.TrimSpace(p.header)) == 0 {
			line, err := p.src.line()
			if err == io.EOF {
				p.lines = max(1, p.lines)
				return &part{of: p, err: io.EOF}, 0, nil
			} else if err != nil {
				return nil, 0, err
			}
			before = p.lines
			p.lines++
			p.header = bytes.Clone(line)
		}
		p.start = p.header[len(p.header)-1] == '\n'
	}
	h := &part{of: p, header: p.header, line: p.header}
	if by := p.o.between(p.header); len(by) > 1 {
		h.apart = by
		h.line = h.translated(p.header)
	}
	p.header = nil
	return h, before, nil
}

// Read implements io.Reader.
func (h *part) Read(b []byte) (int, error) {
	for len(h.line) == 0 && h.err == nil {
		h.err = h.next()
	}
	if len(h.line) > 0 {
		n := copy(b, h.line)
		h.line = h.line[n:]
		return n, nil
	}
	return 0, h.err
}

func (h *part) next() error {
	p := h.of
	line, err := p.src.line()
	if err != nil {
		return err
	}
	if p.start {
		p.lines++
	}
	if p.start && p.o.again(line) {
		if !bytes.Equal(bytes.TrimSpace(line), bytes.TrimSpace(h.header)) {
			p.header = bytes.Clone(line)
			return io.EOF
		}
		line = []byte{'\n'} // the same header once more
	}
	p.start = line[len(line)-1] == '\n'
	h.line = line
	if h.apart != "" {
		h.line = h.translated(line)
	}
	return nil
}

// single stands between fields in place of what is more than a byte.
const single = '\x1f'

func (h *part) translated(line []byte) []byte {
	line = bytes.ReplaceAll(line, []byte{single}, []byte{' '})
	return bytes.ReplaceAll(line, []byte(h.apart), []byte{single})
}

// Renamed returns a table of AsText with other names in each of its headers.
func Renamed(r io.Reader, as map[string]string) io.Reader {
	return &renamed{parts: newParts(r, Options{}), as: as}
}

type renamed struct {
	parts *parts
	as    map[string]string
	line  []byte
	part  *part
}

// Read implements io.Reader.
func (n *renamed) Read(b []byte) (int, error) {
	for {
		if len(n.line) > 0 {
			k := copy(b, n.line)
			n.line = n.line[k:]
			return k, nil
		}
		if n.part != nil {
			if k, err := n.part.Read(b); k > 0 || err != io.EOF {
				return k, err
			}
		}
		part, _, err := n.parts.next()
		if err != nil {
			return 0, err
		}
		by := (&Options{}).between(part.header)
		n.part, part.line, part.apart = part, nil, "" // the header is written here, and fields stay apart as they are
		var names []string
		for name := range strings.SplitSeq(string(part.header), by) {
			bare := strings.Trim(name, " \r\n\"")
			for old, other := range n.as {
				if strings.EqualFold(bare, old) {
					name = strings.Replace(name, bare, other, 1)
					break
				}
			}
			names = append(names, name)
		}
		n.line = []byte(strings.Join(names, by))
	}
}
