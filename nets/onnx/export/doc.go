// Package export writes policies as ONNX models: what scales observations, the network (nets/model, by its
// description), the mask of legal actions and the rule that chooses the greedy action, all as operators of opset 17.
// Any runtime then plays the policy without this program.
//
// Rows that are packed in nets/model, because only live ones are computed, stand here all in their places with a mask
// beside them: packing depends on the data, and operators have fixed shapes. Results are the same up to rounding.
package export
