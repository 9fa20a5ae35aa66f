// Package arena holds the world that a configuration describes and plays policies in it: agents that are in training, on the
// validation part; checkpoints, heuristics, rules, planners and policies of other programs, on the test part.
package arena
