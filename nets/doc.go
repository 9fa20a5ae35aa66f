// Package nets holds the parameters of neural networks and their file format (safetensors). No Gorgonia type appears
// in its API. Subpackages build networks on it: nets/kernel (float32 loops), nets/op (differentiable operations),
// nets/tape (graphs, gradients and their executor), nets/layer (initialisers), nets/model (whole networks) and
// nets/optim (Adam, gradient clipping).
//
// Activations, batches and graphs belong to the subpackages; a Params does not know which network it feeds.
// Everything that must be copied, averaged, sent or saved is a Params.
package nets
