// Package nets holds the parameters of neural networks and their file format (safetensors). No Gorgonia type
// appears in its API. The children build networks on it: nets/kernel (float32 loops), nets/op (differentiable
// operations), nets/tape (graphs, gradients and their executor), nets/layer (initialisers), nets/model (whole
// networks) and nets/optim (Adam, gradient clipping).
//
// It is not for activations, batches or graphs: those belong to the children, and a Params never knows which
// network it feeds. Everything that must be copied, averaged, sent or saved is a Params.
package nets
