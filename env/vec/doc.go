// Package vec steps many environments together. A Vec owns N environments of one Spec and the seed streams that their
// episodes come from. Its batches have one row per environment, and the environments write their rows in place.
// Autoreset chooses what happens when an episode ends, with the same three modes and names as Gymnasium's vector
// environments.
//
// The number of workers affects only speed: a row's bytes depend on its own seed and actions, never on the other rows.
// The state of a Vec can be saved and restored, and the run then continues bit for bit.
//
// The package starts goroutines only through internal/par: those of Reset and Step last for the call, those of Send
// until Close. It does not talk to networks (env/bridge/server does) and does not choose actions (package agents
// does).
package vec
