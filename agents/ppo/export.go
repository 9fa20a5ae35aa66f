package ppo

import (
	"clustergym/nets/onnx"
	"clustergym/nets/onnx/export"
)

// Export returns the policy as an ONNX model that acts as a greedy policy does (package nets/onnx/export names its
// inputs and outputs), for rows observations at a time, 0 = any number. The rule that decides between waiting and
// acting adds probabilities in float32 there and in float64 here, so the two can differ where these are equal but for
// rounding. The model has no metadata and shares nothing with the policy.
func (p *Policy) Export(rows int) (*onnx.Model, error) {
	a := &p.act
	out := export.Policy{Name: a.spec.ID, Net: p.net.Describe(), Sizes: a.spec.Action.Sizes, NoOp: a.spec.NoOp,
		Batch: rows}
	if a.scale != nil {
		mean, factor := a.scale.Numbers()
		out.Scale = &export.Scale{Mean: mean, Factor: factor, Clip: a.scale.Clip()}
	}
	if len(a.box.low) > 0 {
		out.Box = &export.Box{Mid: a.box.mid, Half: a.box.half, Low: a.box.low, High: a.box.high}
	}
	return out.Model()
}
