package paint

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"time"

	"clustergym/env"
)

// Waiting is a job in a queue that Canvas.Queue draws.
type Waiting struct {
	Label    string // the action that chooses it, "" = it cannot be chosen
	Name     string
	Colour   color.RGBA // that its GPUs will have
	GPUs     float64
	Estimate time.Duration // of the run time; 0 = unknown
	Waited   time.Duration
	Fits     bool   // it could start now
	Asked    bool   // the decision is about this job
	Note     string // in place of whether it fits
}

// The columns of the queue, in pixels from the left edge.
const (
	labelAt  = Margin
	colourAt = labelAt + 4*CharWidth
	nameAt   = colourAt + 16
	nameLen  = 14 // characters
	gpusEnd  = nameAt + nameLen*CharWidth + 6*CharWidth
	barAt    = gpusEnd + 12
	barEnd   = barAt + 270
	waitEnd  = barEnd + 12*CharWidth
	noteAt   = waitEnd + 2*CharWidth
)

const (
	rowHeight  = 14
	thinHeight = 3 // of a job without text
	axisHeight = 2 * LineHeight
)

// The axis of run times, logarithmic, and the waiting time at which a bar is darkest.
const (
	shortest = 10 * time.Second
	longest  = 30 * 24 * time.Hour
	longWait = 24 * time.Hour
)

var ticks = []struct {
	at   time.Duration
	name string
}{
	{time.Minute, "1min"}, {10 * time.Minute, "10min"}, {time.Hour, "1h"}, {6 * time.Hour, "6h"},
	{24 * time.Hour, "1d"}, {7 * 24 * time.Hour, "1w"},
}

// along returns the place of a run time on the axis.
func along(d time.Duration) int {
	share := math.Log(float64(max(d, shortest))/float64(shortest)) / math.Log(float64(longest)/float64(shortest))
	return barAt + int(math.Round(float64(barEnd-barAt)*min(share, 1)))
}

// shade returns the colour of the bar of a job that has waited for d.
func shade(d time.Duration) color.RGBA {
	// A bar must be seen on white and on the ground of what can be chosen, so it does not begin at the pale end.
	return Scale(0.3 + 0.7*math.Log1p(d.Minutes())/math.Log1p(longWait.Minutes()))
}

// Queue draws waiting jobs between the heights top and bottom, in their order: the first with text, the next as thin
// bars. A bar is as long as the estimated run time, on a logarithmic axis, as thick as the job is large, and the darker
// the longer the job has waited. Jobs that can be chosen have their action before them, and those that fit a coloured
// ground. total is how many jobs wait, listed or not.
func (c *Canvas) Queue(top, bottom int, jobs []Waiting, total int) {
	text := "nothing waits"
	if total > 0 {
		text = fmt.Sprintf("%d waiting: bar = estimated run time (thick: many GPUs; dark: waited long)", total)
	}
	c.Caption(top, text)
	y := top + axisHeight
	if len(jobs) == 0 {
		return
	}
	rows := (bottom - y) / rowHeight
	thin := 0
	if len(jobs) > rows {
		rows = (bottom - y - 2*rowHeight) / rowHeight
		thin = min(len(jobs)-rows, 2*rowHeight/thinHeight)
	}
	rows = min(rows, len(jobs))
	c.axis(top+LineHeight, y+rows*rowHeight+thin*thinHeight)
	for i := range jobs[:rows] {
		c.row(y, &jobs[i])
		y += rowHeight
	}
	y++
	for i := range jobs[rows : rows+thin] {
		j := &jobs[rows+i]
		if j.Label != "" && j.Fits {
			c.Box(labelAt-4, y-1, env.FrameWidth-2*(labelAt-4), thinHeight, Choice)
		}
		c.Box(colourAt, y, 10, thinHeight-1, j.Colour)
		c.Box(barAt, y, max(along(j.Estimate)-barAt, 2), thinHeight-1, shade(j.Waited))
		y += thinHeight
	}
	if rest := total - rows; rest > 0 {
		c.Right(env.FrameWidth-Margin, bottom-LineHeight, fmt.Sprintf("and %d more", rest), Muted)
	}
}

// Key is an entry of a legend.
type Key struct {
	Colour color.RGBA
	Text   string
}

// Legend writes keys in that many lines of text from y on, and before them a word that says what they are. total is how
// many there are, listed or not.
func (c *Canvas) Legend(y, lines int, what string, keys []Key, total int) {
	const swatch, gap = 10, 8
	rest := func(n int) string { return fmt.Sprintf("and %d more", n) }
	right := env.FrameWidth - Margin
	c.Text(Margin, y, what, Muted)
	indent := Margin + CharWidth*(len(what)+1)
	x := indent
	for i, k := range keys {
		w := swatch + 3 + CharWidth*len(k.Text) + gap
		room := right
		if lines == 1 && total > i+1 {
			room -= CharWidth * len(rest(total))
		}
		if x+w-gap > room {
			if lines == 1 || x == indent {
				c.Text(x, y, rest(total-i), Muted)
				return
			}
			x, y, lines = indent, y+LineHeight, lines-1
		}
		c.Box(x, y+2, swatch, swatch, k.Colour)
		c.Text(x+swatch+3, y, k.Text, Ink)
		x += w
	}
	if total > len(keys) {
		c.Text(x, y, rest(total-len(keys)), Muted)
	}
}

// axis writes the names of the columns and the lines of the run times, down to bottom.
func (c *Canvas) axis(y, bottom int) {
	c.Text(nameAt, y, "job", Muted)
	c.Right(gpusEnd, y, "GPUs", Muted)
	c.Right(waitEnd, y, "waited", Muted)
	for _, t := range ticks {
		x := along(t.at)
		c.Box(x, y+LineHeight-1, 1, bottom-y-LineHeight, Rule)
		c.Text(x-len(t.name)*CharWidth/2, y, t.name, Muted)
	}
}

// row draws one job with text.
func (c *Canvas) row(y int, j *Waiting) {
	ink := Ink
	if j.Label == "" && !j.Asked {
		ink = Muted
	}
	ground := image.Rect(labelAt-4, y, env.FrameWidth-labelAt+4, y+rowHeight-1)
	if j.Fits && (j.Label != "" || j.Asked) {
		c.Rect(ground, Choice)
	}
	for _, t := range ticks {
		c.Box(along(t.at), y, 1, rowHeight, Rule)
	}
	c.Right(colourAt-CharWidth, y, Cut(j.Label, 3), ink)
	c.Box(colourAt, y+2, 10, 10, j.Colour)
	c.Text(nameAt, y, Cut(j.Name, nameLen), ink)
	c.Right(gpusEnd, y, Cut(fmt.Sprintf("%.4g", j.GPUs), 6), ink)
	// A GPU is 3 pixels thick, and each doubling 2 more.
	thick := 3 + int(math.Round(2*math.Log2(max(j.GPUs, 1))))
	thick = min(thick, rowHeight-3)
	mid := y + (rowHeight-1)/2
	if j.Estimate > 0 {
		end := max(along(j.Estimate), barAt+2)
		c.Box(barAt, mid-thick/2, end-barAt, thick, shade(j.Waited))
		c.beside(end, y, Span(j.Estimate))
	} else {
		c.Text(barAt, y, "unknown", Muted)
	}
	c.Right(waitEnd, y, Span(j.Waited), ink)
	switch {
	case j.Note != "":
		c.Text(noteAt, y, Cut(j.Note, (env.FrameWidth-noteAt)/CharWidth), ink)
	case j.Fits:
		c.Text(noteAt, y, "fits", Good)
	default:
		c.Text(noteAt, y, "no room", Muted)
	}
	if j.Asked {
		c.Outline(ground, 2, Accent)
	}
}

// beside writes text to the right of a bar that ends at x, or on its end if there is no room.
func (c *Canvas) beside(x, y int, s string) {
	w := len(s)*CharWidth + 4
	if x+w <= barEnd+8 {
		c.Text(x+4, y, s, Ink)
		return
	}
	c.Box(x-w-2, y+1, w, rowHeight-3, Paper)
	c.Text(x-w, y, s, Ink)
}

// Span formats a time for people.
func Span(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 120:
		return fmt.Sprintf("%.0f s", s)
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", s/60)
	case s < 48*3600:
		return fmt.Sprintf("%.1f h", s/3600)
	default:
		return fmt.Sprintf("%.1f d", s/86400)
	}
}
