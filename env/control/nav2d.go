package control

import (
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/snap"
)

const (
	navReach = 0.1 // maximum step, in each direction
	navGoal  = 0.5 // goals are within this, in each direction
	navSteps = 100
)

// point is a point in the plane that looks for a goal that it cannot see. A task is the goal.
type point struct {
	x, y, goalX, goalY float64
}

func (p *point) taskSpec() []env.Field {
	return []env.Field{{Name: "goal", Shape: []int{2}, Low: -navGoal, High: navGoal, Unit: "1", Doc: "where to go: x, y"}}
}

func (p *point) sampleTask(src *rand.Rand, dst []float64) {
	for i := range dst {
		dst[i] = src.Float64() - navGoal
	}
}

func (p *point) setTask(task []float64) { p.goalX, p.goalY = task[0], task[1] }

func (p *point) reset(src *rand.Rand) {
	p.x, p.y, p.goalX, p.goalY = 0, 0, src.Float64()-navGoal, src.Float64()-navGoal
}

func (p *point) step(a env.Action, _ *rand.Rand) (float64, env.Kind) {
	p.x += reach(a.Cont[0])
	p.y += reach(a.Cont[1])
	return -p.distance(), env.Mid
}

// reach limits a step to 0.1: the float32 nearest to 0.1 is slightly larger.
func reach(v float32) float64 { return min(max(float64(v), -navReach), navReach) }

func (p *point) distance() float64 {
	dx, dy := p.x-p.goalX, p.y-p.goalY
	return math.Sqrt(float64(dx*dx) + float64(dy*dy))
}

func (p *point) observe(obs []float32, _ []bool) {
	obs[0], obs[1] = float32(p.x), float32(p.y)
}

func (p *point) save(dst []byte) []byte {
	for _, v := range [...]float64{p.x, p.y, p.goalX, p.goalY} {
		dst = snap.F64(dst, v)
	}
	return dst
}

func (p *point) load(r *snap.Reader, steps int, kind env.Kind) bool {
	p.x, p.y, p.goalX, p.goalY = r.F64(), r.F64(), r.F64(), r.F64()
	far := navReach*float64(steps) + 1e-9
	return math.Abs(p.x) <= far && math.Abs(p.y) <= far && math.Abs(p.goalX) <= navGoal && math.Abs(p.goalY) <= navGoal &&
		kind != env.Terminated
}

// picture shows the square of possible goals with the point as o and the goal as X.
func (p *point) picture(dst []byte) []byte {
	const rows, cols = 11, 21
	cell := func(x, y float64) (row, col int) {
		return int(math.Round((navGoal - y) * (rows - 1))), int(math.Round((x + navGoal) * (cols - 1)))
	}
	goalRow, goalCol := cell(p.goalX, p.goalY)
	row, col := cell(p.x, p.y)
	border := func() { dst = fmt.Appendf(dst, "+%.*s+\n", cols, "----------------------------------------") }
	border()
	for i := range rows {
		dst = append(dst, '|')
		for k := range cols {
			c := byte(' ')
			switch {
			case i == row && k == col:
				c = 'o'
			case i == goalRow && k == goalCol:
				c = 'X'
			}
			dst = append(dst, c)
		}
		dst = append(dst, "|\n"...)
	}
	border()
	return fmt.Appendf(dst, "hidden: the goal is at (%.3f, %.3f), %.3f away\n", p.goalX, p.goalY, p.distance())
}

func nav2D() definition {
	return definition{
		spec: env.Spec{
			ID: "Nav2D-v1",
			Obs: []env.Field{{
				Name: "position", Shape: []int{2}, Low: -navReach * navSteps, High: navReach * navSteps, Unit: "1", Doc: "x, y",
			}},
			Action:   env.ActionSpec{Low: []float32{-navReach, -navReach}, High: []float32{navReach, navReach}},
			MaxSteps: navSteps, Solved: -20, NoOp: -1,
		},
		make: func() problem { return new(point) },
	}
}
