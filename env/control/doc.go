// Package control holds problems with known answers, on which agents are checked before anyone trusts them with
// a cluster: probes, each of which isolates one thing that an agent must get right and tells by its learnt
// values which one is wrong, and InvalidAction-v1, the test problem for masks.
//
// All are environments like any other: seeded, saved and restored, held against package env/envtest. Discounts
// are per step (Spec.Tau is 0) and Elapsed is always 0. None of them has a workload: Episode.Window is ignored,
// and a Task is refused.
package control
