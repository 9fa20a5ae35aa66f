package ddqn

import (
	"clustergym/nets/onnx"
	"clustergym/nets/onnx/export"
)

// Export returns the policy as an ONNX model that acts as it does (package nets/onnx/export names its inputs and
// outputs), for rows observations at a time, 0 = any number. It has no metadata and shares nothing with the policy.
func (p *Policy) Export(rows int) (*onnx.Model, error) {
	out := export.Policy{Name: p.spec.ID, Net: p.net.Describe(), Sizes: p.spec.Action.Sizes, NoOp: -1, QValues: true,
		Batch: rows}
	return out.Model()
}
