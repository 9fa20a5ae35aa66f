// Package train moves data between environments and an agent: it acts, steps, observes and learns, and at intervals
// calls hooks that report, evaluate and save checkpoints. It knows no algorithm, reads no clock and writes no file.
//
// Everything that decides what happens next is in the parts that a checkpoint keeps: the agent's own, and this
// package's "trainer.json" (counters, random streams) and "envs.bin" (every environment). A run that is stopped and
// resumed from a checkpoint therefore continues bit for bit as if it had not been stopped, for any number of workers.
// Agents whose learners collect each at its own pace (Separate) can be an exception.
package train
