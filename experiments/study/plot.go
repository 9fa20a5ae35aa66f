package study

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind says how a figure draws its points.
type Kind uint8

// The kinds: points joined by lines, and one row for each point with its interval.
const (
	Lines Kind = iota
	Bars
)

// Figure is a drawing of the results.
type Figure struct {
	Name, Title string // Name is the file's name without .svg
	X, Y        string // titles of the axes; Bars have no Y
	LogX, LogY  bool
	Kind        Kind
	Zero        bool // the axis of values includes 0
	// Ours names what the eye shall find at once: series, or values that are parts of bars' labels. It is drawn in colour
	// with bold names, all else in grey. Without it, series have a colour each.
	Ours []string
	// Sorted sorts the bars of each series by value, the least first, or the greatest with Higher. Of more than 12 bars,
	// the first are drawn and all of ours.
	Sorted, Higher bool
	Series         func(*Results) []Series
}

// mostBars is the number of bars that a figure has at most, unless more are ours.
const mostBars = 12

// isOurs reports whether a series or the label of a bar has one of the names.
func (f *Figure) isOurs(name string) bool {
	if slices.Contains(f.Ours, name) {
		return true
	}
	for part := range strings.SplitSeq(name, " / ") {
		if slices.Contains(f.Ours, part) {
			return true
		}
	}
	return false
}

// few returns the series with their bars sorted and at most mostBars of them, and how many it leaves out.
func (f *Figure) few(series []Series) (out []Series, rest int) {
	n := 0
	for _, s := range series {
		s.Points = slices.Clone(s.Points)
		if f.Sorted {
			slices.SortStableFunc(s.Points, func(a, b Point) int {
				if f.Higher {
					return cmp.Compare(b.X, a.X)
				}
				return cmp.Compare(a.X, b.X)
			})
		}
		n += len(s.Points)
		out = append(out, s)
	}
	// The last of the longest series go first.
	for n > mostBars {
		longest, at := -1, -1
		for i, s := range out {
			last := -1
			for k, p := range s.Points {
				if !f.isOurs(s.Name) && !f.isOurs(p.Label) {
					last = k
				}
			}
			if last >= 0 && (longest < 0 || len(s.Points) > len(out[longest].Points)) {
				longest, at = i, last
			}
		}
		if longest < 0 {
			break
		}
		out[longest].Points = slices.Delete(out[longest].Points, at, at+1)
		n--
		rest++
	}
	return slices.DeleteFunc(out, func(s Series) bool { return len(s.Points) == 0 }), rest
}

// Series are points that belong together.
type Series struct {
	Name   string
	Points []Point
}

// Point is a point with its interval, along y, or along x in Bars. Low and High are NaN if there is no interval.
type Point struct {
	X, Y, Low, High float64
	Label           string // only of Bars
}

// Bars returns a column of a table as one series, with a point for each line for which keep returns true; nil keeps all
// lines.
func (r *Results) Bars(table, column string, keep func(line map[string]string) bool) []Series {
	t := r.Table(table)
	if t == nil {
		return nil
	}
	var s Series
	var kept []Line
	for _, l := range r.lines[table] {
		if keep == nil || keep(l.Labels) {
			kept = append(kept, l)
		}
	}
	// A label that all have in common says nothing.
	var by []string
	for _, b := range t.By {
		if len(kept) < 2 || slices.ContainsFunc(kept, func(l Line) bool { return l.Labels[b] != kept[0].Labels[b] }) {
			by = append(by, b)
		}
	}
	for _, l := range kept {
		if v, _, ok := r.Find(table, l.Labels, column); ok && !math.IsNaN(v.Value) {
			s.Points = append(s.Points, Point{X: v.Value, Low: v.Low, High: v.High, Label: (&Table{By: by}).label(l.Labels)})
		}
	}
	return []Series{s}
}

// Curves returns a column of a table over the label x, whose values are numbers, with a series for each combination of
// the other labels.
func (r *Results) Curves(table, column, x string) []Series {
	t := r.Table(table)
	if t == nil {
		return nil
	}
	var out []Series
	at := map[string]int{}
	for _, l := range r.lines[table] {
		where, err := strconv.ParseFloat(l.Labels[x], 64)
		v, _, ok := r.Find(table, l.Labels, column)
		if err != nil || !ok || math.IsNaN(v.Value) {
			continue
		}
		var words []string
		for _, b := range t.By {
			if b != x {
				words = append(words, l.Labels[b])
			}
		}
		name := strings.Join(words, " / ")
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			out = append(out, Series{Name: name})
		}
		out[i].Points = append(out[i].Points, Point{X: where, Y: v.Value, Low: v.Low, High: v.High})
	}
	return out
}

// palette starts with Okabe and Ito's colours, which people with colour blindness can distinguish, without their
// yellow, which is too pale for lines.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#555555", "#8c510a",
	"#7b3294", "#1b7837"}

// accents are the colours of what is ours, and greys those of all else.
var (
	accents = []string{"#d55e00", "#0072b2", "#009e73", "#7b3294"}
	greys   = []string{"#7d858e", "#a3aab2", "#5f6770"}
)

// colors returns the colour of each series, and whether its name is bold.
func (f *Figure) colors(series []Series) (colors []string, bold []bool) {
	ours, others := 0, 0
	for i, s := range series {
		switch {
		case len(f.Ours) == 0:
			colors = append(colors, palette[i%len(palette)])
		case f.isOurs(s.Name):
			colors = append(colors, accents[ours%len(accents)])
			ours++
		default:
			colors = append(colors, greys[others%len(greys)])
			others++
		}
		bold = append(bold, len(f.Ours) > 0 && f.isOurs(s.Name))
	}
	return colors, bold
}

const font = `font-family="system-ui, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"`

// canvas collects the elements of a drawing.
type canvas struct{ b strings.Builder }

func (c *canvas) line(x1, y1, x2, y2 float64, color string, width float64) {
	fmt.Fprintf(&c.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>`+"\n", x1, y1, x2, y2,
		color, width)
}

func (c *canvas) text(x, y float64, anchor, color string, size int, s string) {
	c.words(x, y, anchor, color, size, false, s)
}

// words is text that can be bold.
func (c *canvas) words(x, y float64, anchor, color string, size int, bold bool, s string) {
	weight := ""
	if bold {
		weight = ` font-weight="700"`
	}
	fmt.Fprintf(&c.b, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" font-size="%d"%s>%s</text>`+"\n",
		x, y, anchor, color, size, weight, html.EscapeString(s))
}

// legend names series i below a drawing of this height.
func (c *canvas) legend(left, height float64, i, across int, color string, bold bool, name string) {
	x, y := left+float64(i%across)*675/float64(across), height+4+float64(i/across)*18
	c.mark(x, y, i, color)
	c.words(x+10, y+4, "start", ink, 12, bold, name)
}

// bar draws a bar in a pale shade of color.
func (c *canvas) bar(x1, x2, y float64, color string) {
	fmt.Fprintf(&c.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="14" fill="%s" fill-opacity="0.28"/>`+"\n", min(x1, x2),
		y-7, max(x1, x2)-min(x1, x2), color)
}

// mark draws a point in one of six shapes, so that series also differ without colour.
func (c *canvas) mark(x, y float64, shape int, color string) {
	switch shape % 6 {
	case 0:
		fmt.Fprintf(&c.b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x, y, color)
	case 1:
		fmt.Fprintf(&c.b, `<rect x="%.1f" y="%.1f" width="6.4" height="6.4" fill="%s"/>`+"\n", x-3.2, y-3.2, color)
	case 2:
		fmt.Fprintf(&c.b, `<path d="M%.1f %.1fl4.2 7.2h-8.4z" fill="%s"/>`+"\n", x, y-4.6, color)
	case 3:
		fmt.Fprintf(&c.b, `<path d="M%.1f %.1fl4.4 4.4l-4.4 4.4l-4.4 -4.4z" fill="%s"/>`+"\n", x, y-4.4, color)
	case 4:
		fmt.Fprintf(&c.b, `<circle cx="%.1f" cy="%.1f" r="3.2" fill="#ffffff" stroke="%s" stroke-width="1.6"/>`+"\n", x, y,
			color)
	default:
		fmt.Fprintf(&c.b, `<rect x="%.1f" y="%.1f" width="6" height="6" fill="#ffffff" stroke="%s" stroke-width="1.6"/>`+"\n",
			x-3, y-3, color)
	}
}

const (
	ink  = "#1b1f24"
	soft = "#5a6472"
	rule = "#e3e6ea"
)

// SVG returns the figure as an SVG document, "" if there is nothing to draw.
func (f *Figure) SVG(r *Results) string {
	var series []Series
	for _, s := range f.Series(r) {
		if len(s.Points) > 0 {
			series = append(series, s)
		}
	}
	if len(series) == 0 {
		return ""
	}
	if f.Kind == Bars {
		return f.bars(series)
	}
	return f.curves(series)
}

// legendOf returns how many names stand in a line of the legend, and its height.
func legendOf(series []Series) (across int, height float64) {
	across = 3
	for _, s := range series {
		if len([]rune(s.Name)) > 30 {
			across = 2
		}
	}
	if len(series) > 1 {
		height = float64((len(series)+across-1)/across)*18 + 6
	}
	return across, height
}

// open starts a drawing with a title and a white background.
func open(width, height float64, title string) *canvas {
	c := new(canvas)
	fmt.Fprintf(&c.b,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" %s>`+"\n",
		width, height, width, height, font)
	fmt.Fprintf(&c.b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&c.b, `<rect width="%.0f" height="%.0f" fill="#ffffff"/>`+"\n", width, height)
	return c
}

// curves draws Lines.
func (f *Figure) curves(series []Series) string {
	const width, height, left, right, top, bottom = 760.0, 430.0, 72.0, 20.0, 40.0, 52.0
	across, legend := legendOf(series)
	var xs, ys []float64
	for _, s := range series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y, p.Low, p.High)
		}
	}
	x := newAxis(xs, f.LogX, false, left, width-right)
	y := newAxis(ys, f.LogY, f.Zero, height-bottom, top)
	c := open(width, height+legend, f.Title)
	c.text(left, 22, "start", ink, 15, f.Title)
	for _, t := range y.ticks {
		c.line(left, y.at(t), width-right, y.at(t), rule, 1)
		c.text(left-8, y.at(t)+4, "end", soft, 12, tick(t))
	}
	for _, t := range x.ticks {
		c.line(x.at(t), height-bottom, x.at(t), height-bottom+5, soft, 1)
		c.text(x.at(t), height-bottom+18, "middle", soft, 12, tick(t))
	}
	c.line(left, height-bottom, width-right, height-bottom, soft, 1)
	c.text((left+width-right)/2, height-12, "middle", ink, 13, f.X)
	fmt.Fprintf(&c.b,
		`<text transform="translate(17 %.1f) rotate(-90)" text-anchor="middle" fill="%s" font-size="13">%s</text>`+"\n",
		(top+height-bottom)/2, ink, html.EscapeString(f.Y))
	colors, bold := f.colors(series)
	var order []int // what is ours is drawn last, over all else
	for _, ours := range []bool{false, true} {
		for i := range series {
			if bold[i] == ours {
				order = append(order, i)
			}
		}
	}
	for _, i := range order {
		s, color, stroke := series[i], colors[i], 1.8
		if bold[i] {
			stroke = 3
		}
		var path strings.Builder
		for k, p := range s.Points {
			fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(k, 1)], x.at(p.X), y.at(p.Y))
		}
		fmt.Fprintf(&c.b, `<path d="%s" fill="none" stroke="%s" stroke-width="%g"/>`+"\n", path.String(), color, stroke)
		for _, p := range s.Points {
			if !math.IsNaN(p.Low) && !math.IsNaN(p.High) && !(f.LogY && p.Low <= 0) {
				c.line(x.at(p.X), y.at(p.Low), x.at(p.X), y.at(p.High), color, 1.2)
			}
			c.mark(x.at(p.X), y.at(p.Y), i, color)
		}
		if len(series) > 1 {
			c.legend(left, height, i, across, color, bold[i], s.Name)
		}
	}
	return c.b.String() + "</svg>\n"
}

// bars draws a row for each point.
func (f *Figure) bars(series []Series) string {
	const width, right, top, bottom, row = 760.0, 24.0, 40.0, 48.0, 22.0
	series, rest := f.few(series)
	var xs []float64
	n, longest := 0, 0
	for _, s := range series {
		for _, p := range s.Points {
			xs = append(xs, p.X, p.Low, p.High)
			longest = max(longest, len([]rune(p.Label)))
			n++
		}
	}
	left := math.Min(380, 24+7.2*float64(longest))
	height := top + bottom + row*float64(n)
	across, legend := legendOf(series)
	x := newAxis(xs, f.LogX, f.Zero, left, width-right)
	c := open(width, height+legend, f.Title)
	c.text(12, 22, "start", ink, 15, f.Title)
	for _, t := range x.ticks {
		color := rule
		if t == 0 {
			color = soft
		}
		c.line(x.at(t), top-4, x.at(t), height-bottom, color, 1)
		c.text(x.at(t), height-bottom+18, "middle", soft, 12, tick(t))
	}
	title := f.X
	if rest > 0 {
		title += fmt.Sprintf(" (%d more in the table)", rest)
	}
	c.text((left+width-right)/2, height-10, "middle", ink, 13, title)
	y := top + row/2
	colors, bold := f.colors(series)
	for i, s := range series {
		for _, p := range s.Points {
			color, ours := colors[i], bold[i]
			if len(f.Ours) > 0 && !ours && f.isOurs(p.Label) {
				color, ours = accents[0], true
			}
			c.words(left-10, y+4, "end", map[bool]string{true: ink, false: soft}[ours || len(f.Ours) == 0], 12, ours, p.Label)
			if f.Zero && !f.LogX {
				c.bar(x.at(0), x.at(p.X), y, color)
			}
			if !math.IsNaN(p.Low) && !math.IsNaN(p.High) && !(f.LogX && p.Low <= 0) {
				c.line(x.at(p.Low), y, x.at(p.High), y, color, 2)
			}
			c.mark(x.at(p.X), y, i, color)
			y += row
		}
		if len(series) > 1 {
			c.legend(left, height, i, across, colors[i], bold[i], s.Name)
		}
	}
	return c.b.String() + "</svg>\n"
}
