// Package rounds implements schedulers that decide from time to time which jobs run where, and take GPUs from jobs for
// it: gavel-las, gavel-ftf, themis, optimus and gandiva. Each has a file with its source.
//
// What they share is in rounds.go: a policy chooses (chooser), and its choice is carried out. fair.go solves the
// programs of gavel.
package rounds
