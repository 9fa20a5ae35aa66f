// Package kernel holds the few loops in which networks spend their time, on plain row-major slices: matrix
// products in three transposes, convolutions, activations, log-softmax, sums, Adam. It knows nothing
// of layers or graphs and allocates nothing.
//
// Every function is generic over float32 and float64. The portable Go code is the definition; float32 may be
// served by a faster set, named by Set, that is tested against it. Within one set results depend on the
// arguments alone: a row of a product has the same bits whatever and however many the other rows are, and sums
// over rows run in the order of the rows. The fast sets are assembly that the program in gen writes
// (docs/adr/0004-kernels.md). Slices of wrong length are a broken invariant of the caller and panic.
// All functions may be called concurrently on different destinations.
package kernel
