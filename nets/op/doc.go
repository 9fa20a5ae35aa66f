// Package op has the differentiable operations of which networks and losses are made, as nodes of a Gorgonia
// graph: dense layers, convolutions, layer norm, pooling and broadcasting over slots, masked log-softmax, entropy,
// duelling heads, and the losses of PPO and of temporal-difference learning.
//
// Every node carries a *Op, which knows its gradient (gorgonia.SDOp), runs on Gorgonia's own machines, and runs
// faster on slices through Run32 and Run64, which is what nets/tape does. The first dimension is always the batch.
// Masks and indices are numbers of the graph's own type: 0 or 1, and whole numbers.
//
// Functions that add nodes panic on shapes that do not fit, because a graph is built by code and not from user's
// input; nets/tape turns such a panic into an error. It is not for running anything: see nets/tape.
package op
