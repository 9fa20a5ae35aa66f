// Package vec steps many environments together. A Vec owns N environments of one Spec and the seed streams that
// their episodes come from; its batches have one row per environment, written in place by the environments
// themselves. What happens when an episode ends is chosen by Autoreset, with the same three modes and names as
// Gymnasium's vector environments.
//
// The number of workers changes nothing but speed: a row's bytes depend on its own seed and actions, never on
// the other rows. The state of a Vec can be saved and restored, and the run then continues bit for bit.
//
// It starts goroutines through internal/par only: Reset and Step for as long as they last, Send for as long as the Vec
// lives. It does not talk to networks (env/bridge/server does) and does not choose actions (package agents does).
package vec
