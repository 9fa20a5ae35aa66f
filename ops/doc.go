// Package ops has work at a real cluster: a policy steers it, a twin forecasts it.
//
// Its packages, from the lowest up (written by go test ./internal/archtest -run TestMaps -update):
//
//   - incumbent: reproduces what a real cluster's own scheduler did: it has the recorded history of a cluster (Past),
//     models of the scheduler that ran there, the incumbent (Model), plays any policy on the same jobs (Past.Play), and
//     finds the model that comes closest to the recorded starts (Fit)
//   - incumbent/known: makes accountings of clusters whose scheduler is known, for tests of what is concluded from
//     accountings: jobs are drawn, a scheduler of package schedulers plays them, and what sacct would have printed of
//     it is written down
//   - steer/mirror: turns what a real cluster says of itself, one snapshot after the other, into facts for a simulator
//     that follows (simulator/sim)
//   - steer: lets a policy look at a real cluster (live.Cluster), order its queue, or start its jobs: the loop of
//     gymctl steer
//   - twin: forecasts what a real cluster will do: when each waiting job starts, when running ones end, when GPUs
//     become free, and what would change with more nodes, fewer nodes, another order of the queue, or one job more
//   - assess: says from a recorded accounting whether another order of the queue, or other hardware, would help a
//     cluster, and how sure that is: what was recorded, models of the scheduler that ran and how close they come, other
//     policies on the same jobs, who would gain and who would lose, and what-ifs
//   - steer/report: reads the logs of gymctl steer and says whether a policy would help: how often it agrees with the
//     cluster at real starts, what the observed jobs would have waited under it and under a model of the cluster's own
//     scheduler, and how far that model may be believed
package ops
