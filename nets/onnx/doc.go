// Package onnx reads and writes ONNX models, the format in which other libraries exchange networks: a graph of named
// operators over tensors. It knows the format alone; package nets/onnx/export makes models of networks, and
// nets/onnx/run computes them.
//
// The format is a message of Protocol Buffers (onnx.proto, from IR version 3). Of its fields this package knows those
// that networks for inference use; Decode skips the others, and refuses by name what would change the meaning: data in
// other files, sparse tensors, and elements of a type without a meaning here.
package onnx
