package control

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"clustergym/env"
	"clustergym/env/paint"
)

// painted is a problem with a drawing of its own. It draws below the head of the picture.
type painted interface {
	paint(c *paint.Canvas)
}

var _ env.Painter = (*Env)(nil)

// FrameRate implements env.Painter: CartPole-v1 as fast as it is, the others as fast as one can follow.
func (e *Env) FrameRate() int {
	switch e.p.(type) {
	case *cart:
		return int(math.Round(1 / cartTau))
	case *car:
		return 30
	case *robot, *point:
		return 15
	}
	return paint.FrameRate
}

// Paint implements env.Painter. Classic control and Nav2D-v1 have the usual drawings, which may show what the agent
// does not see; of the other problems it shows what the agent observes.
func (e *Env) Paint(dst *image.RGBA) error {
	if e.closed {
		return env.ErrClosed
	}
	if !e.begun {
		return env.ErrResetNeeded
	}
	c, err := paint.On(dst)
	if err != nil {
		return err
	}
	ts := &env.TimeStep{Kind: e.kind, Reward: e.reward, Obs: e.obs, Mask: e.mask}
	p, ok := e.p.(painted)
	if !ok {
		c.TimeStep(e.spec, ts, e.steps)
		return nil
	}
	p.paint(c)
	c.Head(e.spec.ID, paint.Moment(ts, e.steps), paint.Values(e.spec.Obs, e.obs))
	return nil
}

// at is a point of the picture.
func at(x, y float64) paint.Point { return paint.Point{X: x, Y: y} }

// sketch is a problem's own coordinates in the picture: one unit is scale pixels, and (0, 0) is at (x, y). Heights grow
// upwards.
type sketch struct{ x, y, scale float64 }

func (s sketch) at(x, y float64) paint.Point { return at(s.x+x*s.scale, s.y-y*s.scale) }

const middle = env.FrameWidth / 2

// paint draws the track, 2.4 m to either side, the cart, and the pole of 1 m.
func (p *cart) paint(c *paint.Canvas) {
	s := sketch{middle, 360, 125}
	c.Line(at(0, s.y), at(env.FrameWidth, s.y), 2, paint.Muted)
	for _, x := range []float64{-cartXLimit, cartXLimit} {
		c.Line(s.at(x, -0.15), s.at(x, 0.3), 3, paint.Bad)
	}
	c.Line(s.at(0, -0.08), s.at(0, 0), 1, paint.Muted)
	c.Text(int(s.x-cartXLimit*s.scale)-14, int(s.y)+24, "-2.4", paint.Muted)
	c.Text(int(s.x)-3, int(s.y)+24, "0", paint.Muted)
	c.Text(int(s.x+cartXLimit*s.scale)-10, int(s.y)+24, "2.4", paint.Muted)
	left, right := s.at(p.x-0.25, 0.26), s.at(p.x+0.25, 0.04)
	c.Polygon(paint.Ink, left, at(right.X, left.Y), right, at(left.X, right.Y))
	for _, x := range []float64{-0.15, 0.15} {
		c.Disc(s.at(p.x+x, 0.04), 6, paint.Muted)
	}
	sin, cos := math.Sincos(p.angle)
	hinge := s.at(p.x, 0.2)
	tip := s.at(p.x+2*cartHalfLength*sin, 0.2+2*cartHalfLength*cos)
	c.Line(hinge, tip, 12, wood)
	c.Disc(tip, 6, wood)
	c.Disc(hinge, 6, steel)
}

// paint draws the hill, the car on it and the goal.
func (p *car) paint(c *paint.Canvas) {
	s := sketch{middle + 0.3*(env.FrameWidth/1.9), 420, env.FrameWidth / 1.9}
	height := func(x float64) float64 { return 0.36*math.Sin(3*x) + 0.42 }
	ground := []paint.Point{s.at(carLeft-0.05, -1)}
	for x := carLeft - 0.05; x <= carRight+0.06; x += 0.01 {
		ground = append(ground, s.at(x, height(x)))
	}
	c.Polygon(hill, append(ground, s.at(carRight+0.06, -1))...)
	foot := s.at(carGoal, height(carGoal))
	c.Line(foot, at(foot.X, foot.Y-60), 2, paint.Ink)
	c.Polygon(paint.Good, at(foot.X, foot.Y-60), at(foot.X+26, foot.Y-51), at(foot.X, foot.Y-42))

	// The car stands on the slope: along it, and upright to it.
	slope := math.Atan(3 * 0.36 * math.Cos(3*p.x))
	sin, cos := math.Sincos(slope)
	wheel := s.at(p.x, height(p.x))
	on := func(along, up float64) paint.Point {
		return at(wheel.X+along*cos-up*sin, wheel.Y-along*sin-up*cos)
	}
	c.Polygon(paint.Bad, on(-22, 8), on(-22, 20), on(-12, 21), on(-7, 32), on(9, 32), on(14, 21), on(23, 18), on(23, 8))
	c.Disc(on(-13, 7), 7, paint.Ink)
	c.Disc(on(13, 7), 7, paint.Ink)
}

// paint draws the two links and the line that the tip shall reach.
func (p *robot) paint(c *paint.Canvas) {
	s := sketch{middle, 265, 92}
	c.Line(at(0, s.y-s.scale), at(env.FrameWidth, s.y-s.scale), 2, paint.Good)
	c.Text(paint.Margin, int(s.y-s.scale)-paint.LineHeight-2, "the tip shall rise above this line", paint.Good)
	sin1, cos1 := math.Sincos(p.s[0])
	sin2, cos2 := math.Sincos(p.s[0] + p.s[1])
	pivot := s.at(0, 0)
	joint := s.at(sin1, -cos1)
	tip := s.at(sin1+sin2, -cos1-cos2)
	c.Line(pivot, joint, 18, steel)
	c.Line(joint, tip, 18, wood)
	c.Disc(tip, 9, wood)
	for _, j := range []paint.Point{pivot, joint} {
		c.Disc(j, 10, paint.Ink)
		c.Disc(j, 4, paint.Paper)
	}
}

// paint draws the square of possible goals, the goal, which the agent does not see, and the point. A point far outside
// is drawn at the edge.
func (p *point) paint(c *paint.Canvas) {
	const edge = 0.8 // of what is seen, from the middle
	s := sketch{middle, 266, 200 / edge}
	low, high := s.at(-edge, edge), s.at(edge, -edge)
	seen := image.Rect(int(low.X), int(low.Y), int(high.X), int(high.Y))
	low, high = s.at(-navGoal, navGoal), s.at(navGoal, -navGoal)
	c.Rect(image.Rect(int(low.X), int(low.Y), int(high.X), int(high.Y)), paint.Free)
	for k := -5; k <= 5; k++ {
		x := 0.1 * float64(k)
		c.Line(s.at(x, -navGoal), s.at(x, navGoal), 1, paint.Rule)
		c.Line(s.at(-navGoal, x), s.at(navGoal, x), 1, paint.Rule)
	}
	c.Outline(seen, 1, paint.Muted)
	c.Text(int(low.X)+3, int(low.Y)+2, "goals are in here", paint.Muted)
	goal := s.at(p.goalX, p.goalY)
	c.Disc(goal, 14, paint.Good)
	c.Disc(goal, 9, paint.Paper)
	c.Disc(goal, 4, paint.Good)
	x, y := min(max(p.x, -edge), edge), min(max(p.y, -edge), edge)
	c.Line(s.at(x, y), goal, 1.5, paint.Muted)
	c.Disc(s.at(x, y), 9, steel)
	text := fmt.Sprintf("%.3f from the goal", p.distance())
	if x != p.x || y != p.y {
		text += ", outside of the picture"
	}
	c.Text(seen.Min.X+4, seen.Max.Y-paint.LineHeight-2, text, paint.Ink)
}

// The colours of the drawings.
var (
	wood  = color.RGBA{202, 152, 101, 255}
	steel = color.RGBA{66, 110, 180, 255}
	hill  = color.RGBA{201, 214, 190, 255}
)
