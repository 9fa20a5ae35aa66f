// Package layer initialises the parameters of layers from a random generator: orthogonal matrices with a gain,
// uniform numbers, constants. The same generator state gives the same bits.
//
// A weight's rows are its inputs and its last dimension its outputs: [in, out] for a dense layer, [KH, KW, C, F] for
// a convolution. The layers' arithmetic is in nets/kernel and nets/op.
package layer
