package dagjson

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"strconv"

	"clustergym/simulator/dag"
)

// Write writes graph and platform (nil = none) as one line of JSON that a Reader reads back unchanged. Ids that are
// whole numbers are written as numbers.
func Write(w io.Writer, g *dag.Graph, p *dag.Platform) error {
	b := &jsonWriter{w: bufio.NewWriter(w)}
	b.text(`{"name":`)
	b.value(g.Name)
	b.text(`,"tasks":`)
	b.list(g.Len(), func(i int) {
		t := g.Task(int32(i))
		b.text(`{"id":`)
		b.id(t.ID)
		if !math.IsNaN(t.Work) {
			b.text(`,"work":`)
			b.value(t.Work)
		}
		if t.Cost != nil {
			b.text(`,"cost":`)
			b.list(len(t.Cost), func(k int) {
				if math.IsNaN(t.Cost[k]) {
					b.text("null")
				} else {
					b.value(t.Cost[k])
				}
			})
		}
		if t.Types != nil {
			b.text(`,"types":`)
			b.value(t.Types)
		}
		b.text("}")
	})
	b.text(`,"edges":[`)
	first := true
	for i := range int32(g.Len()) {
		for _, s := range g.Succs(i) {
			if !first {
				b.text(",")
			}
			first = false
			b.text("[")
			b.id(g.Task(i).ID)
			b.text(",")
			b.id(g.Task(s.Task).ID)
			b.text(",")
			b.value(s.Bytes)
			b.text("]")
		}
	}
	b.text("]")
	if p != nil {
		b.platform(p)
	}
	b.text("}\n")
	if b.err != nil {
		return b.err
	}
	return b.w.Flush()
}

type jsonWriter struct {
	w   *bufio.Writer
	err error
}

func (b *jsonWriter) text(s string) {
	if b.err == nil {
		_, b.err = b.w.WriteString(s)
	}
}

// list writes a list of n elements, each of which element writes.
func (b *jsonWriter) list(n int, element func(i int)) {
	b.text("[")
	for i := range n {
		if i > 0 {
			b.text(",")
		}
		element(i)
	}
	b.text("]")
}

func (b *jsonWriter) value(v any) {
	text, err := json.Marshal(v)
	if err != nil && b.err == nil {
		b.err = err
	}
	b.text(string(text))
}

// id writes a whole number as a JSON number if that is spelt the same, and everything else as a string.
func (b *jsonWriter) id(s string) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		b.text(s)
		return
	}
	b.value(s)
}

func (b *jsonWriter) platform(p *dag.Platform) {
	m := p.Len()
	b.text(`,"processors":`)
	b.list(m, func(g int) {
		c := p.Processor(g)
		b.text(`{"id":`)
		b.id(c.ID)
		b.text(`,"speed":`)
		b.value(c.Speed)
		if c.Type != "" {
			b.text(`,"type":`)
			b.value(c.Type)
		}
		b.text("}")
	})
	switch {
	case p.Linked():
		b.text(`,"bandwidth":`)
		b.list(m, func(g int) {
			b.list(m, func(h int) {
				if g == h {
					b.text("0")
				} else {
					b.value(p.Bandwidth(g, h))
				}
			})
		})
	case m > 1 && !math.IsInf(p.Bandwidth(0, 1), 1):
		b.text(`,"bandwidth":`)
		b.value(p.Bandwidth(0, 1))
	}
}
