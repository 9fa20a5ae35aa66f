// Package op has the differentiable operations from which networks and losses are built, as nodes of a Gorgonia graph:
// dense layers, convolutions, layer norm, attention over the live rows of sequences, pooling and broadcasting over
// slots, masked log-softmax, entropy, duelling heads, element-wise arithmetic, and the losses of PPO and of
// temporal-difference learning.
//
// PPO's loss exists twice: PPOLoss is the formula in element-wise operations, SurrogateLoss the same with the policy's
// log-probabilities in one operation with a gradient derived by hand, which is faster.
//
// Every node carries an *Op, which knows its gradient (gorgonia.SDOp), runs on Gorgonia's own machines, and runs
// faster on slices through Run32 and Run64, which nets/tape uses. The first dimension is always the batch. Masks and
// indices are numbers of the graph's own type: 0 or 1, and whole numbers.
//
// Functions that add nodes panic on shapes that do not fit, because code builds a graph, not user input; nets/tape
// turns such a panic into an error. To run a graph, see nets/tape.
package op
