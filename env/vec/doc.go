// Package vec steps many environments together. A Vec owns N environments of one Spec and the seed streams that their
// episodes come from. Its batches have one row per environment, and the environments write their rows in place.
// Autoreset chooses what happens when an episode ends, with the same three modes and names as Gymnasium's vector
// environments.
//
// The number of workers affects only speed: a row's bytes depend on its own seed and actions, never on the other rows.
// The state of a Vec can be saved and restored, and the run then continues bit for bit.
//
// The package starts goroutines only through internal/par, for Reset and Step with two or more workers and for Send.
// They last until Close. Each worker steps the same rows in every call, as far as it is not slower than the others, so
// that their state stays in its processor's caches; a worker that has done its rows looks for the next call for a
// moment before it sleeps. It does not talk to networks (bridge/server does) and does not choose actions (package
// agents does).
package vec
