// Package nets holds the parameters of neural networks and their file format (safetensors). No Gorgonia type
// appears in its API. The children build networks on it: nets/kernel (float32 loops), nets/op (differentiable
// operations), nets/tape (graphs, gradients and their executor), nets/layer, nets/model and nets/optim.
package nets
