package control

import (
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/snap"
)

// Gymnasium's numbers. They are variables because Go evaluates constant expressions exactly and Gymnasium in float64;
// the difference shows in the last bit.
var (
	cartGravity    = 9.8
	cartPoleMass   = 0.1
	cartTotalMass  = cartPoleMass + 1.0 // including the cart
	cartHalfLength = 0.5                // of the pole
	cartPoleMoment = cartPoleMass * cartHalfLength
	cartForce      = 10.0
	cartTau        = 0.02 // seconds per step
	cartXLimit     = 2.4
	cartPi         = math.Pi
	cartAngleLimit = 24 * cartPi / 360 // 12 degrees
)

// cart is a pole on a cart, with the equations of Barto, Sutton and Anderson as Gymnasium computes them: explicit
// Euler, in float64, with every operation in the same order. The conversions to float64 keep the compiler from fusing
// a product and a sum, which would round once instead of twice.
type cart struct {
	x, v, angle, spin float64
}

func (p *cart) reset(src *rand.Rand) {
	for _, s := range []*float64{&p.x, &p.v, &p.angle, &p.spin} {
		*s = float64(0.1*src.Float64()) - 0.05
	}
}

func (p *cart) step(a env.Action, _ *rand.Rand) (float64, env.Kind) {
	force := -cartForce
	if a.Disc[0] == 1 {
		force = cartForce
	}
	sin, cos := sincos(p.angle)
	push := (force + float64(cartPoleMoment*(p.spin*p.spin)*sin)) / cartTotalMass
	spinRate := (float64(cartGravity*sin) - float64(cos*push)) /
		(cartHalfLength * (4.0/3.0 - cartPoleMass*(cos*cos)/cartTotalMass))
	speedRate := push - cartPoleMoment*spinRate*cos/cartTotalMass

	p.x += float64(cartTau * p.v)
	p.v += float64(cartTau * speedRate)
	p.angle += float64(cartTau * p.spin)
	p.spin += float64(cartTau * spinRate)
	if p.fallen() {
		return 1, env.Terminated
	}
	return 1, env.Mid
}

func (p *cart) fallen() bool {
	return math.Abs(p.x) > cartXLimit || math.Abs(p.angle) > cartAngleLimit
}

func (p *cart) observe(obs []float32, mask []bool) {
	obs[0], obs[1], obs[2], obs[3] = float32(p.x), float32(p.v), float32(p.angle), float32(p.spin)
	mask[0], mask[1] = true, true
}

func (p *cart) save(dst []byte) []byte {
	for _, v := range [...]float64{p.x, p.v, p.angle, p.spin} {
		dst = snap.F64(dst, v)
	}
	return dst
}

// load refuses speeds that the forces cannot reach before the pole or the cart is out of bounds: they would move the
// next observation out of its own bounds.
func (p *cart) load(r *snap.Reader, _ int, kind env.Kind) bool {
	p.x, p.v, p.angle, p.spin = r.F64(), r.F64(), r.F64(), r.F64()
	return math.Abs(p.x) <= 2*cartXLimit && math.Abs(p.angle) <= 2*cartAngleLimit &&
		math.Abs(p.v) <= 100 && math.Abs(p.spin) <= 10 && p.fallen() == (kind == env.Terminated)
}

// picture shows the track, 2.4 m to either side, and to which side the pole leans.
func (p *cart) picture(dst []byte) []byte {
	const half = 24
	at := half + int(math.Round(p.x/cartXLimit*half))
	pole := "|"
	if degrees := p.angle * 180 / math.Pi; degrees > 1 {
		pole = "/"
	} else if degrees < -1 {
		pole = "\\"
	}
	if at < 0 || at > 2*half {
		return append(dst, "the cart is off the track\n"...)
	}
	dst = fmt.Appendf(dst, "%*s\n", at+1, pole)
	for i := range 2*half + 1 {
		c := byte('-')
		if i == at {
			c = '#'
		}
		dst = append(dst, c)
	}
	return append(dst, '\n')
}

func cartPole() definition {
	inf := float32(math.Inf(1))
	angle := float32(2 * cartAngleLimit)
	return definition{
		spec: env.Spec{
			ID: "CartPole-v1",
			Obs: []env.Field{ // sorted by name, which is also Gymnasium's order
				{Name: "cart_position", Shape: []int{1}, Low: -4.8, High: 4.8, Unit: "m",
					Doc: "of the cart, 0 in the middle of the track"},
				{Name: "cart_velocity", Shape: []int{1}, Low: -inf, High: inf, Unit: "m/s", Doc: "of the cart"},
				{Name: "pole_angle", Shape: []int{1}, Low: -angle, High: angle, Unit: "rad",
					Doc: "of the pole from upright, to the right"},
				{Name: "pole_velocity", Shape: []int{1}, Low: -inf, High: inf, Unit: "rad/s", Doc: "of the pole's angle"},
			},
			Action:   env.ActionSpec{Sizes: []int{2}},
			MaxSteps: 500, Solved: 475, NoOp: -1,
		},
		make: func() problem { return new(cart) },
	}
}
