package texttable

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// Short returns s in at most width characters: a longer one keeps its beginning and its end, with … between.
func Short(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	if width <= 1 {
		return string(r[:max(0, width)])
	}
	head := width / 2
	return string(r[:head]) + "…" + string(r[len(r)-(width-head-1):])
}

// Wrapped breaks the lines of s between words so that none has more than width characters, 0 = any number. What follows
// of a line is indented to the text behind its first two blanks, as under a label, or like the line itself. Only a word
// that is longer than width is broken.
func Wrapped(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	if strings.Contains(s, "\n") {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = Wrapped(l, width)
		}
		return strings.Join(lines, "\n")
	}
	indent := hanging(s)
	if indent > width/2 {
		indent = 0
	}
	first := string([]rune(s)[:indent])
	rest := strings.Split(broken(string([]rune(s)[indent:]), width-indent), "\n")
	return first + strings.Join(rest, "\n"+strings.Repeat(" ", indent))
}

// hanging returns the number of characters up to the text behind a label: behind the first run of two or more blanks,
// or the indentation.
func hanging(s string) int {
	r := []rune(s)
	i := 0
	for i < len(r) && r[i] == ' ' {
		i++
	}
	if at := strings.Index(string(r[i:]), "  "); at >= 0 {
		k := i + utf8.RuneCountInString(string(r[i:])[:at])
		for k < len(r) && r[k] == ' ' {
			k++
		}
		return k
	}
	return i
}

// broken breaks s between words into lines of at most width characters, and words that are longer.
func broken(s string, width int) string {
	width = max(1, width)
	var lines []string
	line, n := "", 0
	for word := range strings.FieldsSeq(s) {
		size := utf8.RuneCountInString(word)
		if n > 0 && n+1+size <= width {
			line, n = line+" "+word, n+1+size
			continue
		}
		if n > 0 {
			lines = append(lines, line)
		}
		r := []rune(word)
		for len(r) > width {
			lines, r = append(lines, string(r[:width])), r[width:]
		}
		line, n = string(r), len(r)
	}
	return strings.Join(append(lines, line), "\n")
}

func longestWord(s string) (n int) {
	for word := range strings.FieldsSeq(s) {
		n = max(n, utf8.RuneCountInString(word))
	}
	return n
}

// Page is a Terminal on which sentences fit as well: it breaks lines that are too long between words. A line that ends
// within a sentence continues on the next one, so that a paragraph stays one. The caller calls Flush at the end.
type Page struct {
	w     io.Writer
	width func() int
	line  []byte // begun
	held  string // the end of a broken line, before the next one
}

// NewPage returns a Page on w. width returns the number of characters in a line, 0 = any number.
func NewPage(w io.Writer, width func() int) *Page { return &Page{w: w, width: width} }

// Width implements Terminal.
func (p *Page) Width() int { return p.width() }

// Write implements io.Writer.
func (p *Page) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	var out strings.Builder
	for {
		i := bytes.IndexByte(p.line, '\n')
		if i < 0 {
			break
		}
		p.add(&out, string(p.line[:i]))
		p.line = p.line[i+1:]
	}
	if _, err := io.WriteString(p.w, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// add appends a whole line to out, or to what is held.
func (p *Page) add(out *strings.Builder, s string) {
	if p.held != "" {
		if s == "" || s[0] == ' ' || strings.Contains(s, "  ") { // no continuation
			out.WriteString(p.held + "\n")
			p.held = ""
		} else {
			s, p.held = p.held+" "+s, ""
		}
	}
	width := p.width()
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		out.WriteString(s + "\n")
		return
	}
	continues := hanging(s) == 0 && !strings.ContainsAny(s[len(s)-1:], ".:;!?")
	s = Wrapped(s, width)
	if last := strings.LastIndexByte(s, '\n'); continues && last >= 0 {
		s, p.held = s[:last], s[last+1:]
	}
	out.WriteString(s + "\n")
}

// Flush writes what has not been written yet.
func (p *Page) Flush() error {
	var out strings.Builder
	if len(p.line) > 0 {
		p.add(&out, string(p.line))
		p.line = nil
	}
	if p.held != "" {
		out.WriteString(p.held + "\n")
		p.held = ""
	}
	_, err := io.WriteString(p.w, out.String())
	return err
}
