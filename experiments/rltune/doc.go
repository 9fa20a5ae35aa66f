// Package rltune is the study rltune: RLTune's agent and integer programme on a machine equal to its authors' program,
// against the base policies whose queues they sort, the best of these, and rules by hand, with known and with predicted
// run times. README.md has the figures and how they are made.
package rltune
