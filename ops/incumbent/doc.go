// Package incumbent reproduces what a real cluster's own scheduler did: it has the recorded history of a cluster
// (Past), models of the scheduler that ran there, the incumbent (Model), plays any policy on the same jobs (Past.Play),
// and finds the model that comes closest to the recorded starts (Fit).
package incumbent
