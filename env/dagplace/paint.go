package dagplace

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"clustergym/env"
	"clustergym/env/paint"
	"clustergym/env/sched"
)

var _ env.Painter = (*Env)(nil)

// FrameRate implements env.Painter.
func (e *Env) FrameRate() int { return sched.FrameRate }

// Paint implements env.Painter: a Gantt chart of the plan so far, a row for each GPU, with frames where the next task
// could go.
func (e *Env) Paint(dst *image.RGBA) error {
	return e.shell.Paint(dst, func(c *paint.Canvas) { e.chart(c) })
}

// gantt is where the chart is in the picture.
type gantt struct {
	c      *paint.Canvas
	area   image.Rectangle
	end    float64 // seconds at the right edge
	height float64 // of a row, in pixels; below 1 if several GPUs share one
}

// The edges of the chart in pixels.
const (
	chartLeft   = 70
	chartTop    = paint.HeadHeight + 2*paint.LineHeight + 6
	chartBottom = env.FrameHeight - 2*paint.LineHeight - 8
	tallestRow  = 40
)

func (e *Env) chart(c *paint.Canvas) {
	p := e.ep
	b := p.b
	next, gpus := b.Task(), b.q.Procs()
	more := fmt.Sprintf("seed %d  makespan %.4g s", e.shell.Episode().Seed, b.Makespan())
	if next < 0 {
		more = "plan complete  " + more
	}
	second := fmt.Sprintf("%d of %d tasks placed on %d GPUs", b.Done(), b.q.Tasks(), gpus)
	if next >= 0 {
		second += fmt.Sprintf(". Next: task %s, which needs %d", paint.Cut(b.q.Graph.Task(next).ID, 20),
			len(b.q.Graph.Preds(next)))
		if len(b.q.Graph.Preds(next)) == 1 {
			second += " other"
		} else {
			second += " others"
		}
	}
	c.Head(ID, more, second)

	g := gantt{c: c, area: image.Rect(chartLeft, chartTop, env.FrameWidth-paint.Margin, chartBottom)}
	g.end = max(b.Makespan(), p.leader, p.current)
	if next >= 0 {
		for _, f := range b.Finish() {
			if !math.IsInf(f, 1) {
				g.end = max(g.end, f)
			}
		}
	}
	if g.end *= 1.02; !(g.end > 0) {
		g.end = 1
	}
	g.height = min(float64(g.area.Dy())/float64(gpus), tallestRow)
	g.axis()
	text := "a row = a GPU, a bar = a task"
	if g.height < 1 {
		text = fmt.Sprintf("a row = %d GPUs, a bar = a task", int(math.Ceil(1/g.height)))
	}
	if next >= 0 {
		text += ", a frame = where the next task would run"
	}
	c.Caption(paint.HeadHeight+2, text)
	if g.height >= 1 {
		for i := 0; i < gpus; i += int(math.Ceil(paint.LineHeight / g.height)) {
			c.Text(paint.Margin, int(float64(g.area.Min.Y)+(float64(i)+0.5)*g.height)-paint.LineHeight/2,
				paint.Cut(b.q.Platform.Processor(i).ID, (chartLeft-paint.Margin)/paint.CharWidth), paint.Muted)
		}
	}
	plan := b.Plan()
	for _, i := range b.order[:b.next] {
		r := g.bar(int(plan.Proc[i]), plan.Start[i], plan.Finish[i])
		c.Rect(r, paint.Colour(int(i)))
		id := b.q.Graph.Task(i).ID
		if r.Dy() >= paint.LineHeight-2 && r.Dx() >= paint.CharWidth*len(id)+2 {
			c.Text(r.Min.X+2, r.Min.Y+(r.Dy()-paint.LineHeight)/2, id, paint.Over(paint.Colour(int(i))))
		}
	}
	if next >= 0 {
		for at, f := range b.Finish() {
			if math.IsInf(f, 1) {
				continue
			}
			if r := g.bar(at, f-b.q.Exec(next, int32(at)), f); r.Dy() >= 4 {
				c.Outline(r, 2, paint.Accent)
			} else {
				c.Rect(r, paint.Accent)
			}
		}
	}
	y := chartBottom + paint.LineHeight + 2
	g.upright(p.leader, paint.Good)
	g.upright(p.current, paint.Bad)
	g.upright(b.Makespan(), paint.Ink)
	c.Legend(y, 1, "lines:", []paint.Key{
		{Colour: paint.Ink, Text: fmt.Sprintf("this plan %.4g s", b.Makespan())},
		{Colour: paint.Good, Text: fmt.Sprintf("HEFT %.4g s", p.leader)},
		{Colour: paint.Bad, Text: fmt.Sprintf("plan to be improved %.4g s", p.current)},
	}, 3)
}

// at returns the pixel of a time.
func (g *gantt) at(t float64) int {
	return g.area.Min.X + int(math.Round(t/g.end*float64(g.area.Dx())))
}

// bar returns where a task stands that runs on a GPU from one time to another.
func (g *gantt) bar(gpu int, from, to float64) image.Rectangle {
	y := float64(g.area.Min.Y) + float64(gpu)*g.height
	top, bottom := int(y), int(y+g.height)
	if bottom-top >= 4 {
		bottom--
	}
	return image.Rect(g.at(from), top, max(g.at(to), g.at(from)+1), max(bottom, top+1))
}

// axis draws the times.
func (g *gantt) axis() {
	step := paint.Step(g.end, 8)
	for k := 0; float64(k)*step <= g.end; k++ {
		x := g.at(float64(k) * step)
		g.c.Box(x, g.area.Min.Y, 1, g.area.Dy(), paint.Rule)
		text := fmt.Sprintf("%.4g", float64(k)*step)
		if k == 0 {
			text = "0 s"
		}
		g.c.Text(x-len(text)*paint.CharWidth/2, chartBottom+1, text, paint.Muted)
	}
}

// upright draws a vertical line at a time.
func (g *gantt) upright(t float64, ink color.RGBA) {
	g.c.Box(g.at(t)-1, g.area.Min.Y-4, 2, g.area.Dy()+6, ink)
}
