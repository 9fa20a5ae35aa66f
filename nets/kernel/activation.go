package kernel

import (
	"fmt"
	"math"
)

// Act is an activation function whose derivative follows from its value.
type Act uint8

// The activations. Identity is none; ReLU is max(x, 0), with derivative 0 at 0; Tanh is the hyperbolic tangent.
const (
	Identity Act = iota
	ReLU
	Tanh
)

func (a Act) String() string {
	switch a {
	case Identity:
		return "identity"
	case ReLU:
		return "relu"
	case Tanh:
		return "tanh"
	}
	return fmt.Sprintf("Act(%d)", uint8(a))
}

// Activate sets dst[i] = act(src[i]). dst may be src.
func Activate[T Float](dst, src []T, act Act) {
	inUse[T]().activate(dst, src, act)
}

func activate[T Float](dst, src []T, act Act) {
	dst = dst[:len(src)]
	switch act {
	case Identity:
		copy(dst, src)
	case ReLU:
		for i, x := range src {
			dst[i] = max(x, 0) // passes NaN on, so that a broken network is seen
		}
	case Tanh:
		for i, x := range src {
			dst[i] = tanh(x)
		}
	default:
		panic("kernel: unknown activation " + act.String())
	}
}

// ActGrad sets dst[i] = dy[i]·act'(x[i]), where y[i] = act(x[i]). dst may be dy.
func ActGrad[T Float](dst, y, dy []T, act Act) {
	inUse[T]().actGrad(dst, y, dy, act)
}

func actGrad[T Float](dst, y, dy []T, act Act) {
	dst, dy = dst[:len(y)], dy[:len(y)]
	switch act {
	case Identity:
		copy(dst, dy)
	case ReLU:
		if y32, ok := any(y).([]float32); ok {
			reluGrad(any(dst).([]float32), y32, any(dy).([]float32))
			return
		}
		for i, v := range y {
			g := dy[i]
			if v <= 0 {
				g = 0
			}
			dst[i] = g
		}
	case Tanh:
		for i, v := range y {
			dst[i] = dy[i] * (1 - v*v)
		}
	default:
		panic("kernel: unknown activation " + act.String())
	}
}

// reluGrad copies dy where y is above 0 and clears it elsewhere, using masks: which units are on is unpredictable,
// and a branch would be mispredicted half the time.
func reluGrad(dst, y, dy []float32) {
	dst, dy = dst[:len(y)], dy[:len(y)]
	for i, v := range y {
		b := math.Float32bits(v)
		positive := -((b | -b) >> 31) &^ uint32(int32(b)>>31) // all ones unless b is ±0 or negative
		dst[i] = math.Float32frombits(math.Float32bits(dy[i]) & positive)
	}
}

// Add sets dst[i] = a[i] + b[i]. dst may be either.
func Add[T Float](dst, a, b []T) {
	inUse[T]().add(dst, a, b)
}

func add[T Float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
