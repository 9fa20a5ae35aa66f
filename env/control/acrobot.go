package control

import (
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/snap"
)

// Two links of 1 m and 1 kg, with their centres of mass in the middle and moments of inertia of 1; products of these
// numbers are written out below. The two products that round are variables, for the reason given at cartGravity.
var (
	acrobotGravity   = 9.8
	acrobotFirst     = 1.5 * acrobotGravity // of both masses about the pivot
	acrobotSecond    = 0.5 * acrobotGravity // of the lower mass about the joint
	acrobotStep      = 0.2                  // seconds
	acrobotMaxSpeed1 = 4 * math.Pi
	acrobotMaxSpeed2 = 9 * math.Pi
)

// acrobotState holds the angle of the first link from hanging down, the angle of the second from the first, and the
// angular speeds of both.
type acrobotState [4]float64

// robot is Sutton's acrobot as Gymnasium computes it ("book" dynamics): one step of the classic Runge-Kutta method.
// For the conversions to float64 see cart.
type robot struct{ s acrobotState }

func (p *robot) reset(src *rand.Rand) {
	for i := range p.s {
		p.s[i] = float64(float32(float64(0.2*src.Float64()) - 0.1)) // Gymnasium starts at a float32
	}
}

func (p *robot) step(a env.Action, _ *rand.Rand) (float64, env.Kind) {
	torque, h := float64(a.Disc[0]-1), acrobotStep
	k1 := slope(p.s, torque)
	k2 := slope(ahead(p.s, h/2, k1), torque)
	k3 := slope(ahead(p.s, h/2, k2), torque)
	k4 := slope(ahead(p.s, h, k3), torque)
	for i := range p.s {
		p.s[i] += float64(h / 6 * (k1[i] + float64(2*k2[i]) + float64(2*k3[i]) + k4[i]))
	}
	p.s[0], p.s[1] = turn(p.s[0]), turn(p.s[1])
	p.s[2] = min(max(p.s[2], -acrobotMaxSpeed1), acrobotMaxSpeed1)
	p.s[3] = min(max(p.s[3], -acrobotMaxSpeed2), acrobotMaxSpeed2)
	if p.up() {
		return 0, env.Terminated
	}
	return -1, env.Mid
}

// slope returns the derivative of s under a torque on the joint.
func slope(s acrobotState, torque float64) acrobotState {
	sin2, cos2 := sincos(s[1])
	_, cosBoth := sincos(s[0] + s[1] - math.Pi/2)
	_, cos1 := sincos(s[0] - math.Pi/2)
	v1, v2 := s[2], s[3]

	d1 := 0.25 + (1.25 + cos2) + 1 + 1
	d2 := 0.25 + float64(0.5*cos2) + 1
	phi2 := float64(acrobotSecond * cosBoth)
	phi1 := float64(-0.5*(v2*v2)*sin2) - float64(v2*v1*sin2) + float64(acrobotFirst*cos1) + phi2
	rate2 := (torque + float64(d2/d1*phi1) - float64(0.5*(v1*v1)*sin2) - phi2) / (1.25 - float64(d2*d2)/d1)
	rate1 := -(float64(d2*rate2) + phi1) / d1
	return acrobotState{v1, v2, rate1, rate2}
}

// ahead returns s + h·k.
func ahead(s acrobotState, h float64, k acrobotState) acrobotState {
	for i := range s {
		s[i] += float64(h * k[i])
	}
	return s
}

// turn returns the angle x in [-pi, pi].
func turn(x float64) float64 {
	for x > math.Pi {
		x -= 2 * math.Pi
	}
	for x < -math.Pi {
		x += 2 * math.Pi
	}
	return x
}

// height returns the height of the tip above the pivot.
func (p *robot) height() float64 {
	_, cos1 := sincos(p.s[0])
	_, cosBoth := sincos(p.s[1] + p.s[0])
	return -cos1 - cosBoth
}

func (p *robot) up() bool { return p.height() > 1 }

func (p *robot) observe(obs []float32, mask []bool) {
	sin1, cos1 := sincos(p.s[0])
	sin2, cos2 := sincos(p.s[1])
	obs[0], obs[1], obs[2], obs[3] = float32(cos1), float32(sin1), float32(cos2), float32(sin2)
	obs[4], obs[5] = float32(p.s[2]), float32(p.s[3])
	mask[0], mask[1], mask[2] = true, true, true
}

func (p *robot) save(dst []byte) []byte {
	for _, v := range p.s {
		dst = snap.F64(dst, v)
	}
	return dst
}

func (p *robot) load(r *snap.Reader, _ int, kind env.Kind) bool {
	for i := range p.s {
		p.s[i] = r.F64()
	}
	return math.Abs(p.s[0]) <= math.Pi && math.Abs(p.s[1]) <= math.Pi &&
		math.Abs(p.s[2]) <= acrobotMaxSpeed1 && math.Abs(p.s[3]) <= acrobotMaxSpeed2 && p.up() == (kind == env.Terminated)
}

// picture describes the state in words, since a drawing in letters would be too coarse.
func (p *robot) picture(dst []byte) []byte {
	const degree = math.Pi / 180
	return fmt.Appendf(dst,
		"upper link %.0f degrees from hanging down, lower link %.0f from the upper; the tip is at height %.2f, the line at "+
			"1\n",
		p.s[0]/degree, p.s[1]/degree, p.height())
}

func acrobot() definition {
	v1, v2 := float32(acrobotMaxSpeed1), float32(acrobotMaxSpeed2)
	unit := func(name, doc string) env.Field {
		return env.Field{Name: name, Shape: []int{1}, Low: -1, High: 1, Unit: "1", Doc: doc}
	}
	return definition{
		spec: env.Spec{
			ID: "Acrobot-v1",
			Obs: []env.Field{ // sorted by name, which is also Gymnasium's order
				unit("link1_cos", "cosine of the upper link's angle from hanging down"),
				unit("link1_sin", "sine of it"),
				unit("link2_cos", "cosine of the lower link's angle from the upper one's"),
				unit("link2_sin", "sine of it"),
				{Name: "velocity1", Shape: []int{1}, Low: -v1, High: v1, Unit: "rad/s", Doc: "of the upper link's angle"},
				{Name: "velocity2", Shape: []int{1}, Low: -v2, High: v2, Unit: "rad/s", Doc: "of the lower link's angle"},
			},
			Action:   env.ActionSpec{Sizes: []int{3}},
			MaxSteps: 500, Solved: -100, NoOp: -1,
		},
		make: func() problem { return new(robot) },
	}
}
