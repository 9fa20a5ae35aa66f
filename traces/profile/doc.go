// Package profile describes the models that jobs train: how large their gradients are, how long they compute, how they
// scale, and how much speed they keep beside other jobs.
//
//   - A Mix gives a model to a job whose trace names none. The choice depends on seed and job id alone, so neither the
//     scheduler nor the order of reading changes it. Equal hashes (Hash) mean equal mixes. Named returns the mixes of
//     published simulators.
//   - A Table is read from a file of published measurements (Load knows Gavel's, Sia's and Pollux', Lucid's,
//     ElasticFlow's, Chronus' and Tiresias'), which is not part of the program. Assign gives jobs that name a model its
//     profile and, if the trace only counts iterations, their run time.
//   - An Interference says how much throughput two jobs keep beside each other.
//   - PSSpeed computes the speed of a job with parameter servers, as DL2 does.
//
// The package holds figures only. The communication models in simulator/cluster and simulator/sim compute the effect of
// a placement.
package profile
