// Package kernel holds the loops in which networks spend most of their time, on plain row-major slices: matrix products
// in three transposes, convolutions, attention, layer norm, activations, log-softmax, sums, Adam. It knows nothing of
// layers or graphs and allocates nothing, except the scratch space that concurrent calls keep for reuse.
//
// Every function is generic over float32 and float64. The portable Go code is the definition. float32 may be served
// by a faster set, named by Set, that is tested against it. Within one set results depend only on the arguments: a
// row of a product has the same bits for any number and content of other rows, and sums over rows run in the order of
// the rows. The fast sets are assembly written by the program in gen (docs/design/adr/0004-kernels.md). Slices of wrong
// length are a bug of the caller and panic. All functions may be called concurrently on different destinations.
package kernel
