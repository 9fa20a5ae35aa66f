package optim

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"clustergym/nets"
	"clustergym/nets/kernel"
)

// AdamConfig holds Adam's hyper-parameters.
type AdamConfig struct {
	LR    float64 `yaml:"lr"`    // learning rate, for callers without a schedule
	Beta1 float64 `yaml:"beta1"` // decay of the mean of gradients
	Beta2 float64 `yaml:"beta2"` // decay of the mean of squared gradients
	Eps   float64 `yaml:"eps"`   // added to the root; PPO uses 1e-5
}

// DefaultAdamConfig returns the paper's settings: rate 1e-3, decays 0.9 and 0.999, eps 1e-8.
func DefaultAdamConfig() AdamConfig {
	return AdamConfig{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
}

// Adam is the optimiser of Kingma and Ba 2015 (arXiv 1412.6980, algorithm 1), with eps added to the corrected root as
// in the paper and in PyTorch. Parameters and moments are float32; the bias corrections are computed in float64. It
// is not safe for concurrent use.
type Adam struct {
	p, m, v *nets.Params
	cfg     AdamConfig
	step    uint64
}

// NewAdam returns an optimiser of p with moments 0. It keeps p and updates it in place.
func NewAdam(p *nets.Params, cfg AdamConfig) *Adam {
	return &Adam{p: p, m: p.Like(), v: p.Like(), cfg: cfg}
}

// minScale is the least scale whose square, times 1 - Beta2, float32 still represents with full precision.
const minScale = 1e-12

// Step updates the parameters once by the gradient g with learning rate lr, which a schedule may change between
// steps. g must have the parameters' layout, of which only the size is checked. Step does not change g.
func (a *Adam) Step(g *nets.Params, lr float64) { a.StepScaled(g, lr, 1) }

// StepScaled is Step with scale·g, up to rounding, without a pass over g to scale it, so that clipping by ClipScale
// is free. Only if scale is below minScale does it multiply g itself.
func (a *Adam) StepScaled(g *nets.Params, lr, scale float64) {
	a.StepPart(g, lr, scale, 0, len(a.p.Data))
}

// StepPart is StepScaled for the elements from to to-1 of the parameters alone: the others and their moments stay as
// they are, whatever g has there. The step counts for all elements, so elements that have had no step yet are corrected
// too little afterwards: call Reset before their first.
func (a *Adam) StepPart(g *nets.Params, lr, scale float64, from, to int) {
	if len(g.Data) != len(a.p.Data) {
		panic(fmt.Sprintf("optim: gradient of %d elements for %d parameters", len(g.Data), len(a.p.Data)))
	}
	if scale < minScale {
		for i := range g.Data[from:to] {
			g.Data[from+i] *= float32(scale)
		}
		scale = 1
	}
	a.step++
	t := float64(a.step)
	s := kernel.AdamStep{
		Beta1: float32(a.cfg.Beta1),
		Beta2: float32(a.cfg.Beta2),
		Rest1: float32((1 - a.cfg.Beta1) * scale),
		Rest2: float32((1 - a.cfg.Beta2) * scale * scale),
		Rate:  float32(lr / (1 - math.Pow(a.cfg.Beta1, t))),
		Root:  float32(1 / math.Sqrt(1-math.Pow(a.cfg.Beta2, t))),
		Eps:   float32(a.cfg.Eps),
	}
	kernel.Adam(a.p.Data[from:to], g.Data[from:to], a.m.Data[from:to], a.v.Data[from:to], s)
}

// Reset forgets the moments and starts counting steps from 0.
func (a *Adam) Reset() {
	a.m.Zero()
	a.v.Zero()
	a.step = 0
}

const stepKey = "step"

// WriteTo saves the moments (tensors "m/NAME" and "v/NAME") and the number of steps (metadata "step") as safetensors.
// It does not save the parameters.
func (a *Adam) WriteTo(w io.Writer) (int64, error) {
	return nets.WriteTensors(w, map[string]string{stepKey: strconv.FormatUint(a.step, 10)}, views(a.m, a.v))
}

// ReadFrom restores what WriteTo saved, for parameters of the same names and shapes. Errors are as for
// nets.Params.ReadFrom; on an error nothing changes.
func (a *Adam) ReadFrom(r io.Reader) (int64, error) {
	m, v := a.p.Like(), a.p.Like()
	meta, n, err := nets.ReadTensors(r, views(m, v))
	if err != nil {
		return n, fmt.Errorf("adam: %w", err)
	}
	step, err := strconv.ParseUint(meta[stepKey], 10, 64)
	if err != nil {
		return n, fmt.Errorf("adam: %w: metadata %q is %q, want a number of steps", nets.ErrFormat, stepKey, meta[stepKey])
	}
	copy(a.m.Data, m.Data)
	copy(a.v.Data, v.Data)
	a.step = step
	return n, nil
}

// views lists both moments under names that cannot collide.
func views(m, v *nets.Params) []nets.View {
	var all []nets.View
	for _, x := range m.Views {
		all = append(all, nets.View{Name: "m/" + x.Name, Shape: x.Shape, Data: x.Data})
	}
	for _, x := range v.Views {
		all = append(all, nets.View{Name: "v/" + x.Name, Shape: x.Shape, Data: x.Data})
	}
	return all
}
