// Package ddppo is the study ddppo: data-parallel PPO without a parameter server, which ranks the queue of one machine
// over a log of 11.5 million jobs that is streamed from a file. README.md says which parts are whose, and has the
// figures.
package ddppo
