// Package profile says what the models are that jobs train: how large their gradients are, how long they compute,
// how they scale and what they keep of their speed beside others.
//
//   - A Mix gives a job a model where its trace does not tell it, chosen by seed and job id alone, so that neither
//     the scheduler nor the order of reading changes it. Hash says whether two mixes are the same. Named has those of
//     published simulators.
//   - A Table is read from a file of published measurements (Load knows Gavel's, Sia's and Pollux', Lucid's,
//     ElasticFlow's, Chronus' and Tiresias'), which stays with its user. Assign gives jobs that name a model its
//     profile and, where the trace only counts iterations, their run time.
//   - An Interference says what two jobs keep of their throughput beside each other.
//   - PSSpeed is the speed of a job with parameter servers, as DL2 reckons it.
//
// The package holds figures only. What a placement makes of them is the communication model's part, in
// env/cluster and env/sim.
package profile
