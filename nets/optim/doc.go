// Package optim updates parameters from gradients: Adam, whose moments can be saved and restored so that a resumed run
// continues bit for bit, clipping by the global norm, and the sum of the gradients of a minibatch's shards. Schedules
// of the learning rate belong to the agents, which pass the rate with every step.
//
// Adam is the only optimiser here. The package knows no graph: parameters, gradients and moments are nets.Params.
package optim
