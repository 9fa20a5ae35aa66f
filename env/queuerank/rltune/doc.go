// Package rltune is the environment in which RLTune's agent decides (Dongare et al., SoCC 2025, by its program): as in QueueRank-v1 it chooses
// the next job, but on nodes, of a queue in the order of a base policy, by seven numbers a job, and its program says where jobs start.
//
// QueueRank-v1 with the key env.rltune is the older form of this environment: its runs and checkpoints keep that name.
package rltune
