// Package model builds whole networks from a configuration: an actor and critic (ActorCritic) and action values,
// duelling or not (QNet). Bodies are multi-layer perceptrons (kind mlp) or one branch of convolutions for each image in
// the observation (kind cnn), or transformers over the rows of tables (kind attention); heads are dense, or shared over
// the slots of a queue (head slots).
//
// A network is declared once and runs in two ways: Forward, plain loops over nets/kernel for acting, with its own
// buffers and any number of rows, which Batches shares among goroutines; and Graph, nodes of a nets/tape builder for
// learning. Both give the same bits for the same parameters. Nothing here samples actions, computes losses or knows an
// environment: the input is a list of named fields of a flat observation.
package model
