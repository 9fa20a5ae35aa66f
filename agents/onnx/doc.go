// Package onnx plays policies that other programs have trained, and our own that left as ONNX models. NewContext finds
// by names, types and shapes what a model's inputs and outputs are, and refuses what does not fit the environment in
// one sentence.
//
// Inputs are the observation as one vector (any name), or one input for each of its fields by the field's name, and
// with the name action_mask the legal actions. One output is used, the first of these that the model has:
//
//	action, actions              indices of the discrete factors, or the numbers of a continuous action
//	logits, q, q_values          numbers of all discrete actions: in each factor the legal one of the largest is taken
//	the only output              one of the two, by its type and shape
//
// A model without action_mask does not know which actions are legal. An illegal action of its own then becomes the one
// that does nothing, or the first legal one, as in the Python package.
package onnx
