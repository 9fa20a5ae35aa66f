// Package rltune is the environment in which RLTune's agent decides (Dongare et al., "RLTune: hybrid learning-guided
// scheduling of heterogeneous GPU clusters", SoCC 2025; github.com/dshruti20/RLTune, by that program): as in
// QueueRank-v1 it chooses the next job, but on nodes, of a queue in the order of a base policy, by seven numbers a job,
// and its program says where jobs start.
//
// Placement, observation and the choice between placements are rebuilt from the rules of the program alone. A way is a
// placement of a gang: how many GPUs on which nodes. Base policies take the First way. An agent's observation counts
// ways, and Choose picks one of up to four by the integer programme of the paper, which enumeration solves exactly. The
// fragmentation term of the programme is always 0, which is a fault of the program that is kept. The tests rebuild the
// rest of the program, its machine and its base policies, hold that to recorded runs, and the environment to it.
//
// QueueRank-v1 with the key env.rltune is the older form of this environment: its runs and checkpoints keep that name.
package rltune
