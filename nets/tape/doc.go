// Package tape turns a loss into gradients. Gorgonia declares the graph and differentiates it, and this package's own
// executor runs the result. Compile walks the differentiated graph once, keeps only what the loss, the outputs and
// the gradients need, assigns every value its memory, reusing that of values that no later step reads, and flattens
// the graph to a list of steps. Run is one loop over that list and allocates nothing.
//
// A float32 program reads parameters from the memory of the nets.Params that it was built over, so optimisers,
// acting networks and any number of programs share weights without copying. A float64 program has copies, for
// checking gradients. Panics of Gorgonia and of the operations become errors here (Build, Compile, Run) and
// nowhere else.
//
// It supports first-order gradients only: Gorgonia's gradient of a gradient is wrong.
package tape
