package control

import (
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/snap"
)

const (
	carLeft, carRight = -1.2, 0.6 // of the track
	carSpeed          = 0.07      // at most
	carGoal           = 0.5
)

// car is Moore's mountain car as Gymnasium computes it. For the conversions to float64 see cart.
type car struct {
	x, v float64
}

func (p *car) reset(src *rand.Rand) {
	p.x, p.v = float64(0.2*src.Float64())-0.6, 0
}

func (p *car) step(a env.Action, _ *rand.Rand) (float64, env.Kind) {
	_, cos := sincos(3 * p.x)
	p.v += float64(float64(a.Disc[0]-1)*0.001) + float64(cos*-0.0025)
	p.v = min(max(p.v, -carSpeed), carSpeed)
	p.x = min(max(p.x+p.v, carLeft), carRight)
	if p.x == carLeft && p.v < 0 {
		p.v = 0
	}
	if p.arrived() {
		return -1, env.Terminated
	}
	return -1, env.Mid
}

func (p *car) arrived() bool { return p.x >= carGoal && p.v >= 0 }

func (p *car) observe(obs []float32, mask []bool) {
	obs[0], obs[1] = float32(p.x), float32(p.v)
	mask[0], mask[1], mask[2] = true, true, true
}

func (p *car) save(dst []byte) []byte { return snap.F64(snap.F64(dst, p.x), p.v) }

func (p *car) load(r *snap.Reader, _ int, kind env.Kind) bool {
	p.x, p.v = r.F64(), r.F64()
	return p.x >= carLeft && p.x <= carRight && math.Abs(p.v) <= carSpeed && p.arrived() == (kind == env.Terminated)
}

// picture shows the hill, the car on it as o and the goal as F.
func (p *car) picture(dst []byte) []byte {
	const cols, rows = 55, 8
	column := func(x float64) int { return int(math.Round((x - carLeft) / (carRight - carLeft) * (cols - 1))) }
	var grid [rows][cols]byte
	for i := range grid {
		for k := range grid[i] {
			grid[i][k] = ' '
		}
	}
	put := func(k int, c byte) {
		x := carLeft + (carRight-carLeft)*float64(k)/(cols-1)
		height := (1 + math.Sin(3*x)) / 2
		grid[rows-1-int(math.Round(height*(rows-1)))][k] = c
	}
	for k := range cols {
		put(k, '.')
	}
	put(column(carGoal), 'F')
	put(column(p.x), 'o')
	for i := range grid {
		dst = append(append(dst, grid[i][:]...), '\n')
	}
	return dst
}

func mountainCar() definition {
	return definition{
		spec: env.Spec{
			ID: "MountainCar-v0",
			Obs: []env.Field{
				{Name: "position", Shape: []int{1}, Low: carLeft, High: carRight, Unit: "1",
					Doc: "of the car along the track; the valley's bottom is at -0.52, the goal at 0.5"},
				{Name: "velocity", Shape: []int{1}, Low: -carSpeed, High: carSpeed, Unit: "1/step",
					Doc: "of the car, to the right"},
			},
			Action:   env.ActionSpec{Sizes: []int{3}},
			MaxSteps: 200, Solved: -110, NoOp: -1,
		},
		make: func() problem { return new(car) },
	}
}
