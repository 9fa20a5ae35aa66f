package pages

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"strconv"
)

// column is one number of progress.jsonl over the lines that have it.
type column struct {
	x, y []float64 // steps and values; steps never fall
	last bool      // only the last two are kept
}

func (c *column) add(step, v float64) {
	n := len(c.x)
	if n > 0 && step < c.x[n-1] {
		return // a line that was written twice around a crash
	}
	if c.last && n == 2 {
		c.x[0], c.y[0], c.x[1], c.y[1] = c.x[1], c.y[1], step, v
		return
	}
	c.x, c.y = append(c.x, step), append(c.y, v)
}

// shorten keeps the last two.
func (c *column) shorten() {
	n := max(0, len(c.x)-2)
	c.x, c.y, c.last = slices.Clone(c.x[n:]), slices.Clone(c.y[n:]), true
}

// bucketed is a column with at most so many points: each is a number of neighbours with their least, mean and greatest.
type bucketed struct {
	X   []float64 `json:"x"`
	Y   []float64 `json:"y"`
	Low []float64 `json:"low,omitempty"` // missing where every point stands for itself
	Top []float64 `json:"top,omitempty"`
	All int       `json:"all"` // points of the range, before
}

// reduce returns the points with from ≤ x ≤ to and one neighbour on each side, in at most n buckets of equally many
// points. As a spike is the least or the greatest of its bucket, none is lost.
func (c *column) reduce(from, to float64, n int) bucketed {
	a := max(0, sort.SearchFloat64s(c.x, from)-1)
	b := min(len(c.x), sort.Search(len(c.x), func(i int) bool { return c.x[i] > to })+1)
	if b <= a {
		return bucketed{X: []float64{}, Y: []float64{}}
	}
	x, y := c.x[a:b], c.y[a:b]
	out := bucketed{All: len(x)}
	if len(x) <= n {
		out.X, out.Y = x, y
		return out
	}
	for i := range n {
		k, end := i*len(x)/n, (i+1)*len(x)/n
		low, top, mean := math.Inf(1), math.Inf(-1), 0.0
		for _, v := range y[k:end] {
			low, top, mean = min(low, v), max(top, v), mean+v/float64(end-k) // a sum could overflow
		}
		out.X = append(out.X, x[(k+end-1)/2])
		out.Y = append(out.Y, rounded(mean))
		out.Low, out.Top = append(out.Low, low), append(out.Top, top)
	}
	return out
}

// rounded returns v with nine digits, which no page can tell from v.
func rounded(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	p := math.Pow(10, 8-math.Floor(math.Log10(math.Abs(v))))
	if math.IsInf(p, 0) || p == 0 {
		return v
	}
	return math.Round(v*p) / p
}

// numbers calls f for every number of a JSON object, with the keys that lead to it joined by "/", which is valid until
// f returns. It knows no more of JSON than that: a line of progress.jsonl is an object of numbers, texts and objects of
// such. Lists are left out. It is several times as fast as encoding/json, which would take seconds for 100,000 lines.
// ok is false if the line is no such object.
func numbers(line []byte, f func(key []byte, v float64)) (ok bool) {
	s := scanner{b: line, f: f}
	return s.object() && len(bytes.TrimSpace(s.b[s.at:])) == 0
}

type scanner struct {
	b     []byte
	at    int
	path  []byte
	depth int
	f     func(key []byte, v float64)
}

// mostDepth is how deep objects and lists may lie in each other. Stacks of Go are long but end the process.
const mostDepth = 64

func (s *scanner) blank() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\t' || s.b[s.at] == '\r') {
		s.at++
	}
}

func (s *scanner) take(c byte) bool {
	s.blank()
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// text returns the inside of a string as it is written, escapes included.
func (s *scanner) text() ([]byte, bool) {
	if !s.take('"') {
		return nil, false
	}
	from := s.at
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return s.b[from : s.at-1], true
		}
		s.at++
	}
	return nil, false
}

func (s *scanner) object() bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		key, ok := s.text()
		if !ok || !s.take(':') {
			return false
		}
		n := len(s.path)
		if n > 0 {
			s.path = append(s.path, '/')
		}
		s.path = append(s.path, key...)
		if !s.value() {
			return false
		}
		s.path = s.path[:n]
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

func (s *scanner) value() bool {
	s.blank()
	if s.at >= len(s.b) {
		return false
	}
	switch c := s.b[s.at]; {
	case c == '{' || c == '[':
		if s.depth++; s.depth > mostDepth {
			return false
		}
		defer func() { s.depth-- }()
		if c == '[' {
			return s.list()
		}
		return s.object()
	case c == '"':
		_, ok := s.text()
		return ok
	case c == 't' || c == 'n':
		s.at += 4
		return s.at <= len(s.b)
	case c == 'f':
		s.at += 5
		return s.at <= len(s.b)
	}
	from := s.at
	for s.at < len(s.b) && (s.b[s.at] >= '0' && s.b[s.at] <= '9' || bytes.IndexByte([]byte("+-.eE"), s.b[s.at]) >= 0) {
		s.at++
	}
	v, err := strconv.ParseFloat(string(s.b[from:s.at]), 64)
	if err != nil {
		return false
	}
	s.f(s.path, v)
	return true
}

// list skips a list.
func (s *scanner) list() bool {
	f := s.f
	s.f = func([]byte, float64) {}
	defer func() { s.f = f }()
	s.take('[')
	if s.take(']') {
		return true
	}
	for {
		if !s.value() {
			return false
		}
		if s.take(']') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}
