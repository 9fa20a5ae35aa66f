package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/nets/kernel"
	"clustergym/nets/layer"
	"clustergym/nets/op"
)

// KindAttention is the kind of network that Attention describes.
const KindAttention = "attention"

// Attention describes a transformer over the rows of the observation (Vaswani et al. 2017, arXiv 1706.03762, sec. 3,
// encoder; with the layer norm before each part, Xiong et al. 2020, arXiv 2002.04745).
//
// Its tokens are the rows of tables, that is fields [rows, columns] that say which rows are filled (Field.Filled) or
// that Slots names; the groups of columns of images (Field.Group), such as machines; and one token of everything else,
// with the number of live tokens of each field. Rows of one field are embedded with the same weights and have no
// positions, so the network is equivariant under permutations of a field's rows. Rows that are empty are neither
// computed, attended to nor pooled. The trunk is the last token and the mean of all, after the layers. With heads slots
// and each the number of weights depends neither on the numbers of rows nor on that of groups: a network fits every
// queue and every cluster whose rows and groups are as wide.
type Attention struct {
	Width  int `yaml:"width"`  // of a token; 0 = 64
	Heads  int `yaml:"heads"`  // of attention, which divide Width; 0 = 4
	Layers int `yaml:"layers"` // of attention and feed-forward; 0 = 2
	Feed   int `yaml:"feed"`   // width of the hidden layer of a feed-forward part; 0 = twice Width
	// Slots are the tables whose rows the actions stand for, in the order of the actions (heads slots and each). Empty =
	// the only table that has as many rows as there are such actions.
	Slots []string `yaml:"slots,flow,omitempty"`
	// Fields are the fields that the network sees; empty = all.
	Fields []string `yaml:"fields,flow,omitempty"`
}

// IsZero reports whether everything has its default.
func (a Attention) IsZero() bool {
	return a.Width == 0 && a.Heads == 0 && a.Layers == 0 && a.Feed == 0 && len(a.Slots) == 0 && len(a.Fields) == 0
}

// maxLayers is far above what is useful.
const maxLayers = 64

// full returns a with the defaults in place of zeros.
func (a Attention) full() Attention {
	or := func(x *int, def int) {
		if *x == 0 {
			*x = def
		}
	}
	or(&a.Width, 64)
	or(&a.Heads, 4)
	or(&a.Layers, 2)
	or(&a.Feed, 2*a.Width)
	return a
}

func (a Attention) check(l *fault.List) {
	a = a.full()
	l.Add(a.Width > 0 && a.Width <= maxWidth, "attention.width", a.Width, wantWidth)
	l.Add(a.Heads > 0 && (a.Width < 1 || a.Width%a.Heads == 0), "attention.heads", a.Heads,
		fmt.Sprintf("a number that divides attention.width, %d", a.Width))
	l.Add(a.Layers > 0 && a.Layers <= maxLayers, "attention.layers", a.Layers,
		fmt.Sprintf("a number from 1 to %d", maxLayers))
	l.Add(a.Feed > 0 && a.Feed <= maxWidth, "attention.feed", a.Feed, wantWidth)
	for _, k := range []struct {
		key   string
		names []string
	}{{"slots", a.Slots}, {"fields", a.Fields}} {
		for i, name := range k.names {
			l.Add(name != "" && !slices.Contains(k.names[:i], name), fmt.Sprintf("attention.%s[%d]", k.key, i), name,
				"the name of a field, each once")
		}
	}
	if len(a.Fields) > 0 {
		for i, name := range a.Slots {
			l.Add(slices.Contains(a.Fields, name), fmt.Sprintf("attention.slots[%d]", i), name, "one of attention.fields")
		}
	}
}

// part is a field whose rows or groups are tokens.
type part struct {
	field    Field
	from, to int // columns of the observation
	tokens   int
	group    bool // groups of an image's columns
}

// parts divides the observation: those of the actions first, then other tables and images, and the columns of
// everything else.
func (b *builder) parts() (parts []part, rest [][2]int) {
	cfg := b.cfg.Attention
	for i, name := range cfg.Slots {
		b.faults.Add(b.find(name) >= 0, fmt.Sprintf("attention.slots[%d]", i), name, fmt.Sprintf("one of %v", b.names()))
	}
	for i, name := range cfg.Fields {
		b.faults.Add(b.find(name) >= 0, fmt.Sprintf("attention.fields[%d]", i), name, fmt.Sprintf("one of %v", b.names()))
	}
	at := 0
	var slots []part
	for _, f := range b.in {
		p := part{field: f, from: at, to: at + f.Size()}
		at = p.to
		isSlot := slices.Contains(cfg.Slots, f.Name)
		table := len(f.Shape) == 2 && f.Group == 0
		switch {
		case len(cfg.Fields) > 0 && !slices.Contains(cfg.Fields, f.Name):
		case isSlot && !table:
			b.faults.Add(false, "attention.slots", f.Name,
				fmt.Sprintf("tables [rows, columns]; the shape of this field is %v", f.Shape))
		case table && (isSlot || f.Filled > 0):
			p.tokens = f.Shape[0]
			if isSlot {
				slots = append(slots, p)
			} else {
				parts = append(parts, p)
			}
		case len(f.Shape) == 2 && f.Group > 0 && f.Shape[1]%f.Group == 0:
			p.tokens, p.group = f.Shape[1]/f.Group, true
			parts = append(parts, p)
		default:
			rest = append(rest, [2]int{p.from, p.to})
		}
	}
	if b.cfg.slotted() && b.faults.Err() == nil {
		slots, parts = b.slotParts(slots, parts)
	}
	slices.SortStableFunc(slots, func(x, y part) int {
		return slices.Index(cfg.Slots, x.field.Name) - slices.Index(cfg.Slots, y.field.Name)
	})
	return append(slots, parts...), rest
}

// slotParts checks the tables of the actions, or finds the only one that it can be and takes it out of parts.
func (b *builder) slotParts(slots, parts []part) (of, others []part) {
	want, rows := b.slots(), 0
	if len(slots) == 0 {
		var names []string
		for i, p := range parts {
			if !p.group && p.tokens == want {
				names = append(names, p.field.Name)
				of, others = []part{p}, slices.Delete(slices.Clone(parts), i, i+1)
			}
		}
		if len(names) != 1 {
			which := "none has"
			if len(names) > 1 {
				which = strings.Join(names, ", ") + " have"
			}
			b.faults.Add(false, "attention.slots", "nothing",
				fmt.Sprintf("the tables whose rows the actions stand for: %s as many rows as there are such actions, %d", which,
					want))
		}
		return of, others
	}
	for _, p := range slots {
		rows += p.tokens
	}
	b.faults.Add(rows == want, "attention.slots", fmt.Sprint(b.cfg.Attention.Slots),
		fmt.Sprintf("tables with %d rows in all, one for each action that stands for a row; these have %d", want, rows))
	return slots, parts
}

// attention adds the transformer below the heads.
func (b *builder) attention(prefix string) body {
	cfg := b.cfg.Attention.full()
	parts, rest := b.parts()
	b.faults.Add(len(parts) > 0 || b.faults.Err() != nil, "kind", KindAttention,
		"another kind: no field of the observation is a table with rows that may be empty or an image with groups of columns")
	if b.faults.Err() != nil {
		return body{}
	}
	t, h := 1, cfg.Width
	var tables []kernel.Table
	var rows []int
	for _, p := range parts {
		tab := kernel.Table{Rows: p.tokens}
		if !p.group {
			tab.At, tab.Columns, tab.Filled = p.from, p.field.Shape[1], p.field.Filled
		}
		tables, rows = append(tables, tab), append(rows, p.tokens)
		t += p.tokens
	}
	if b.live == 0 { // actor and critic share it
		b.live = b.value(1+t, &LiveRows{tables, t})
	}
	live := b.live
	// The first token: what has no rows, and how many rows of each field are live.
	others := []int{b.value(len(rows), &FillLive{live, rows, t})}
	for _, c := range rest {
		others = append(others, b.columns(c[0], c[1]))
	}
	embedded := []int{b.dense(prefix+"embed.global", b.concat(1, others), 1, h, 1, true, op.Identity)}
	for _, p := range parts {
		embedded = append(embedded, b.embed(prefix+"embed."+p.field.Name, p, h))
	}
	x := b.value(t*h, &Pack{live, embedded, append([]int{1}, rows...), t, h})
	b.keep("x", x)
	residual := 1 / math.Sqrt(2*float64(cfg.Layers)) // so that the sum over all layers has the variance of one
	for i := range cfg.Layers {
		name := fmt.Sprintf("%sattention.%d", prefix, i)
		y := b.keep("y", b.normLive(name+".norm", x, live, t, h))
		qkv := b.keep("qkv", b.denseLive(name+".qkv", y, live, t, 3*h, 1, op.Identity))
		y = b.keep("y", b.value(t*h, &Attend{qkv, live, t, h, cfg.Heads}))
		y = b.keep("change", b.denseLive(name+".out", y, live, t, h, residual, op.Identity))
		x = b.keep("x", b.addLive(x, y, live, t, h))
		y = b.keep("y", b.normLive(name+".feed.norm", x, live, t, h))
		y = b.keep("wide", b.denseLive(name+".feed.0", y, live, t, cfg.Feed, layer.GainHidden, b.cfg.act()))
		y = b.keep("change", b.denseLive(name+".feed.1", y, live, t, h, residual, op.Identity))
		x = b.keep("x", b.addLive(x, y, live, t, h))
	}
	y := b.keep("y", b.normLive(prefix+"attention.norm", x, live, t, h))
	var r body
	if b.cfg.slotted() {
		k := b.slots()
		slots := b.value(k*h, &Unpack{In: y, Live: live, From: 1, Rows: k, All: t, Columns: h})
		r.tables = []slotTable{{v: slots, rows: k}}
	}
	pooled := b.value(2*h, &PoolLive{y, live, t, h})
	r.trunk = b.hidden(prefix, pooled)
	return r
}

// embed adds the linear map of a field's rows or groups to tokens of width h.
func (b *builder) embed(name string, p part, h int) int {
	if !p.group {
		return b.dense(name, b.columns(p.from, p.to), p.tokens, h, 1, true, op.Identity)
	}
	kernel := [2]int{p.field.Shape[0], p.field.Group}
	g := op.Geometry{Kernel: kernel, Stride: kernel}.Conv(p.field.Shape[0], p.field.Shape[1], 1)
	w := b.param(name+".weight", b.weights(1), g.KH, g.KW, g.C, h)
	bias := b.param(name+".bias", b.biases(g.KH*g.KW*g.C), h)
	in, from := 0, p.from
	if g.Tiles() {
		in, from = b.columns(p.from, p.to), 0
	} else {
		g.Apart = b.width[0]
	}
	return b.value(p.tokens*h, &Convolution{in, from, w, bias, h, g, op.Identity})
}

// denseLive is dense with a bias over the live ones of t rows.
func (b *builder) denseLive(name string, in, live, t, n int, gain float64, act op.Act) int {
	w, c := b.linear(name, b.width[in]/t, n, gain, true)
	return b.value(t*n, &Dense{in, w, c, t, act, live})
}

func (b *builder) normLive(name string, in, live, t, h int) int {
	scale, bias := b.param(name+".scale", constant(1), h), b.param(name+".bias", constant(0), h)
	return b.value(t*h, &Norm{In: in, Scale: scale, Bias: bias, Rows: t, Live: live})
}

func (b *builder) addLive(x, y, live, t, h int) int {
	return b.value(t*h, &Add{x, y, live, t})
}

// keep makes forward passes keep the values of one role in the same memory: of the values of a role, only the last is
// still read. It returns v.
func (b *builder) keep(role string, v int) int {
	if first, ok := b.kept[role]; ok {
		b.share(v, first)
		return v
	}
	if b.kept == nil {
		b.kept = map[string]int{}
	}
	b.kept[role] = v
	return v
}
