package paint

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/font/inconsolata"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"

	"clustergym/env"
)

// The colours that pictures share.
var (
	Paper  = color.RGBA{255, 255, 255, 255}
	Ink    = color.RGBA{33, 37, 41, 255}
	Muted  = color.RGBA{104, 112, 120, 255} // less important text
	Rule   = color.RGBA{222, 226, 230, 255} // lines between parts
	Free   = color.RGBA{238, 241, 243, 255} // a GPU that nobody holds
	Down   = color.RGBA{134, 142, 150, 255} // a GPU of a failed machine
	Good   = color.RGBA{47, 158, 68, 255}
	Bad    = color.RGBA{201, 42, 42, 255}
	Choice = color.RGBA{255, 243, 191, 255} // behind what can be chosen
	Accent = color.RGBA{232, 89, 12, 255}   // around what is being decided
	band   = color.RGBA{241, 243, 245, 255} // behind the head
	frame  = color.RGBA{206, 212, 218, 255} // around a machine
)

// The sizes of text in pixels. All characters of a font have the same width.
const (
	CharWidth   = 7
	LineHeight  = 14
	titleWidth  = 8
	titleHeight = 16
	// Margin is the distance of text from the picture's left and right edges.
	Margin = 10
	// HeadHeight is the height of what Head draws.
	HeadHeight = 50
)

// Canvas is a picture under way. Shapes outside of it are cut off. Not safe for concurrent use.
type Canvas struct {
	img  *image.RGBA
	ink  image.Uniform
	area vector.Rasterizer
}

// On returns a canvas that draws on dst, all of it white. It returns env.ErrFrame for a dst of another size.
func On(dst *image.RGBA) (*Canvas, error) {
	if dst == nil || dst.Rect != image.Rect(0, 0, env.FrameWidth, env.FrameHeight) {
		return nil, env.ErrFrame
	}
	c := &Canvas{img: dst}
	c.Rect(dst.Rect, Paper)
	return c, nil
}

// Rect fills a rectangle.
func (c *Canvas) Rect(r image.Rectangle, fill color.RGBA) {
	r = r.Intersect(c.img.Rect)
	if r.Empty() {
		return
	}
	first := c.img.Pix[c.img.PixOffset(r.Min.X, r.Min.Y):][:4*r.Dx()]
	for i := 0; i < len(first); i += 4 {
		first[i], first[i+1], first[i+2], first[i+3] = fill.R, fill.G, fill.B, fill.A
	}
	for y := r.Min.Y + 1; y < r.Max.Y; y++ {
		copy(c.img.Pix[c.img.PixOffset(r.Min.X, y):], first)
	}
}

// Box fills a rectangle of w by h pixels whose upper left corner is (x, y).
func (c *Canvas) Box(x, y, w, h int, fill color.RGBA) { c.Rect(image.Rect(x, y, x+w, y+h), fill) }

// Outline draws the edge of r, inside it, that many pixels wide.
func (c *Canvas) Outline(r image.Rectangle, width int, line color.RGBA) {
	c.Rect(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+width), line)
	c.Rect(image.Rect(r.Min.X, r.Max.Y-width, r.Max.X, r.Max.Y), line)
	c.Rect(image.Rect(r.Min.X, r.Min.Y, r.Min.X+width, r.Max.Y), line)
	c.Rect(image.Rect(r.Max.X-width, r.Min.Y, r.Max.X, r.Max.Y), line)
}

// Text writes s with the upper left corner at (x, y), in lines of LineHeight.
func (c *Canvas) Text(x, y int, s string, ink color.RGBA) {
	c.write(basicfont.Face7x13, x, y+11, s, ink)
}

// Right writes s so that it ends at x.
func (c *Canvas) Right(x, y int, s string, ink color.RGBA) { c.Text(x-CharWidth*len(s), y, s, ink) }

// Title writes s in larger, bold type.
func (c *Canvas) Title(x, y int, s string, ink color.RGBA) {
	c.write(inconsolata.Bold8x16, x, y+12, s, ink)
}

func (c *Canvas) write(face font.Face, x, base int, s string, ink color.RGBA) {
	c.ink.C = ink
	d := font.Drawer{Dst: c.img, Src: &c.ink, Face: face, Dot: fixed.P(x, base)}
	d.DrawString(s)
}

// Cut returns s, shortened to at most n characters.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n <= 2 {
		return s[:max(n, 0)]
	}
	return s[:n-2] + ".."
}

// Point is a place in the picture; whole numbers are the corners of pixels.
type Point struct{ X, Y float64 }

// Polygon fills the area between points, with smooth edges.
func (c *Canvas) Polygon(fill color.RGBA, points ...Point) {
	if len(points) < 3 {
		return
	}
	low, high := points[0], points[0]
	for _, p := range points {
		// The rasterizer works on the box around the points, so that box must not be much larger than the picture.
		if !(math.Abs(p.X) < 1e4 && math.Abs(p.Y) < 1e4) {
			return
		}
		low.X, low.Y, high.X, high.Y = min(low.X, p.X), min(low.Y, p.Y), max(high.X, p.X), max(high.Y, p.Y)
	}
	r := image.Rect(int(math.Floor(low.X)), int(math.Floor(low.Y)), int(math.Ceil(high.X)), int(math.Ceil(high.Y)))
	seen := r.Intersect(c.img.Rect)
	if seen.Empty() {
		return
	}
	// Only what is seen is rasterized. Left of it the rasterizer needs the edges, which it clamps itself.
	c.area.Reset(seen.Dx(), seen.Dy())
	c.area.DrawOp = draw.Over
	at := func(p Point) (float32, float32) {
		return float32(p.X - float64(seen.Min.X)), float32(p.Y - float64(seen.Min.Y))
	}
	c.area.MoveTo(at(points[0]))
	for _, p := range points[1:] {
		c.area.LineTo(at(p))
	}
	c.area.ClosePath()
	c.ink.C = fill
	c.area.Draw(c.img, seen, &c.ink, image.Point{})
}

// Line draws a straight line of the given width.
func (c *Canvas) Line(from, to Point, width float64, ink color.RGBA) {
	dx, dy := to.X-from.X, to.Y-from.Y
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	ox, oy := -dy/length*width/2, dx/length*width/2
	c.Polygon(ink, Point{from.X + ox, from.Y + oy}, Point{to.X + ox, to.Y + oy}, Point{to.X - ox, to.Y - oy},
		Point{from.X - ox, from.Y - oy})
}

// Disc fills a circle.
func (c *Canvas) Disc(centre Point, radius float64, fill color.RGBA) {
	var points [48]Point
	for i := range points {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(points)))
		points[i] = Point{centre.X + radius*cos, centre.Y + radius*sin}
	}
	c.Polygon(fill, points[:]...)
}

// Head draws what every picture begins with, HeadHeight pixels high: a title, more at the right end of its line, and a
// second line.
func (c *Canvas) Head(title, more, second string) {
	c.Box(0, 0, env.FrameWidth, HeadHeight-4, band)
	c.Box(0, HeadHeight-4, env.FrameWidth, 1, Rule)
	const chars = (env.FrameWidth - 2*Margin) / titleWidth
	title = Cut(title, chars)
	c.Title(Margin, 6, title, Ink)
	if left := chars - len(title) - 2; left > 0 {
		more = Cut(more, left)
		c.Title(env.FrameWidth-Margin-titleWidth*len(more), 6, more, Ink)
	}
	c.Text(Margin, 6+titleHeight+3, Cut(second, Columns), Ink)
}

// FrameRate is that of env.Painter for environments without a drawing of their own.
const FrameRate = 4

// Columns is how many characters of text a line of the picture has.
const Columns = (env.FrameWidth - 2*Margin) / CharWidth

// Gauge writes text at the right end of a line of text, and before it a bar of which the given share is full.
func (c *Canvas) Gauge(y int, s string, share float64) {
	const width = 100
	x := env.FrameWidth - Margin - CharWidth*len(s) - width - 6
	c.Box(x, y+2, width, LineHeight-5, Free)
	c.Box(x, y+2, int(math.Round(width*min(max(share, 0), 1))), LineHeight-5, scaleHigh)
	c.Text(x+width+6, y, s, Ink)
}

// Caption writes the heading of a part of the picture.
func (c *Canvas) Caption(y int, s string) {
	c.Text(Margin, y, Cut(s, Columns), Muted)
}

// Step returns a round number, 1, 2 or 5 times a power of ten, of which at most n fit into length: the distance of an
// axis' marks. It returns 1 for a length that is not above 0 or not finite.
func Step(length float64, n int) float64 {
	if !(length > 0) || math.IsInf(length, 1) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(length/float64(n))))
	for _, k := range [...]float64{1, 2, 5} {
		if length/(k*unit) <= float64(n) {
			return k * unit
		}
	}
	return 10 * unit
}
