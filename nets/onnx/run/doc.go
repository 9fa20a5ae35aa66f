// Package run computes ONNX models with the kernels of nets/kernel. It is made for policies: networks of a few dozen
// operators over a batch of observations, not for everything that the format can say.
//
// NewContext refuses by name what it does not know: an operator, a setting of one, a type, a shape that only the data
// decide. Known are the standard operators of opsets 13 to 23 that are listed in Operators, over float32, int64,
// int32, uint8, int8 and bool, with the first dimension of inputs open and all others given.
//
// Shapes are inferred once for each number of rows, everything that follows from constants is computed then, and the
// memory of intermediate results is laid out by when they are read last. Instance.Run then only computes, and allocates
// nothing.
package run
