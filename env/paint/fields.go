package paint

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"

	"clustergym/env"
)

const (
	shortField  = 8  // elements up to which a field's values are written out
	shortHeight = 18 // of such a field, in pixels
	gaugeWidth  = 220
	largestHeat = 36 // pixels of a heat map's cell
	writtenCell = 28 // pixels from which on a cell has its value written in it
)

// Moment returns what stands at the right end of a picture's first line: how the episode has ended, if it has, the
// number of steps taken, and the last reward.
func Moment(ts *env.TimeStep, steps int) string {
	m := fmt.Sprintf("step %d", steps)
	if ts.Kind != env.First {
		m += fmt.Sprintf("  reward %.4g", ts.Reward)
	}
	if ts.Kind.Last() {
		m = strings.ToLower(ts.Kind.String()) + "  " + m
	}
	return m
}

// Values names the values of short fields, for the second line of a head.
func Values(fields []env.Field, values []float32) string {
	var all []string
	for _, f := range fields {
		n := f.Len()
		if n <= shortField {
			f.Unit = ""
			all = append(all, written(&f, values[:n]))
		}
		values = values[n:]
	}
	return strings.Join(all, ", ")
}

// written returns a field's name and values, with their unit.
func written(f *env.Field, v []float32) string {
	var b strings.Builder
	b.WriteString(f.Name)
	for _, x := range v {
		fmt.Fprintf(&b, " %.3f", x)
	}
	if f.Unit != "" && f.Unit != "none" && f.Unit != "1" {
		b.WriteString(" " + f.Unit)
	}
	return b.String()
}

// TimeStep draws an environment that has no drawing of its own from what an agent is given: the time step ts of an
// environment with specification s, of whose episode steps actions have been taken.
func (c *Canvas) TimeStep(s env.Spec, ts *env.TimeStep, steps int) {
	c.Head(s.ID, Moment(ts, steps), "what the agent observes, field by field, and which actions are legal")
	fields, values := s.Obs, ts.Obs
	at := 0
	for i, n := range s.Action.Sizes {
		name := "legal actions"
		if len(s.Action.Sizes) > 1 {
			name = fmt.Sprintf("legal actions of part %d", i)
		}
		legal := make([]float32, n)
		for a, ok := range ts.Mask[at : at+n] {
			if ok {
				legal[a] = 1
			}
		}
		fields = append(fields[:len(fields):len(fields)],
			env.Field{Name: name, Shape: []int{n}, Low: 0, High: 1, Unit: "1 = legal"})
		values = append(values[:len(values):len(values)], legal...)
		at += n
	}
	c.Fields(image.Rect(Margin, HeadHeight+6, env.FrameWidth-Margin, env.FrameHeight-6), fields, values)
}

// Fields draws values, field after field, in r: short fields as numbers, with a gauge between their bounds, and longer
// ones as heat maps. Blue is positive and red negative; of a field that is never negative, the darker, the larger.
func (c *Canvas) Fields(r image.Rectangle, fields []env.Field, values []float32) {
	short, elements := 0, 0.0
	for _, f := range fields {
		if f.Len() <= shortField {
			short++
		} else {
			elements += math.Sqrt(float64(f.Len()))
		}
	}
	left := r.Dy() - short*shortHeight - (len(fields)-short)*(LineHeight+6)
	y := r.Min.Y
	for i, f := range fields {
		n := f.Len()
		v := values[:n]
		values = values[n:]
		if y+shortHeight > r.Max.Y-LineHeight && i < len(fields)-1 {
			c.Text(r.Min.X, y, fmt.Sprintf("and %d more fields", len(fields)-i), Muted)
			return
		}
		if n <= shortField {
			c.short(r, y, &f, v)
			y += shortHeight
			continue
		}
		c.Text(r.Min.X, y, Cut(heading(&f, v), r.Dx()/CharWidth), Ink)
		y += LineHeight
		h := max(4, int(float64(left)*math.Sqrt(float64(n))/elements))
		y += c.heat(image.Rect(r.Min.X, y, r.Max.X, min(y+h, r.Max.Y)), &f, v) + 6
	}
}

// heading names a field, its shape and unit, and what its values are now.
func heading(f *env.Field, v []float32) string {
	var b strings.Builder
	b.WriteString(f.Name + " [")
	for i, d := range f.Shape {
		if i > 0 {
			b.WriteString(" x ")
		}
		fmt.Fprint(&b, d)
	}
	b.WriteString("]")
	if f.Unit != "" && f.Unit != "none" && f.Unit != "1" {
		b.WriteString(" " + f.Unit)
	}
	low, high := v[0], v[0]
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	fmt.Fprintf(&b, ", %.3g to %.3g", low, high)
	return b.String()
}

// short writes a field of few values on one line, with a gauge at its end.
func (c *Canvas) short(r image.Rectangle, y int, f *env.Field, v []float32) {
	c.Text(r.Min.X, y, Cut(written(f, v), (r.Dx()-gaugeWidth)/CharWidth-1), Ink)
	left := r.Max.X - gaugeWidth
	each := gaugeWidth / max(len(v), 1)
	for i, x := range v {
		t, zero := gauge(f, x)
		track := image.Rect(left+i*each, y+2, left+(i+1)*each-3, y+shortHeight-6)
		c.Rect(track, Free)
		from := track.Min.X + int(math.Round(zero*float64(track.Dx())))
		to := track.Min.X + int(math.Round(t*float64(track.Dx())))
		c.Rect(image.Rect(min(from, to), track.Min.Y, max(from, to), track.Max.Y), heatOf(f, x, 1))
		c.Box(to-1, track.Min.Y-1, 3, track.Dy()+2, Ink)
	}
}

// gauge returns where x and 0 are between the bounds of f, from 0 to 1. Without bounds the whole line of numbers is
// squeezed into the gauge.
func gauge(f *env.Field, x float32) (at, zero float64) {
	squeeze := func(v float64) float64 { return math.Min(math.Max(v, 0), 1) }
	low, high := float64(f.Low), float64(f.High)
	if !(high > low) || high-low > 1e30 {
		return squeeze(0.5 + 0.5*float64(x)/(1+math.Abs(float64(x)))), 0.5
	}
	return squeeze((float64(x) - low) / (high - low)), squeeze(-low / (high - low))
}

// heatOf returns the colour of a value of f; most is the largest absolute value in sight, for fields without bounds.
func heatOf(f *env.Field, x, most float32) color.RGBA {
	low, high := f.Low, f.High
	if !(high > low) || high-low > 1e30 {
		low, high = -most, most
		if f.Low >= 0 {
			low = 0
		}
	}
	if low < 0 {
		return Signed(float64(x) / float64(max(-low, high)))
	}
	return Scale(float64(x-low) / float64(high-low))
}

// heat draws the values of f in r and returns the height that it has used. A field of several dimensions keeps its last
// one as columns if that fits; others, and those of one dimension, run on from line to line. If there are more values
// than pixels, a cell shows the one of its values that is largest without its sign.
func (c *Canvas) heat(r image.Rectangle, f *env.Field, v []float32) int {
	if r.Dx() <= 0 || r.Dy() <= 0 {
		return 0
	}
	most := float32(0)
	for _, x := range v {
		most = max(most, x, -x)
	}
	columns, w, h := len(v), 0, 0
	if n := len(f.Shape); n > 1 {
		columns = f.Shape[n-1]
	}
	lines := len(v) / columns
	per := 1 // values of a cell
	if len(f.Shape) > 1 && columns <= r.Dx() && lines <= r.Dy() {
		w, h = min(r.Dx()/columns, 2*largestHeat), min(r.Dy()/lines, largestHeat)
	} else {
		for w = largestHeat; w > 1 && (len(v)+r.Dx()/w-1)/(r.Dx()/w)*w > r.Dy(); {
			w--
		}
		h, columns = w, r.Dx()/w
		per = (len(v) + columns*(r.Dy()/h) - 1) / (columns * (r.Dy() / h))
		lines = ((len(v)+per-1)/per + columns - 1) / columns
	}
	gapX, gapY := 0, 0
	if w >= 4 {
		gapX = 1
	}
	if h >= 4 {
		gapY = 1
	}
	for cell := 0; cell*per < len(v); cell++ {
		x := v[cell*per]
		for _, o := range v[cell*per : min((cell+1)*per, len(v))] {
			if max(o, -o) > max(x, -x) {
				x = o
			}
		}
		at, fill := image.Pt(r.Min.X+cell%columns*w, r.Min.Y+cell/columns*h), heatOf(f, x, most)
		c.Box(at.X, at.Y, w-gapX, h-gapY, fill)
		if w < writtenCell || h < LineHeight {
			continue
		}
		if text := fmt.Sprintf("%.2g", x); len(text)*CharWidth < w {
			c.Text(at.X+(w-gapX-len(text)*CharWidth)/2, at.Y+(h-LineHeight)/2, text, Over(fill))
		}
	}
	return lines * h
}
