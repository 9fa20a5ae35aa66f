// Package improper is the study improper: softmax mixtures of base controllers by policy gradient and natural
// actor-critic, on queueing networks whose optimum is known, and on PolicyMix-v1 against each scheduler, the best one,
// and PPO. README.md has the figures and how they are made.
package improper
