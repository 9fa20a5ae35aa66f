// Package layer initialises the parameters of layers from a passed generator: orthogonal matrices with a gain,
// uniform numbers, constants. The same generator state gives the same bits.
//
// A weight's rows are its inputs and its last dimension its outputs: [in, out] for a dense layer, [KH, KW, C, F]
// for a convolution. It is not for the layers' arithmetic, which is in nets/kernel and nets/op.
package layer
