// Package profile says what the models are that jobs train: how large their gradients are and how much they
// compute. Most traces do not tell a job's model; a Mix then gives each job one, chosen by seed and job id alone,
// so that neither the scheduler nor the order of reading changes it. The mix is part of a scenario, and Hash says
// whether two mixes are the same.
//
// The package holds figures only. What a placement makes of them is the communication model's part, in
// env/cluster and env/sim.
package profile
